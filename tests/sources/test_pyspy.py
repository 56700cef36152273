from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.base import RowSource
from triage.sources.pyspy import PYSPY

DUMP = """\
Process 7101: /opt/py/bin/python -u train.py --local_rank=0
Python v3.11.4 (/opt/py/bin/python3.11)

Thread 7101 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:1316)
    forward (megatron/model/transformer.py:112)
    <module> (train.py:249)
Thread 7155 (idle): "Thread-1 (_pin_memory_loop)"
    select (selectors.py:416)

Process 7102: /opt/py/bin/python -u train.py --local-rank 1
Python v3.11.4 (/opt/py/bin/python3.11)

Thread 0x7F00AA (idle): "Thread-9"
    wait (threading.py:331)
Thread 7102 (idle): "MainThread"
    wait (threading.py:331)
    get (queue.py:180)
    _try_get_data (torch/utils/data/dataloader.py:1131)
        Arguments:
            timeout: 5
    <module> (train.py:249)
"""


def dump(*frames: str) -> str:
    return 'Process 9: python train.py\n\nThread 9 (idle): "MainThread"\n' + "\n".join(
        f"    {frame}" for frame in frames
    )


def test_a_row_per_process() -> None:
    first, second = PYSPY.rows(DUMP.split("\n"))
    assert (first.line, first.fields["pid"], first.fields["where"], first.fields["local_rank"]) == (
        5,
        7101,
        "collective",
        0,
    )
    assert (second.line, second.fields["pid"], second.fields["where"]) == (19, 7102, "dataloader")
    assert (second.fields["function"], second.fields["top"]) == ("_try_get_data", "wait (threading.py)")
    assert (second.fields["local_rank"], second.fields["threads"], second.fields["state"]) == (1, 2, "idle")


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        (("wait (threading.py:331)", "train (train.py:9)"), "other"),
        (("acquire (filelock/_api.py:200)", "save_checkpoint (train.py:9)"), "lock"),
        (("write (torch/serialization.py:400)", "train (train.py:9)"), "checkpoint"),
        (("barrier (torch/distributed/distributed_c10d.py:9)", "save_checkpoint (train.py:9)"), "collective"),
        (("read (tarfile.py:9)", "fetch (torch/utils/data/_utils/fetch.py:51)"), "dataloader"),
        (("copyfileobj (shutil.py:9)", "sync (train.py:51)"), "io"),
        (("synchronize (torch/cuda/__init__.py:783)", "train (train.py:9)"), "collective"),
        (("all_reduce_stats (metrics.py:1)",), "other"),
    ],
)
def test_where(frames: tuple[str, ...], where: str) -> None:
    [row] = PYSPY.rows(dump(*frames).split("\n"))
    assert row.fields["where"] == where


def test_hosts_before_every_line() -> None:
    text = "\n".join(
        f"node07: {line}" for line in dump("barrier (torch/distributed/distributed_c10d.py:9)").split("\n")
    )
    [row] = PYSPY.rows(text.split("\n"))
    assert (row.fields["host"], row.fields["where"]) == ("node07", "collective")


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        (DUMP, True),
        ("Process 7101: python train.py\nnothing else", False),
        ("Thread 0x00007f01 (most recent call first):\n  File x", False),
        ("step 1\nProcess Process-3:\nTraceback", False),
    ],
)
def test_sniff(head: str, wanted: bool) -> None:
    assert PYSPY.sniff("stack.txt", head) is wanted


def test_processes_without_frames_give_no_row() -> None:
    assert list(PYSPY.rows(["Process 1: sleep", "", "Thread 1 (idle)"])) == []


@given(st.lists(st.one_of(st.sampled_from(DUMP.split("\n")), st.text(max_size=30)), max_size=30))
def test_any_lines_are_survived(lines: list[str]) -> None:
    for row in PYSPY.rows(lines):
        assert 1 <= row.line <= len(lines)


def test_it_is_a_row_source() -> None:
    assert isinstance(PYSPY, RowSource)
