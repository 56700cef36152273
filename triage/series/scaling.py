"""Dynamic loss scaling: an overflow storm and a collapsed scale versus the usual few overflows of a start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isnan

from triage.series.event import Kind, SeriesEvent
from triage.series.health import event, place
from triage.series.segments import Segment
from triage.series.stats import median
from triage.vocabulary import Level, Noise, Role, Strength

STORM = Kind("series-overflow-storm", "gradient-explosion", Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
COLLAPSE = Kind("series-loss-scale-collapse", "gradient-explosion", Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
MANY = 5
SHARE = 0.3  # overflows per step that make a storm
RISE = 1.2  # factor of the loss that tells a storm from the search for a first scale
START = 50  # steps of a run in which the scale may still be searched for


def storms(metrics: Mapping[str, Segment], overflow: Segment | None) -> Iterator[SeriesEvent]:
    """Judge the overflows of one attempt; ``overflow`` holds scales after each overflow, without steps of their own."""
    loss = metrics.get("loss") or metrics.get("throughput")
    if overflow is not None and len(overflow) >= 1:
        yield from _collapsed(overflow)
        yield from _stormy(overflow, metrics, loss)
    yield from _skipping(metrics)


def _collapsed(overflow: Segment) -> Iterator[SeriesEvent]:
    """Below 1 a scale shrinks the loss: the gradients overflow whatever the scaler does."""
    known = [i for i, value in enumerate(overflow.values) if not isnan(value)]
    below = [i for i in known if 0 < overflow.values[i] < 1]
    if len(below) < 2 or overflow.values[known[-1]] >= 1:
        return
    values = [overflow.values[i] for i in below]
    text = f"the loss scale fell below 1, from {values[0]:g} to {values[-1]:g} in {len(below)} overflows"
    yield event(COLLAPSE, overflow, below[-1], text, also=[below[0]])


def _stormy(overflow: Segment, metrics: Mapping[str, Segment], train: Segment | None) -> Iterator[SeriesEvent]:
    """Many overflows per step, to the end of the log, while the loss rises or long after the start."""
    marks = [] if train is None else list(train.lines)
    gaps = [bisect_left(marks, line) for line in overflow.lines]
    distinct = dict.fromkeys(zip(gaps, map(repr, overflow.values), strict=True))
    order = {key: i for i, key in reversed(list(enumerate(zip(gaps, map(repr, overflow.values), strict=True))))}
    firsts = [order[key] for key in distinct]
    run = _last_run(firsts, gaps, train)
    if len(run) < MANY or (train is not None and len(marks) - gaps[run[-1]] > 2):
        return
    loss = metrics.get("loss")
    rising = loss is not None and _rises(loss, overflow.lines[run[0]])
    late = train is not None and _progress(train, 0, gaps[run[0]]) > START
    if not (rising or (late and len(run) >= 2 * MANY)):
        return
    text = (
        f"{len(run)} overflows in a row from line {overflow.lines[run[0]]} to the end, "
        f"loss scale down to {overflow.values[run[-1]]:g}"
    )
    found = event(STORM, overflow, run[0], text, also=[run[1], run[-1]])
    if rising and loss is not None:
        after = next((i for i, line in enumerate(loss.lines) if line > overflow.lines[run[0]]), len(loss) - 1)
        found = replace(
            found,
            text=f"{text}, while the loss rose to {loss.values[-1]:.4g}",
            lines=(*found.lines[:1], loss.lines[after], *found.lines[1:]),
        )
    yield found


def _last_run(firsts: list[int], gaps: list[int], train: Segment | None) -> list[int]:
    """The last stretch of overflows with at least SHARE of them per step between neighbours."""
    run = firsts[-1:]
    for earlier in reversed(firsts[:-1]):
        steps = _progress(train, gaps[earlier], gaps[run[0]]) if train is not None else 1.0
        if steps > 1 / SHARE:
            break
        run.insert(0, earlier)
    return run


def _progress(train: Segment, start: int, end: int) -> float:
    """Steps between two positions among the train lines."""
    if end <= start or not len(train):
        return 0.0
    first, last = train.steps[min(start, len(train) - 1)], train.steps[min(end, len(train) - 1)]
    return last - first if not isnan(last - first) else float(end - start)


def _rises(loss: Segment, line: int) -> bool:
    before = [v for v, at in zip(loss.values, loss.lines, strict=True) if at < line and not isnan(v)][-8:]
    after = [v for v, at in zip(loss.values, loss.lines, strict=True) if at >= line]
    return bool(before and after) and not median(after[-3:]) < RISE * median(before)


def _skipping(metrics: Mapping[str, Segment]) -> Iterator[SeriesEvent]:
    """Every one of the last lines reports skipped iterations, long after the start."""
    skipped = metrics.get("skipped_iterations")
    if skipped is None or len(skipped) < MANY + 20:
        return
    start = len(skipped)
    while start > 0 and skipped.values[start - 1] > 0:
        start -= 1
    if len(skipped) - start >= MANY and start >= 20:
        total = sum(skipped.values[start:])
        text = f"{total:g} iterations skipped on the last {len(skipped) - start} lines, from {place(skipped, start)} on"
        yield event(STORM, skipped, start, text, also=[len(skipped) - 1])
