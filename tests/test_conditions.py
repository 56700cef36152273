"""Counting and order over events: Sigma's words, with time spans, groups, and lines without a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.builders import event
from triage.conditions import derive
from triage.model import Event
from triage.signature import Condition, Signature
from triage.vocabulary import Level, Noise, Role, Scope, Status, Strength


def rule(
    type_: str, *names: str, span: float = 60.0, gte: int = 1, by: Sequence[str] = (), value: str | None = None
) -> Signature:
    return Signature(
        id="derived",
        title="Derived",
        class_="ib-link",
        role=Role.ROOT,
        level=Level.HIGH,
        status=Status.TEST,
        sources=frozenset({"kernel"}),
        scope=Scope.HOST,
        strength=Strength.STRONG,
        noise=Noise.RARE,
        condition=Condition(type_, names, tuple(by), span, gte, value),
    )


def hit(
    name: str,
    seconds: float | None,
    *,
    count: int = 1,
    host: str | None = "gpu-1",
    rank: int | None = None,
    **fields: str | int,
) -> Event:
    made = event("ib-link", seconds, signature=name, host=host, rank=rank, fields=dict(fields))
    return replace(made, count=count)


@pytest.mark.parametrize(
    ("seconds", "satisfied"),
    [
        ([0, 10, 20], True),
        ([0, 30, 60], True),
        ([0, 30, 61], False),
        ([0, 100, 110, 120], True),
        ([0, 10], False),
        ([], False),
        ([None, None, None], True),
    ],
)
def test_event_count_wants_so_many_within_the_span(seconds: list[float | None], satisfied: bool) -> None:
    found = derive([hit("down", s) for s in seconds], [rule("event_count", "down", gte=3)])
    assert bool(found) is satisfied


def test_repeats_inside_one_event_count() -> None:
    assert derive([hit("down", 0, count=3)], [rule("event_count", "down", gte=3)])


def test_repeats_spread_over_a_long_time_count_by_their_rate() -> None:
    slow = replace(hit("down", 0, count=10), last=hit("down", 6000).last)
    assert not derive([slow], [rule("event_count", "down", gte=3, span=60)])
    assert derive([slow], [rule("event_count", "down", gte=3, span=3600)])


def test_groups_are_counted_apart() -> None:
    spread = [hit("down", n, host=f"gpu-{n}") for n in range(3)]
    assert derive(spread, [rule("event_count", "down", gte=3)])
    assert not derive(spread, [rule("event_count", "down", gte=3, by=["host"])])
    both = [hit("down", n, host=host) for n in range(3) for host in ("gpu-1", "gpu-2")]
    assert {e.place.host for e in derive(both, [rule("event_count", "down", gte=3, by=["host"])])} == {"gpu-1", "gpu-2"}


def test_groups_may_name_captures() -> None:
    hits = [hit("down", n, port=n % 2) for n in range(4)]
    assert len(derive(hits, [rule("event_count", "down", gte=2, by=["port"])])) == 2


def test_value_count_counts_different_values_and_no_unknown_ones() -> None:
    same = [hit("down", n, port=1) for n in range(5)]
    other = [hit("down", n, port=n) for n in range(3)]
    unknown = [hit("down", n) for n in range(5)]
    wanted = [rule("value_count", "down", gte=3, value="port")]
    assert [bool(derive(hits, wanted)) for hits in (same, other, unknown)] == [False, True, False]
    assert derive(
        [hit("down", n, host=f"gpu-{n}") for n in range(3)], [rule("value_count", "down", gte=3, value="host")]
    )


@pytest.mark.parametrize(
    ("order", "temporal", "ordered"),
    [
        (["a", "b"], True, True),
        (["b", "a"], True, False),
        (["b", "a", "b"], True, True),
        (["a", "c", "b"], True, True),
        (["a"], False, False),
        (["a", "a"], False, False),
    ],
)
def test_temporal_wants_all_and_temporal_ordered_wants_them_in_order(
    order: list[str], temporal: bool, ordered: bool
) -> None:
    events = [hit(name, n) for n, name in enumerate(order)]
    assert bool(derive(events, [rule("temporal", "a", "b")])) is temporal
    assert bool(derive(events, [rule("temporal_ordered", "a", "b")])) is ordered


def test_what_lies_too_far_apart_is_no_sequence() -> None:
    assert not derive([hit("a", 0), hit("b", 61)], [rule("temporal_ordered", "a", "b")])
    assert not derive([hit("a", 0), hit("b", 61)], [rule("temporal", "a", "b")])
    assert derive([hit("a", 0), hit("a", 50), hit("b", 61)], [rule("temporal_ordered", "a", "b")])


def test_the_order_of_the_input_does_not_matter() -> None:
    events = [hit("a", 0), hit("b", 5)]
    assert derive(events[::-1], [rule("temporal_ordered", "a", "b")])


def test_rows_of_a_code_table_answer_to_their_family_and_to_their_own_name() -> None:
    events = [hit("gpu-xid/79", 0), hit("gpu-xid/48", 5)]
    assert derive(events, [rule("temporal", "gpu-xid/79", "gpu-xid/48")])
    assert derive(events, [rule("event_count", "gpu-xid", gte=2)])
    assert not derive(events, [rule("event_count", "gpu-xid/79", gte=2)])


def test_the_derived_event_stands_on_the_lines_that_satisfied_it() -> None:
    (found,) = derive([hit("down", n) for n in range(20)], [rule("event_count", "down", gte=3)])
    assert (found.signature, found.class_, found.role, found.count) == ("derived", "ib-link", Role.ROOT, 20)
    assert len(found.lines) <= 6
    assert "20 lines of down" in found.why
    assert found.first == hit("x", 0).first
    assert found.last == hit("x", 19).last


def test_what_recovered_counts_for_rates_and_for_nothing_else() -> None:
    events = [replace(hit(name, n), role=Role.CONTEXT, why="recovered") for n, name in enumerate("ab")]
    assert not derive(events, [rule("temporal", "a", "b")])
    assert derive(events, [rule("event_count", "a", "b", gte=2)])


def test_nothing_comes_of_nothing() -> None:
    assert (
        derive([hit("other", 0)], [rule("event_count", "down"), replace(rule("temporal", "x"), condition=None)]) == []
    )
