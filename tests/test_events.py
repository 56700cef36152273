"""Lines become events: placed, dated, counted; repeats join, copies count once, alarms that recovered are none."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import event
from tests.conftest import NOW, Diagnose
from triage import events, topology
from triage.events import drop_recovered
from triage.filescan import FileScan, FileScanner
from triage.knowledge import Knowledge
from triage.model import Event
from triage.pipeline import Options, make_clock
from triage.reading import pieces
from triage.vocabulary import Noise, Role

Read = Callable[[Mapping[str, str]], list[Event]]


@pytest.fixture
def read(knowledge: Knowledge) -> Read:
    def run(files: Mapping[str, str]) -> list[Event]:
        scanner = FileScanner(knowledge.plan)
        scans = [
            scanner.scan(FileScan(name, mtime=NOW.timestamp()), pieces(io.BytesIO(text.encode())))
            for name, text in files.items()
        ]
        where = topology.build(scans, {})
        return events.build(scans, where, make_clock(scans, where, Options(year=2026, tz="UTC"), NOW))

    return run


def xid(seconds: int, *, host: str = "gpu-12", bus: str = "3b", code: int = 79) -> str:
    at = f"{2 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    stamp = f"Mar  1 {at} {host} kernel: [{9000 + seconds}.500000]"
    return f"{stamp} NVRM: Xid (PCI:0000:{bus}:00): {code}, GPU has fallen off the bus.\n"


def of(found: list[Event], signature: str) -> list[Event]:
    return [e for e in found if e.signature.partition("/")[0] == signature]


def test_a_line_is_placed_and_dated_by_what_it_says(read: Read) -> None:
    (found,) = of(read({"gpu-12/kern.log": xid(17)}), "gpu-xid")
    assert (found.signature, found.place.host, found.place.pci, found.place.kind) == (
        "gpu-xid/79",
        "gpu-12",
        "0000:3b:00",
        "gpu",
    )
    assert found.first.at is not None
    assert found.first.at.isoformat() == "2026-03-01T02:00:17+00:00"
    assert (found.lines[0].path, found.lines[0].line, found.count) == ("gpu-12/kern.log", 1, 1)


def test_copies_of_a_kernel_line_are_one_event_counted_once(read: Read) -> None:
    log = "".join(map(xid, range(3)))
    (found,) = of(read({"gpu-12/kern.log": log, "gpu-12/syslog": log}), "gpu-xid")
    assert found.count == 3
    assert {line.path for line in found.lines} == {"gpu-12/kern.log", "gpu-12/syslog"}


@pytest.mark.parametrize(
    ("second", "number"),
    [
        ({"seconds": 1}, 1),
        ({"seconds": 1, "bus": "86"}, 2),
        ({"seconds": 1, "host": "gpu-13"}, 2),
        ({"seconds": 1, "code": 48}, 2),
    ],
)
def test_other_devices_hosts_and_codes_are_other_events(read: Read, second: dict[str, int | str], number: int) -> None:
    log = xid(0) + xid(**second)  # type: ignore[arg-type]
    assert len(of(read({"all.log": log}), "gpu-xid")) == number


@pytest.mark.parametrize(("gap", "number"), [(599, 1), (600, 1), (601, 2), (3000, 2)])
def test_repeats_are_split_at_gaps_of_ten_minutes(read: Read, gap: int, number: int) -> None:
    found = of(read({"gpu-12/kern.log": xid(0) + xid(10) + xid(10 + gap)}), "gpu-xid")
    assert len(found) == number
    assert sum(e.count for e in found) == 3


def test_a_long_run_is_counted_in_full_and_shows_few_lines(read: Read) -> None:
    (found,) = of(read({"gpu-12/kern.log": "".join(xid(n // 2) for n in range(900))}), "gpu-xid")
    assert (found.count, found.count_is_lower_bound) == (900, False)
    assert len(found.lines) <= 6
    assert found.lines[0].line == 1
    assert found.lines[-1].line == 900
    assert found.last.at is not None
    assert found.first.at is not None
    assert found.last.at - found.first.at == timedelta(seconds=449)


def test_a_run_that_is_too_long_to_keep_stays_one_event(read: Read) -> None:
    """Only the first 200 and the last 50 hits are kept: the hole between them is no gap in the log."""
    found = of(read({"gpu-12/kern.log": "".join(xid(5 * n) for n in range(900))}), "gpu-xid")
    assert [e.count for e in found] == [900]


def test_split_runs_lose_no_count(read: Read) -> None:
    found = of(
        read({"gpu-12/kern.log": "".join(map(xid, range(240))) + "".join(xid(3000 + n) for n in range(240))}), "gpu-xid"
    )
    assert sum(e.count for e in found) == 480 or any(e.count_is_lower_bound for e in found)


def test_events_come_in_the_order_of_time_whatever_the_order_of_files(read: Read) -> None:
    files = {"gpu-13/kern.log": xid(50, host="gpu-13"), "gpu-12/kern.log": xid(10)}
    for order in (files, dict(reversed(files.items()))):
        assert [e.place.host for e in of(read(order), "gpu-xid")] == ["gpu-12", "gpu-13"]


def test_a_time_out_is_dated_back_by_the_time_it_waited(read: Read) -> None:
    line = (
        "[rank3]:[E301 02:40:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=1234, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600033 milliseconds before timing out.\n"
    )
    (found, *_) = [e for e in read({"train.log": line}) if e.class_ == "nccl-timeout" and e.fields.get("ran_for_ms")]
    assert found.place.rank == 3
    assert found.first.at is not None
    assert found.effective.at is not None
    assert found.first.at - found.effective.at == timedelta(milliseconds=600033)


def test_an_undated_line_takes_the_time_of_the_line_above_it(read: Read) -> None:
    log = "2026-03-01 02:17:00,000 INFO step 100 loss 2.3\nUNRELATED\n"
    log += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    found = [e for e in read({"train.log": log}) if e.class_ == "gpu-oom"]
    assert found
    assert found[0].first.at is not None
    assert found[0].first.at.isoformat().startswith("2026-03-01T02:17:00")
    assert found[0].first.uncertainty_s >= 1


@pytest.mark.parametrize(
    ("recovery", "recovered"),
    [
        ({"seconds": 5, "host": "gpu-1"}, True),
        ({"seconds": 60, "host": "gpu-1"}, True),
        ({"seconds": 61, "host": "gpu-1"}, False),
        ({"seconds": -5, "host": "gpu-1"}, False),
        ({"seconds": 5, "host": "gpu-2"}, False),
        ({"seconds": 5, "host": None}, True),
        ({"seconds": 5, "host": "gpu-1", "device": "mlx5_1"}, False),
        ({"seconds": 5, "host": "gpu-1", "device": "mlx5_0"}, True),
        ({"seconds": None, "host": "gpu-1", "line": 99}, True),
        ({"seconds": None, "host": "gpu-1", "line": 1}, False),
        ({"seconds": None, "host": "gpu-1", "line": 99, "path": "other.log"}, False),
    ],
)
def test_an_alarm_that_recovered_in_time_and_place_is_context(
    recovery: dict[str, str | int | None], recovered: bool
) -> None:
    alarm = event("ib-link", 0, signature="down", host="gpu-1", device="mlx5_0", line=10)
    seconds = recovery.pop("seconds")
    path, line = str(recovery.pop("path", "train.log")), recovery.pop("line", 50)
    up = event("ib-link", seconds, signature="up", path=path, line=line, **recovery)  # type: ignore[arg-type]
    first = drop_recovered([alarm, up], {"down": (("up",), 60.0)})[0]
    assert (first.role is Role.CONTEXT and first.why == "recovered") is recovered


@pytest.mark.parametrize(("seconds", "noise"), [(300, Noise.COMMON), (600, Noise.COMMON), (601, Noise.RARE)])
def test_an_alarm_that_recovered_late_speaks_only_with_its_consequences(seconds: int, noise: Noise) -> None:
    alarm = replace(event("ib-link", 0, signature="down", host="gpu-1"), noise=Noise.RARE)
    up = event("ib-link", seconds, signature="up", host="gpu-1")
    first = drop_recovered([alarm, up], {"down": (("up",), 60.0)})[0]
    assert (first.role, first.noise) == (Role.ROOT, noise)


NFS = "Mar  1 02:{minute:02d}:03 kestrel-07 kernel: [81234.{minute:06d}] {text}\n"


@pytest.mark.parametrize(
    ("ends", "classes"),
    [(6, []), (40, ["storage-stall"])],  # a quarter of an hour later it is an outage whatever came of it
)
def test_a_short_outage_that_ended_is_no_incident(diagnose: Diagnose, ends: int, classes: list[str]) -> None:
    log = NFS.format(minute=1, text="nfs: server nas01 not responding, still trying")
    log += NFS.format(minute=3, text="INFO: task pt_data_worker:31863 blocked for more than 122 seconds.")
    log += NFS.format(minute=ends, text="nfs: server nas01 OK")
    assert [d.class_ for d in diagnose({"kern.log": log}).diagnoses] == classes


def test_one_line_does_not_speak_for_a_cause_and_for_a_symptom_of_another(read: Read) -> None:
    found = read({"gpu-12/kern.log": xid(0)})
    roots = {(line.path, line.line): e.class_ for e in found if e.role is Role.ROOT for line in e.lines}
    for e in found:
        if e.role is Role.SYMPTOM:
            assert roots.get((e.lines[0].path, e.lines[0].line), e.class_) == e.class_


def test_every_restart_of_a_loop_is_an_attempt(read: Read) -> None:
    """An event shows six lines at most; the starts of a job are all needed."""
    from triage import attempts

    log = "".join(
        f"2026-03-01 02:{2 * n:02d}:00,000 INFO ***** Running training *****\n"
        f"2026-03-01 02:{2 * n:02d}:30,000 INFO step {n} loss 2.3\n"
        for n in range(12)
    )
    starts = attempts.find(read({"train.log": log}), {"train.log": list(range(2, 25, 2))})
    assert starts.last("train.log") == 12
