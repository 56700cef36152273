"""Step time, throughput and loader wait: lasting slow-downs, drifts, slow ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from triage.series import columns
from triage.series.event import Kind, SeriesEvent
from triage.series.segments import Segment
from triage.series.stats import WINDOW, Shift, median, rises, spread
from triage.vocabulary import Level, Noise, Role, Strength

SLOWER = 0.04  # share of the baseline that makes a slow-down worth a diagnosis
VISIBLE = 0.01  # below this share a shift is not reported at all
SEVERE = 0.30
PEERS = 4
LEAST = 5  # points after the shift
BASE = 8  # points before it, unless it is severe: clocks and caches settle in the first steps

SLOWDOWN = Kind("series-step-time-shift", "straggler", Role.ROOT, Level.MEDIUM, Strength.MODERATE, Noise.RARE)
SLOWDOWN_SEVERE = Kind("series-step-time-shift", "straggler", Role.ROOT, Level.HIGH, Strength.MODERATE, Noise.RARE)
DRIFT = Kind("series-step-time-drift", "straggler", Role.ROOT, Level.MEDIUM, Strength.WEAK, Noise.RARE)
SLOW_RECOVERED = Kind(
    "series-slowdown-recovered", "straggler", Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON
)
SLOW_SMALL = Kind(
    "series-step-time-small-shift", "straggler", Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON
)
PERIODIC = Kind("series-slowdown-periodic", "straggler", Role.CONTEXT, Level.INFORMATIONAL, Strength.WEAK, Noise.COMMON)
LOADER = Kind("series-loader-wait", "storage-stall", Role.SYMPTOM, Level.MEDIUM, Strength.MODERATE, Noise.RARE)
SLOW_RANK = Kind("series-slow-rank", "straggler", Role.ROOT, Level.MEDIUM, Strength.MODERATE, Noise.RARE)


def slowdowns(metrics: Mapping[str, Segment]) -> list[SeriesEvent]:
    """Judge the step time of one attempt; throughput stands in for it, or vouches for it where both are printed."""
    time, rate = metrics.get("step_time_s"), metrics.get("throughput")
    chosen = time if time is not None and len(time) >= 8 else rate
    if chosen is None or _cumulative(chosen.values):
        return []
    found = rises(_slowness(chosen))
    if not found:
        return []
    if chosen is time and rate is not None and not _vouched(found, time, rate):
        return []
    ended = [shift for shift in found if shift.end is not None]
    lasting = [shift for shift in found if shift.end is None]
    if lasting and _recurs(chosen, lasting[-1]):
        lasting = lasting[:-1]
    events = [_periodic(chosen, ended)] if len(ended) >= 3 else [_recovered(chosen, shift) for shift in ended]
    if lasting:
        events += _lasting(chosen, lasting, metrics.get("data_time_s"))
    return [event for event in events if event is not None]


def _recurs(segment: Segment, last: Shift) -> bool:
    """The log may stop inside one more of the short slow stretches that came and went before: saving, evaluation."""
    middle = (last.baseline + last.level) / 2
    longest = run = 0
    for value in _slowness(segment)[: last.onset]:
        run = run + 1 if value > middle else 0
        longest = max(longest, run)
    return longest >= 3 and len(segment) - last.onset <= 2 * longest


def _slowness(segment: Segment) -> Sequence[float]:
    """Values that grow when the job gets slower."""
    return segment.values if segment.key.metric != "throughput" else columns.negated(segment.values)


def _cumulative(values: Sequence[float]) -> bool:
    """True if the values only ever grow in even steps from near 0: time since the start, not time per step."""
    if len(values) < 8:
        return False
    return columns.share_rising(values) >= 0.98 and values[-1] >= 0.5 * len(values) * (values[1] - values[0]) > 0


def _vouched(found: Sequence[Shift], time: Segment, rate: Segment) -> bool:
    """A longer step with unchanged samples per second is a larger batch, not a slow machine."""
    shift = found[-1]
    line = time.lines[shift.onset]
    before = [v for v, at in zip(rate.values, rate.lines, strict=True) if at < line][-WINDOW:]
    after = [v for v, at in zip(rate.values, rate.lines, strict=True) if at >= line][:WINDOW]
    if len(before) < 3 or len(after) < 3 or median(before) <= 0:
        return True
    lost = 1 - median(after) / median(before)
    expected = 1 - abs(shift.baseline) / abs(shift.level)
    return lost > 0.4 * expected


def _lasting(segment: Segment, shifts: Sequence[Shift], data: Segment | None) -> list[SeriesEvent]:
    first = shifts[0]
    tail = _slowness(segment)[-16:]
    final = median(tail[-min(len(tail), len(segment) - first.onset) :])
    share = _share(segment, first.baseline, final)
    drift = len(shifts) >= 3
    if share < VISIBLE or final < first.baseline + first.sigma:
        return []
    if share < SLOWER:
        return [_event(SLOW_SMALL, segment, first, final, share)]
    if len(segment) - first.onset < LEAST or (first.onset < BASE and share < SEVERE):
        return []
    if data is not None and (wait := _waits(segment, first, data, final)) is not None:
        return [wait]
    kind = DRIFT if drift else SLOWDOWN_SEVERE if share >= SEVERE else SLOWDOWN
    return [_event(kind, segment, first, final, share)]


def _share(segment: Segment, baseline: float, level: float) -> float:
    """Growth of the time per step as a share of the baseline; for rates the equivalent time is compared."""
    if segment.key.metric == "throughput":
        return baseline / level - 1 if level < 0 else 1.0
    return level / baseline - 1 if baseline > 0 else 0.0


def _waits(segment: Segment, shift: Shift, data: Segment, final: float) -> SeriesEvent | None:
    """The slow-down is loader wait if the data time grew by most of what the step time grew."""
    if segment.key.metric != "step_time_s":
        return None
    line = segment.lines[shift.onset]
    before = [v for v, at in zip(data.values, data.lines, strict=True) if at < line][-WINDOW:]
    after = [v for v, at in zip(data.values, data.lines, strict=True) if at >= line]
    if len(before) < 3 or len(after) < 3:
        return None
    grown = median(after) - median(before)
    if grown < 0.6 * (final - shift.baseline):
        return None
    text = (
        f"waiting for data grew from {median(before):.3g} s to {median(after):.3g} s per step at line {line}, "
        f"which is most of the slow-down from {shift.baseline:.4g} s to {final:.4g} s per step"
    )
    return _event(LOADER, segment, shift, final, _share(segment, shift.baseline, final), text)


def _event(kind: Kind, segment: Segment, shift: Shift, final: float, share: float, text: str = "") -> SeriesEvent:
    onset = _crossing(segment, shift, 0.5)
    onset = shift.onset if onset - shift.onset > 3 else onset  # a ramp is dated by its beginning
    full = _crossing(segment, shift, 0.9)
    end = shift.end
    name, unit = _wording(segment)
    base, level = abs(shift.baseline), abs(final)
    gradual = " in many small steps" if kind is DRIFT else ""
    lasts = f"back to normal at line {segment.lines[end]}" if end is not None else "and stays there"
    step = segment.step(onset)
    where = f"at step {step:g}" if step is not None else f"at line {segment.lines[onset]}"
    said = text or (
        f"{name} went from {base:.4g} to {level:.4g} {unit} ({100 * share:.1f} % slower) {where}{gradual}, {lasts}"
    )
    lines = dict.fromkeys(segment.lines[i] for i in (onset, full, max(onset - 1, 0), len(segment) - 1))
    return SeriesEvent(
        kind,
        segment.key.metric,
        segment.key.file,
        segment.lines[onset],
        said,
        lines=tuple(lines),
        rank=segment.key.rank,
        host=segment.key.host,
        time=segment.time(onset),
        step=step,
        value=level,
        baseline=base,
        sigma=shift.sigma,
        until_line=None if end is None else segment.lines[end],
        until_time=None if end is None else segment.time(end),
        recovered=end is not None,
        fields={"share": round(share, 4), "attempt": segment.attempt, "points_after": len(segment) - shift.onset},
    )


def _crossing(segment: Segment, shift: Shift, share: float) -> int:
    """First index from the onset that has gone ``share`` of the way to the new level."""
    limit = shift.baseline + share * (shift.level - shift.baseline)
    values = _slowness(segment)
    return next((i for i in range(shift.onset, len(values)) if values[i] >= limit), shift.onset)


def _wording(segment: Segment) -> tuple[str, str]:
    return ("step time", "s") if segment.key.metric == "step_time_s" else ("throughput", "per second")


def _recovered(segment: Segment, shift: Shift) -> SeriesEvent | None:
    share = _share(segment, shift.baseline, shift.level)
    return _event(SLOW_RECOVERED, segment, shift, shift.level, share) if share >= SLOWER else None


def _periodic(segment: Segment, shifts: Sequence[Shift]) -> SeriesEvent | None:
    """Several slow stretches that all end: the job's own saving or evaluation, or a guest at fixed hours."""
    shares = [_share(segment, shift.baseline, shift.level) for shift in shifts]
    if max(shares) < SLOWER:
        return None
    times = [time for shift in shifts if (time := segment.time(shift.onset)) is not None]
    name, _ = _wording(segment)
    text = f"{len(shifts)} slow stretches of the {name} that all ended, up to {100 * max(shares):.0f} % slower"
    event = _event(PERIODIC, segment, shifts[0], shifts[0].level, max(shares), text)
    stamps = " ".join(f"{time:.0f}" for time in times[:32])
    return replace(event, fields={**event.fields, "times": stamps}) if times else event


def slow_ranks(segments: Iterable[Segment]) -> list[SeriesEvent]:
    """Compare the ranks of one job: a rank whose own time is far from its peers' is the one they wait for."""
    by_rank: dict[int, Segment] = {}
    for segment in segments:
        if segment.key.rank is not None and len(segment) >= 5:
            by_rank[segment.key.rank] = segment
    if len(by_rank) < PEERS:
        return []
    levels = {rank: median(_slowness(segment)) for rank, segment in by_rank.items()}
    events = []
    for rank, level in levels.items():
        peers = [other for key, other in levels.items() if key != rank]
        center = median(peers)
        sigma = spread(sorted(peers), center)
        segment = by_rank[rank]
        share = _share(segment, center, level)
        if level - center > 6 * sigma and share >= SLOWER:
            shift = Shift(0, None, center, sigma, level, 0)
            name, unit = _wording(segment)
            text = (
                f"rank {rank} has a {name} of {abs(level):.4g} {unit} where its {len(peers)} peers have "
                f"{abs(center):.4g} ({100 * share:.0f} % slower)"
            )
            events.append(_event(SLOW_RANK, segment, shift, level, share, text))
    return events if len(events) <= max(1, len(levels) // 4) else []
