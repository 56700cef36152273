"""Counting and order over events (Sigma correlation): signatures whose ``condition`` names other signatures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone

from triage.model import Event, Place, Scalar
from triage.signature import Condition, Signature
from triage.vocabulary import Role

_FAR = datetime.max.replace(tzinfo=timezone.utc)
_PLACE_FIELDS = frozenset(f.name for f in fields(Place))


def derive(events: Sequence[Event], signatures: Iterable[Signature]) -> list[Event]:
    """Return one event per satisfied condition and group; its lines are those of the events that satisfied it."""
    by_id: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_id[event.signature].append(event)
        if "/" in event.signature:
            by_id[event.signature.partition("/")[0]].append(event)
    out: list[Event] = []
    for signature in signatures:
        condition = signature.condition
        if condition is None:
            continue
        members = [
            e
            for name in condition.signatures
            for e in by_id.get(name, ())
            if e.why != "recovered" or condition.type == "event_count"
        ]
        for group in _groups(members, condition.group_by):
            chosen = _satisfied(group, condition)
            if chosen:
                out.append(_event(signature, chosen))
    return out


def _groups(events: Iterable[Event], names: Sequence[str]) -> Iterator[list[Event]]:
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for event in events:
        groups[tuple(_value(event, name) for name in names)].append(event)
    for members in groups.values():
        yield sorted(members, key=lambda e: (e.first.at or _FAR, e.lines[0].path, e.order))


def _value(event: Event, name: str) -> Scalar:
    if name in _PLACE_FIELDS and (value := getattr(event.place, name)) is not None:
        return value  # type: ignore[no-any-return]
    return event.fields.get(name)


def _satisfied(events: Sequence[Event], condition: Condition) -> list[Event]:
    span = timedelta(seconds=condition.timespan_s)
    start = 0
    for end in range(len(events)):
        while start < end and not _within(events[start], events[end], span):
            start += 1
        window = list(events[start : end + 1])
        if _holds(window, condition):
            return _grow(window, events[end + 1 :], span)
    return []


def _within(first: Event, last: Event, span: timedelta) -> bool:
    return first.last.at is None or last.first.at is None or last.first.at - first.last.at <= span


def _grow(window: list[Event], rest: Sequence[Event], span: timedelta) -> list[Event]:
    for event in rest:
        if not _within(window[-1], event, span):
            break
        window.append(event)
    return window


def _holds(window: Sequence[Event], condition: Condition) -> bool:
    if condition.type == "event_count":
        return sum(_rate_bound(e, condition.timespan_s) for e in window) >= condition.gte
    if condition.type == "value_count":
        return len({_value(e, condition.value or "") for e in window} - {None}) >= condition.gte
    seen = [e.signature if e.signature in condition.signatures else e.signature.partition("/")[0] for e in window]
    if condition.type == "temporal":
        return set(condition.signatures) <= set(seen)
    position = 0
    for name in seen:
        if position < len(condition.signatures) and name == condition.signatures[position]:
            position += 1
    return position == len(condition.signatures)


def _rate_bound(event: Event, timespan_s: float) -> float:
    """Return how many of an event's repeats fall, on average, into the span."""
    if event.first.at is None or event.last.at is None:
        return event.count
    length = (event.last.at - event.first.at).total_seconds()
    return event.count if length <= timespan_s else event.count * timespan_s / length


def _event(signature: Signature, members: Sequence[Event]) -> Event:
    lines = tuple(line for event in members for line in event.lines)
    shown = lines if len(lines) <= 6 else (*lines[:5], lines[-1])
    first = members[0]
    count = sum(e.count for e in members)
    return replace(
        first,
        id=f"c:{signature.id}:{first.id}",
        signature=signature.id,
        title=signature.title,
        class_=signature.class_,
        role=Role(signature.role),
        level=signature.level,
        strength=signature.strength,
        noise=signature.noise,
        scope=signature.scope,
        group=signature.group,
        variant=signature.variant,
        last=members[-1].last,
        count=count,
        lines=shown,
        why=f"{count} lines of {', '.join(sorted({e.signature for e in members}))}",
    )
