"""Job logs are cut where a launcher starts again, and only there."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import event
from tests.conftest import Diagnose
from triage import pipeline
from triage.attempts import Attempts, find, number_events
from triage.model import Event
from triage.vocabulary import Role


def banner(line: int, path: str = "train.log") -> Event:
    from dataclasses import replace

    return replace(event("none", role=Role.CONTEXT, line=line, path=path), group="attempt-start")


def failure(line: int, path: str = "train.log") -> Event:
    return event("rank-crash", line=line, path=path)


@pytest.mark.parametrize(
    ("banners", "progress", "failures", "starts"),
    [
        ([1], [], [], [1]),
        ([1, 5, 9], [], [], [1]),  # several banners of one start
        ([1, 100], [50], [], [1, 100]),
        ([1, 100], [], [60], [1, 100]),  # died before its first step
        ([1, 5, 100, 105], [50], [], [1, 100]),
        ([1, 100, 200], [50, 150], [], [1, 100, 200]),
        ([10], [5], [], [10]),
        ([1, 100], [100], [], [1, 100]),  # a start that is itself a failure of the one before
    ],
)
def test_a_start_counts_where_something_happened_since_the_last(
    banners: list[int], progress: list[int], failures: list[int], starts: list[int]
) -> None:
    found = find([*map(banner, banners), *map(failure, failures)], {"train.log": progress})
    assert list(found.starts["train.log"]) == starts


@pytest.mark.parametrize(
    ("banners", "restarts", "starts"),
    [
        ([], [60], [1, 60]),  # a rank's own log has no banner, only a counter that goes back
        ([1], [60], [1, 60]),
        ([1, 55], [60], [1, 55]),  # the banner before the first report is the start
        ([1, 45], [60], [1, 45, 60]),  # a banner before the last progress belongs to an earlier start
        ([], [30, 60], [1, 30, 60]),
    ],
)
def test_a_step_counter_that_goes_back_starts_an_attempt(
    banners: list[int], restarts: list[int], starts: list[int]
) -> None:
    progress = {"train.log": [10, 20, 30, 40, 50, 60, 70]}
    found = find(map(banner, banners), progress, {"train.log": restarts})
    assert list(found.starts["train.log"]) == starts


def test_progress_of_the_next_attempt_does_not_excuse_a_failure(diagnose: Diagnose) -> None:
    def steps(start: int, minute: int) -> list[str]:
        return [
            f"2026-03-01 02:{minute + n:02d}:00,000 INFO [Rank 3] step={start + 20 * n} loss=2.31 grad_norm=0.31"
            for n in range(12)
        ]

    died = [
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "/opt/x/train.py", line 5, in <module>',
        "[rank3]:     h = self.mlp(h)",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.16 GiB. GPU 3 has a total capacity of "
        "79.11 GiB of which 1.28 GiB is free. Including non-PyTorch memory, this process has 77.82 GiB memory in use.",
    ]
    again = "\n".join([*steps(400, 0), *died, *steps(540, 30)]) + "\n"
    goes_on = "\n".join([*steps(400, 0), *died, *steps(640, 30)]) + "\n"
    both = pipeline.Options(year=2026, attempt="all")
    first = diagnose({"rank3.log": again}, both).diagnoses[0]
    assert (first.class_, first.attempt) == ("gpu-oom", 1)
    lesser = diagnose({"rank3.log": goes_on}, both).diagnoses
    assert not lesser or lesser[0].confidence < first.confidence - 0.1


def test_files_are_cut_apart() -> None:
    found = find([banner(1), banner(100), banner(7, "b.log")], {"train.log": [50]})
    assert (found.last("train.log"), found.last("b.log"), found.last("c.log")) == (2, 1, None)


@pytest.mark.parametrize(
    ("line", "number", "end"),
    [(1, 1, 10), (5, 1, 10), (9, 1, 10), (10, 2, 20), (19, 2, 20), (20, 3, None), (999, 3, None)],
)
def test_a_line_belongs_to_the_attempt_that_began_before_it(line: int, number: int, end: int | None) -> None:
    attempts = Attempts({"t": [5, 10, 20]})
    assert attempts.number("t", line) == number
    if line >= 5:
        assert attempts.end("t", line) == end


def test_lines_before_the_first_banner_belong_to_the_first_attempt() -> None:
    assert Attempts({"t": [50]}).number("t", 3) == 1


def test_a_file_without_banners_has_no_attempts() -> None:
    attempts = find([failure(3)], {"train.log": [1, 2]})
    assert attempts.number("train.log", 3) is None
    assert attempts.end("train.log", 3) is None


def test_events_carry_the_attempt_of_their_first_line() -> None:
    attempts = Attempts({"train.log": [1, 100]})
    assert [e.attempt for e in number_events([failure(50), failure(150), failure(5, "other.log")], attempts)] == [
        1,
        2,
        None,
    ]


@given(st.sets(st.integers(1, 300), min_size=1), st.sets(st.integers(1, 300)))
def test_starts_are_banners_in_rising_order_with_something_between_them(banners: set[int], progress: set[int]) -> None:
    starts = list(find(map(banner, banners), {"train.log": sorted(progress)}).starts["train.log"])
    assert starts[0] == min(banners)
    assert set(starts) <= banners
    for before, after in pairwise(starts):
        assert any(before < line <= after for line in progress)
