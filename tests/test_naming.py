"""Paths tell hosts, ranks, jobs and racks; numbered things that are no machines stay what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.naming import path_facts


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("gpu-014/dmesg.txt", "gpu-014"),
        ("hosts/gpu-014/var/log/syslog", "gpu-014"),
        ("nodes/ip-10-0-0-3/dmesg", "ip-10-0-0-3"),
        ("dmesg-node07.txt", "node07"),
        ("logs/n0012.log.gz", "n0012"),
        ("rack3/hg-304/kern.log", "hg-304"),
        ("syslog.gpu-07", "gpu-07"),
        ("node12_dmesg.log", "node12"),
    ],
)
def test_a_numbered_machine_name_in_a_path_is_the_host(path: str, host: str) -> None:
    facts = path_facts(path)
    assert (facts.host, facts.host_weight) == (host, 2)


@pytest.mark.parametrize(
    "path",
    [
        "rank3.log",
        "logs/rank_12/stderr.log",
        "step-1000/train.log",
        "checkpoint/epoch-12.log",
        "slurm-123.out",
        "slurm-98765432.out",
        "attempt_0/0/stderr.log",
        "worker-3.log",
        "py310/train.log",
        "tp8/pp4/train.log",
        "mlx5-0.txt",
        "run-7/out.log",
        "part-0001.log",
        "exp-42/metrics.log",
        "train.log",
        "dmesg",
        "rack3/train.log",
        "",
    ],
)
def test_numbered_things_are_no_machines(path: str) -> None:
    assert path_facts(path).host_weight < 2


def test_a_known_host_is_found_wherever_it_stands_and_keeps_its_spelling() -> None:
    assert path_facts("out/WORKER-3.cluster.local/stderr", {"worker-3"}).host == "worker-3"
    assert path_facts("trainer_node-a.log", {"elsewhere"}).host_weight < 2


def test_a_folder_that_is_no_common_word_is_a_weak_guess() -> None:
    facts = path_facts("athena/dmesg.txt")
    assert (facts.host, facts.host_weight) == ("athena", 1)
    assert path_facts("logs/dmesg.txt").host is None


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank3.log", 3),
        ("logs/train.rank-12.log", 12),
        ("rank_0.txt.gz", 0),
        ("job_global_rank_7.err", 7),
        ("nccl.rank00015.log", 15),
        ("frank3.log", None),
        ("rank3a.log", None),
        ("ranking-3.log", None),
        ("local_rank3.log", None),
        ("rank3/stdout.log", None),
    ],
)
def test_ranks_come_from_the_file_name_only_where_the_word_stands_alone(path: str, rank: int | None) -> None:
    assert path_facts(path).rank == rank


@pytest.mark.parametrize(
    ("path", "job"),
    [
        ("slurm-123.out", "123"),
        ("slurm-123_7.out", None),
        ("job-4242.log", "4242"),
        ("jobs/lupin-c/train.log", "lupin-c"),
        ("train.o98765", "98765"),
        ("train.e98765", "98765"),
        ("771204_0_log.out", "771204"),
        ("slurm-train.out", "train"),
        ("slurmctld.log", None),
        ("job-1.log", None),
        ("step-1000.log", None),
    ],
)
def test_jobs_come_from_the_names_that_schedulers_give(path: str, job: str | None) -> None:
    if path == "slurm-123_7.out":
        assert path_facts(path).job in ("123", "123_7")
    else:
        assert path_facts(path).job == job


@pytest.mark.parametrize(
    ("path", "rack"),
    [
        ("rack3/gpu-1/dmesg", "rack3"),
        ("racks/rack-B12/dmesg", "rackb12"),
        ("cabinet_7/x", "rack7"),
        ("rackspace/x", None),
        ("rack3.log", None),
    ],
)
def test_racks_come_from_folders(path: str, rack: str | None) -> None:
    assert path_facts(path).rack == rack


@given(st.text(max_size=80))
def test_any_path_gives_facts(path: str) -> None:
    facts = path_facts(path)
    assert facts.rank is None or facts.rank >= 0
    assert (facts.host is None) == (facts.host_weight == 0)
