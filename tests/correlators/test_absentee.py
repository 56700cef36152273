"""The rank the others waited for: absent among the time-outs, or behind in its sequence numbers, in damaged logs too."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from triage import knowledge, pipeline
from triage.report import Report

WORLD = 64
LOCAL = 8
N = 80
HEARD = datetime(2026, 3, 1, 2, 30, tzinfo=timezone.utc)
TORCH = ("1.13", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.14")


@dataclass(frozen=True)
class Story:
    """One hang: which rank was silent, which torch wrote the lines, how the log was damaged."""

    seed: int
    torch: str
    silent: int
    seq: int
    speaks: bool  # the silent rank wrote ordinary lines before
    late: bool  # it reports after all, with the last sequence number it reached
    interleaved: bool
    torn: int  # lines that another rank's line interrupts
    truncated: bool  # the end of the log is lost
    per_host: bool  # a file for each host, else one for the job


def story(seed: int) -> Story:
    """Draw a hang; damage and versions are independent of each other."""
    rng = random.Random(seed)
    torch = TORCH[seed % len(TORCH)]
    return Story(
        seed=seed,
        torch=torch,
        silent=rng.randrange(WORLD),
        seq=rng.randrange(500, 90_000),
        speaks=rng.random() < 0.7,
        late=torch >= "2.3" and rng.random() < 0.25,
        interleaved=rng.random() < 0.7,
        torn=rng.choice((0, 0, 1, 3)),
        truncated=rng.random() < 0.3,
        per_host=rng.random() < 0.4,
    )


def _tag(torch: str, rank: int, at: datetime, line: int) -> str:
    """The prefix of c10d's C++ log (training-formats.md section 1)."""
    if torch in ("1.13", "2.1"):
        return f"[E ProcessGroupNCCL.cpp:{line}]"
    if torch in ("2.2", "2.3"):
        return f"[rank{rank}]:[E ProcessGroupNCCL.cpp:{line}]"
    return f"[rank{rank}]:[E{at:%m%d %H:%M:%S}.{at.microsecond:06d}123 ProcessGroupNCCL.cpp:{line}]"


def _status(torch: str, rank: int, work: int, queued: int) -> str | None:
    done = work - 1
    old = f"last enqueued NCCL work: {queued}, last completed NCCL work: {done}."
    if torch == "2.3":
        return f"[PG 0 Rank {rank}] Timeout at NCCL work: {work}, {old}"
    if torch == "2.4":
        watchdog = "Exception (either an error or timeout) detected by watchdog"
        return f"[PG 0 (default_pg) Rank {rank}] {watchdog} at work: {work}, {old}"
    if torch == "2.5":
        watchdog = "Exception (either an error or timeout) detected by watchdog"
        return f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] {watchdog} at work: {work}, {old}"
    started = f"last started work: {work} (ALLREDUCE), " if torch == "2.14" else ""
    new = f"PG status: last enqueued work: {queued}, {started}last completed work: {done}"
    if torch in ("2.6", "2.14"):
        pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        return f"{pg}  failure detected by watchdog at work sequence id: {work} {new}"
    return None


def complaint(torch: str, rank: int, work: int, queued: int, at: datetime) -> list[str]:
    """What one rank writes when its watchdog fires."""
    size = "TensorShape=[4194304], " if torch in ("1.13", "2.1") else "NumelIn=4194304, NumelOut=4194304, "
    ran = 1_800_000 + rank * 7 % 997
    lines = [
        f"{_tag(torch, rank, at, 616)} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={work}, "
        f"OpType=ALLREDUCE, {size}Timeout(ms)=1800000) ran for {ran} milliseconds before timing out."
    ]
    status = _status(torch, rank, work, queued)
    if status:
        lines.append(f"{_tag(torch, rank, at, 1834)} {status}")
    who = "" if torch == "1.13" else f"[Rank {rank}] "
    lines.append(
        f"{_tag(torch, rank, at, 630)} {who}To avoid data inconsistency, we are taking the entire process down."
    )
    return lines


def _mixed(rng: random.Random, voices: list[list[str]], *, interleaved: bool) -> list[str]:
    if not interleaved:
        return [line for voice in voices for line in voice]
    queues = [list(voice) for voice in voices]
    out = []
    while queues:
        queue = rng.choice(queues)
        out.append(queue.pop(0))
        queues = [q for q in queues if q]
    return out


def _tear(rng: random.Random, lines: list[str], times: int) -> list[str]:
    """Let the next line begin in the middle of one, whose rest follows on a line of its own."""
    out = list(lines)
    for _ in range(times):
        index = rng.randrange(len(out) - 1)
        cut = rng.randrange(len(out[index]) // 4, len(out[index]))
        head, tail, intruder = out[index][:cut], out[index][cut:], out[index + 1]
        out[index : index + 2] = [head + intruder, tail]
    return out


def write(told: Story, folder: Path) -> None:
    """Write the logs of a hang."""
    rng = random.Random(told.seed ^ 0x5EED)
    folder.mkdir(parents=True)
    groups = [range(h, h + LOCAL) for h in range(0, WORLD, LOCAL)] if told.per_host else [range(WORLD)]
    for number, ranks in enumerate(groups):
        greeting = [
            f"gpu-{rank // LOCAL:02d}:{4000 + rank}:{4200 + rank} [{rank % LOCAL}] NCCL INFO comm 0x55d0c0{rank:04x} rank {rank} "
            f"nranks {WORLD} cudaDev {rank % LOCAL} nvmlDev {rank % LOCAL} busId {rank % LOCAL + 1}b000 commId 0x1f3 - Init COMPLETE"
            for rank in ranks
            if told.speaks or rank != told.silent
        ]
        voices = []
        for rank in ranks:
            at = HEARD + timedelta(milliseconds=rng.randrange(900))
            if rank != told.silent:
                voices.append(complaint(told.torch, rank, told.seq, told.seq + 2, at))
            elif told.late:
                voices.append(complaint(told.torch, rank, told.seq - 1, told.seq - 1, at)[1:])
        lines = _tear(rng, _mixed(rng, voices, interleaved=told.interleaved), told.torn)
        if told.truncated:
            end = len(lines[-1]) // 2
            lines[-1] = lines[-1][:end]
        name = f"gpu-{number:02d}/train.log" if told.per_host else "train.log"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*greeting, *lines]), encoding="utf-8")


@pytest.fixture(scope="module")
def loaded() -> knowledge.Knowledge:
    return knowledge.load()


def diagnose(told: Story, folder: Path, loaded: knowledge.Knowledge) -> Report:
    write(told, folder)
    now = HEARD + timedelta(hours=1)
    return pipeline.postmortem([str(folder)], loaded, pipeline.Options(year=2026), now=now)


def named(report: Report) -> int | None:
    """Return the rank that the first diagnosis calls the culprit."""
    first = report.diagnoses[0] if report.diagnoses else None
    return first.place.rank if first else None


def test_the_silent_rank_is_named(tmp_path: Path, loaded: knowledge.Knowledge) -> None:
    """Of hangs of 64 ranks with interleaved, torn and truncated logs at least 95 % name the right rank."""
    wrong = []
    for seed in range(N):
        told = story(seed)
        rank = named(diagnose(told, tmp_path / str(seed), loaded))
        if rank != told.silent:
            wrong.append((rank, told))
    assert len(wrong) <= N * 0.05, "\n".join(f"named {rank}: {told}" for rank, told in wrong)


@pytest.mark.parametrize("torch", TORCH)
def test_nobody_is_blamed_when_all_complain(torch: str, tmp_path: Path, loaded: knowledge.Knowledge) -> None:
    """A near miss: every rank reports the same work."""
    told = replace(story(1), torch=torch, silent=WORLD, late=False, torn=0, truncated=False, speaks=True)
    report = diagnose(told, tmp_path / torch, loaded)
    assert report.diagnoses[0].class_ == "nccl-timeout"
    assert named(report) is None


def test_a_rank_inside_its_group_is_not_the_rank(tmp_path: Path, loaded: knowledge.Knowledge) -> None:
    """``[Rank 7]`` counts inside a process group; only the tag ``[rank15]:`` says who complained."""
    told = replace(story(2), torch="2.4", silent=7, late=False, torn=0, truncated=False, speaks=True, per_host=False)
    write(told, tmp_path / "job")
    log = tmp_path / "job" / "train.log"
    local = re.sub(r"\[Rank (\d+)\] Watch", lambda m: f"[Rank {int(m[1]) % LOCAL}] Watch", log.read_text("utf-8"))
    log.write_text(local, encoding="utf-8")
    report = pipeline.postmortem([str(tmp_path)], loaded, pipeline.Options(year=2026), now=HEARD)
    assert named(report) == 7


def test_another_job_taken_down_excuses_nobody(tmp_path: Path, loaded: knowledge.Knowledge) -> None:
    """Two jobs have a rank 9 each: the abort of one says nothing of the other's silence."""
    told = replace(story(3), torch="2.4", silent=9, late=False, torn=0, truncated=False, speaks=True, per_host=False)
    write(told, tmp_path / "slurm-501")
    (tmp_path / "slurm-501" / "train.log").rename(tmp_path / "slurm-501.out")
    log = tmp_path / "slurm-501.out"
    early = re.compile(r"^\[rank20\].*(Watchdog caught|last enqueued)")  # torn beyond reading; its later line is there
    kept = [line for line in log.read_text("utf-8").splitlines() if not early.search(line)]
    log.write_text("\n".join(kept), encoding="utf-8")
    (tmp_path / "slurm-502.out").write_text("\n".join(complaint("2.4", 9, 4, 4, HEARD)), encoding="utf-8")
    report = pipeline.postmortem([str(tmp_path)], loaded, pipeline.Options(year=2026), now=HEARD)
    assert 9 in {d.place.rank for d in report.diagnoses if d.place.job == "501"}, report.diagnoses
