"""Loss, gradient norm and loss scale: NaN, vanished and frozen loss, spikes, divergence, overflow storms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, isfinite, isnan, log

from triage.series import columns
from triage.series.event import Kind, SeriesEvent
from triage.series.segments import Segment, distinct
from triage.series.stats import Shift, median, rises, spread
from triage.vocabulary import Level, Noise, Role, Strength

_CLASS = "gradient-explosion"
NAN = Kind("series-loss-nan", _CLASS, Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
VANISHED = Kind("series-loss-vanished", _CLASS, Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
FROZEN = Kind("series-loss-frozen", _CLASS, Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
GRAD_NAN = Kind("series-grad-norm-nan", _CLASS, Role.ROOT, Level.HIGH, Strength.MODERATE, Noise.RARE)
NAN_RECOVERED = Kind("series-nan-recovered", _CLASS, Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON)
SPIKE = Kind("series-loss-jump", _CLASS, Role.ROOT, Level.HIGH, Strength.STRONG, Noise.RARE)
SPIKE_RECOVERED = Kind(
    "series-loss-spike-recovered", _CLASS, Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON
)
LEVEL = Kind("series-loss-level", _CLASS, Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON)
GROWTH = Kind("series-grad-norm-growth", _CLASS, Role.ROOT, Level.MEDIUM, Strength.MODERATE, Noise.RARE)
GROWTH_RECOVERED = Kind(
    "series-grad-norm-recovered", _CLASS, Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON
)

JUMP = 0.15  # share of the level that a lasting rise of the loss must have
CLEAR = 6.0  # sigma that it must have besides
STEEP = 0.30  # share that decides when only the last few points show it
WARM_UP = 20  # first points of a run: the loss may do anything
GROWN = 10.0  # factor of the gradient norm
MANY = 5


def event(
    kind: Kind,
    segment: Segment,
    index: int,
    text: str,
    *,
    shift: Shift | None = None,
    also: Sequence[int] = (),
    end: int | None = None,
) -> SeriesEvent:
    """Make an event at ``index`` of ``segment``; ``also`` are further indexes that show it."""
    lines = dict.fromkeys(segment.lines[i] for i in (index, *also))
    return SeriesEvent(
        kind,
        segment.key.metric,
        segment.key.file,
        segment.lines[index],
        text,
        lines=tuple(lines)[:4],
        rank=segment.key.rank,
        host=segment.key.host,
        time=segment.time(index),
        step=segment.step(index),
        value=segment.values[index],
        baseline=None if shift is None else shift.baseline,
        sigma=None if shift is None else shift.sigma,
        until_line=None if end is None else segment.lines[end],
        until_time=None if end is None else segment.time(end),
        recovered=end is not None,
        fields={"attempt": segment.attempt},
    )


def place(segment: Segment, index: int) -> str:
    """Where a point is, for a sentence."""
    step = segment.step(index)
    return f"step {step:g}" if step is not None else f"line {segment.lines[index]}"


def unhealthy(metrics: Mapping[str, Segment]) -> list[SeriesEvent]:
    """Judge the loss and the gradient norm of one attempt."""
    loss, norm = metrics.get("loss"), metrics.get("grad_norm")
    events = [*_not_finite(metrics), *_vanished(metrics), *_frozen(loss, norm)]
    if loss is not None:
        events += _jumps(distinct(loss))
    if norm is not None:
        events += _growth(distinct(norm))
    return events


def _runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Half-open index ranges of consecutive true flags."""
    start: int | None = None
    for index, flag in enumerate((*flags, False)):
        if flag and start is None:
            start = index
        elif not flag and start is not None:
            yield start, index
            start = None


def _not_finite(metrics: Mapping[str, Segment]) -> Iterator[SeriesEvent]:
    for name, kind, least in (("loss", NAN, 1), ("grad_norm", GRAD_NAN, 3)):
        segment = metrics.get(name)
        if segment is None or columns.all_finite(segment.values):
            continue
        runs = list(_runs([not isfinite(value) for value in segment.values]))
        start, end = runs[-1]
        said = "NaN" if isnan(segment.values[start]) else "infinite"
        what = name.replace("_", " ")
        if end == len(segment) and end - start >= least:
            text = f"{what} is {said} from {place(segment, start)} on, {end - start} times to the end of the attempt"
            yield event(kind, segment, start, text, also=[max(start - 1, 0)])
        elif end < len(segment) and name == "loss":
            text = f"{what} was {said} at {place(segment, start)} and finite again after {end - start} points"
            yield event(NAN_RECOVERED, segment, start, text, end=end)


def _vanished(metrics: Mapping[str, Segment]) -> Iterator[SeriesEvent]:
    """Megatron prints no loss field when the loss is NaN (it compares ``> 0``): LG-01."""
    missing, loss = metrics.get("loss_missing"), metrics.get("loss")
    if missing is None:
        return
    nan_lines = {line for line, value in _items(metrics.get("nan_iterations")) if value > 0}
    silent = [i for i, value in enumerate(missing.values) if value == 0 or missing.lines[i] in nan_lines]
    if not silent or ((loss is None or len(loss) < 3) and not nan_lines):
        return
    first = silent[0]
    last_loss = -1 if loss is None else loss.lines[-1]
    if missing.lines[silent[-1]] < last_loss:
        text = f"the loss was missing (NaN) on {len(silent)} iteration lines from {place(missing, first)} and came back"
        yield replace(event(NAN_RECOVERED, missing, first, text), recovered=True)
        return
    first = next(i for i in silent if missing.lines[i] > last_loss)
    count = sum(i >= first for i in silent)
    text = f"the iteration line has no loss any more from {place(missing, first)} on ({count} lines): the loss is NaN"
    yield event(VANISHED, missing, first, text)


def _items(segment: Segment | None) -> list[tuple[int, float]]:
    return [] if segment is None else list(zip(segment.lines, segment.values, strict=True))


def _frozen(loss: Segment | None, norm: Segment | None) -> Iterator[SeriesEvent]:
    """A trainer that filters NaN prints loss 0.0, or the same loss again, beside a NaN gradient norm: LG-22."""
    if loss is None or norm is None or columns.all_finite(norm.values):
        return
    bad = {line for line, value in _items(norm) if not isfinite(value)}
    flags = [
        line in bad and (value == 0.0 or (i > 0 and value == loss.values[i - 1]))
        for i, (line, value) in enumerate(zip(loss.lines, loss.values, strict=True))
    ]
    for start, end in list(_runs(flags))[-1:]:
        if end == len(loss) and (end - start >= 2 or loss.values[start] == 0.0):
            text = (
                f"loss is printed as {loss.values[start]:g} with a gradient norm of NaN from {place(loss, start)} on "
                f"({end - start} lines): the trainer hides a NaN loss"
            )
            yield event(FROZEN, loss, start, text, also=[max(start - 1, 0)])


def _jumps(loss: Segment) -> Iterator[SeriesEvent]:
    found = rises(loss.values)
    for shift in found:
        share = (shift.level - shift.baseline) / max(abs(shift.baseline), 1e-12)
        if shift.end is not None:
            top = loss.values[shift.peak]
            if top > (1 + JUMP) * abs(shift.baseline):
                text = (
                    f"loss rose from {shift.baseline:.4g} to {top:.4g} at {place(loss, shift.peak)} and was back at "
                    f"{place(loss, shift.end)}"
                )
                yield event(SPIKE_RECOVERED, loss, shift.peak, text, shift=shift, also=[shift.onset], end=shift.end)
            continue
        final = median(loss.values[-8:])
        lasting = final >= shift.baseline + 0.5 * (shift.level - shift.baseline)
        clear = share >= JUMP and shift.level - shift.baseline >= CLEAR * shift.sigma
        grave = clear and lasting and len(loss) - shift.onset >= MANY
        if not lasting and shift is not found[-1]:
            continue
        text = (
            f"loss went from {shift.baseline:.4g} to {shift.level:.4g} ({100 * share:+.0f} %) "
            f"at {place(loss, shift.onset)} and stays high"
        )
        yield event(
            SPIKE if grave else LEVEL, loss, shift.onset, text, shift=shift, also=[max(shift.onset - 1, 0), shift.peak]
        )
    if not any(shift.end is None for shift in found):
        yield from _last_points(loss)


def _last_points(loss: Segment) -> Iterator[SeriesEvent]:
    """The last three or more points stand far above everything before: the log ends while the loss explodes."""
    if len(loss) < WARM_UP:
        return
    base = median(loss.values[-WARM_UP - 8 : -4] or loss.values[:-4])
    sigma = spread(loss.values[-WARM_UP - 8 : -4], base)
    limit = max(base + 8 * sigma, base + STEEP * abs(base))
    tail = len(loss)
    while tail > 0 and loss.values[tail - 1] > limit:
        tail -= 1
    if 3 <= len(loss) - tail <= 8:
        text = (
            f"loss left {base:.4g} at {place(loss, tail)} and reached {max(loss.values[tail:]):.4g} when the log ends"
        )
        shift = Shift(tail, None, base, sigma, loss.values[-1], len(loss) - 1)
        yield event(SPIKE, loss, tail, text, shift=shift, also=[len(loss) - 1])


def _growth(norm: Segment) -> Iterator[SeriesEvent]:
    """Divergence: the gradient norm grows by a large factor over tens of steps and does not come back."""
    kept = columns.positive(norm.values)
    points = norm if len(kept) == len(norm) else norm.pick(kept)
    logs = columns.logs(points.values)
    if len(logs) < 6:
        return
    found = rises(logs)
    yield from (_calmed(points, shift) for shift in found if shift.end is not None and _fold(logs, shift) >= GROWN)
    lasting = [shift for shift in found if shift.end is None]
    if not lasting and not _climbs(logs):
        return
    onset, base = (lasting[0].onset, lasting[0].baseline) if lasting else (0, logs[0])
    final = median(logs[-3:])
    if (factor := _exp(final - base)) >= GROWN:
        text = (
            f"gradient norm grew {factor:.0f}-fold from {exp(base):.4g} at {place(points, onset)} "
            f"to {exp(final):.4g} and did not come back"
        )
        last = max(range(len(logs) - 3, len(logs)), key=logs.__getitem__)
        fields = {"attempt": norm.attempt, "factor": round(factor, 1)}
        yield replace(event(GROWTH, points, last, text, also=[onset]), baseline=exp(base), fields=fields)


def _fold(logs: Sequence[float], shift: Shift) -> float:
    return _exp(logs[shift.peak] - shift.baseline)


def _exp(value: float) -> float:
    """``exp`` that saturates: a hostile log may grow from 1e-300 to 1e300."""
    return exp(min(value, 700.0))


def _calmed(points: Segment, shift: Shift) -> SeriesEvent:
    top = points.values[shift.peak]
    text = (
        f"gradient norm rose {_exp(log(top) - shift.baseline):.0f}-fold to {top:.4g} at {place(points, shift.peak)} "
        f"and was back at {place(points, shift.end or 0)}"
    )
    return event(GROWTH_RECOVERED, points, shift.peak, text, end=shift.end)


def _climbs(logs: Sequence[float]) -> bool:
    return len(logs) >= 6 and columns.share_rising(logs) >= 0.85
