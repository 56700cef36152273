"""The index and the search give what asking every pair and computing every gain anew would give."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import EDGES, PRIORS, event
from triage.causes import ACCEPT, MAX_ROOTS, UNKNOWN_STRENGTH, UNKNOWN_TIMEOUT, Hypothesis, Item, paths
from triage.gates import Gate
from triage.hypotheses import make_items, open_hypotheses
from triage.model import Event
from triage.network import Cover, Network, accept, connect, gain, given_the_first, likelier, share
from triage.vocabulary import UNKNOWN_CLASS, Noise, Role, Scope, Strength

ROUTES = paths(EDGES)
CLASSES = ["gpu-ecc", "ib-link", "rank-crash", "nccl-timeout", "storage-stall", "host-oom", "straggler"]

events = st.builds(
    lambda class_, seconds, role, strength, noise, scope, place, peer: event(
        class_, seconds, role=role, strength=strength, noise=noise, scope=scope, fields={"peer_host": peer} if peer else {}, **place
    ),
    st.sampled_from(CLASSES),
    st.none() | st.integers(0, 20_000).map(float),
    st.sampled_from([Role.ROOT, Role.SYMPTOM, Role.CONFIRMATION]),
    st.sampled_from(list(Strength)),
    st.sampled_from(list(Noise)),
    st.sampled_from([Scope.DEVICE, Scope.HOST, Scope.RANK, Scope.JOB, Scope.RACK]),
    st.fixed_dictionaries(
        {
            "host": st.sampled_from([None, "h1", "h2", "h3"]),
            "job": st.sampled_from([None, "j1", "j2"]),
            "rank": st.sampled_from([None, 0, 1]),
            "pci": st.sampled_from([None, "0000:3b:00", "0000:9b:00"]),
            "rack": st.sampled_from([None, "r1", "r2"]),
        }
    ),
    st.sampled_from([None, None, None, "h1", "h2"]),
)  # fmt: skip
job_hosts = st.sampled_from([{}, {"j1": {"h1", "h2"}}, {"j1": {"h1"}, "j2": {"h3"}}])


def every_pair(items: Sequence[Item], hypotheses: Sequence[Hypothesis], gate: Gate) -> dict[str, dict[int, float]]:
    """The weights by definition: each hypothesis asks about each item on each path."""
    weights: dict[str, dict[int, float]] = {}
    for h in hypotheses:
        found: dict[int, float] = {}
        for index, item in enumerate(items):
            if h.class_ == UNKNOWN_CLASS:
                if item.role is not Role.ROOT and gate(h, item, None) > 0:
                    found[index] = UNKNOWN_TIMEOUT if item.class_ == "nccl-timeout" else UNKNOWN_STRENGTH
                continue
            chances = [item.strength * gate(h, item, None)] if item.class_ == h.class_ else []
            if not (h.opener and h.opener.role is Role.SYMPTOM and item.role is Role.ROOT):
                ways = [path for path in ROUTES.get(h.class_, ()) if path.target == item.class_]
                chances += [path.chance * max(item.strength, 0.5) * gate(h, item, path) for path in ways]
            if max(chances, default=0.0) > 0:
                found[index] = max(chances)
        weights[h.key] = found if h.class_ == UNKNOWN_CLASS else given_the_first(items, found, h.class_)
    return weights


def unexplained(network: Network, roots: Sequence[Hypothesis]) -> list[float]:
    """The chance, for each item, that neither chance nor the best of the roots produces it."""
    return [
        (1 - item.leak) * (1 - max((network.weights[r.key].get(index, 0.0) for r in roots), default=0.0))
        for index, item in enumerate(network.items)
    ]


def greedy(network: Network) -> list[Hypothesis]:
    """The search by definition, up to exchanges: every gain anew in every round."""
    roots: list[Hypothesis] = []
    while len(roots) < MAX_ROOTS:
        misses = unexplained(network, roots)
        scored = [(gain(network, misses, h), h.key, h) for h in network.hypotheses if h not in roots]
        value, _, best = max(scored, key=lambda s: s[:2], default=(ACCEPT, "", None))
        if best is None or value <= ACCEPT:
            break
        roots.append(best)
        for root in roots[:-1]:
            others = [r for r in roots if r is not root]
            if gain(network, unexplained(network, others), root) <= ACCEPT:
                roots = others
    for root in roots:
        others = [r for r in roots if r is not root]
        misses = unexplained(network, others)
        best = max((h for h in network.hypotheses if h not in others), key=lambda h: (gain(network, misses, h), h.key))
        if best is not root and gain(network, misses, best) > gain(network, misses, root) + 1e-9:
            roots = [*others, best]
    return roots


def opened(found: Sequence[Event], hosts: dict[str, set[str]]) -> tuple[list[Item], list[Hypothesis], Gate]:
    linked = [(found[0].id, found[-1].id)] if len(found) % 5 == 0 else []
    gate = Gate(hosts, linked)
    items = make_items(found, lambda _path, _line: False)
    return items, open_hypotheses(items, PRIORS, gate), gate


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=25), job_hosts)
def test_the_index_leaves_out_only_what_the_gate_refuses(found: list[Event], hosts: dict[str, set[str]]) -> None:
    items, hypotheses, gate = opened(found, hosts)
    network = connect(items, hypotheses, ROUTES, gate)
    wanted = every_pair(items, hypotheses, gate)
    assert {key: dict(weights) for key, weights in network.weights.items()} == {
        key: pytest.approx(weights) for key, weights in wanted.items()
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=25), job_hosts)
def test_the_search_finds_the_roots_that_a_full_search_finds(found: list[Event], hosts: dict[str, set[str]]) -> None:
    items, hypotheses, gate = opened(found, hosts)
    network = connect(items, hypotheses, ROUTES, gate)
    roots = accept(network)
    assert [r.key for r in roots] == [r.key for r in greedy(network)]
    owned = share(network, roots)
    for index, item in enumerate(items):
        weights = {r.key: network.weights[r.key].get(index, 0.0) for r in roots}
        owners = [key for key, mine in owned.items() if index in mine]
        assert len(owners) == (max(weights.values(), default=0.0) > item.leak)
        assert all(weights[key] == max(weights.values()) for key in owners)


def test_misses_without_a_root_are_those_of_the_others() -> None:
    items, hypotheses, gate = opened([event("gpu-ecc", n * 9000.0, scope=Scope.HOST, host="h1") for n in range(3)], {})
    network = connect(items, hypotheses, ROUTES, gate)
    for root in hypotheses:
        others = [h for h in hypotheses if h is not root]
        cover = Cover(network, hypotheses)
        assert cover.without(root) == pytest.approx(unexplained(network, others))
        cover.drop(root)
        assert cover.misses == pytest.approx(unexplained(network, others))


def item(class_: str, seconds: float | None, strength: Strength, **place: str) -> Item:
    """One event as evidence."""
    return make_items([event(class_, seconds, strength=strength, **place)], lambda _path, _line: False)[0]  # type: ignore[arg-type]


def test_a_chain_of_consequences_pays_once_for_having_begun() -> None:
    crash = [item("rank-crash", 60.0 * n, Strength.STRONG, job="j1") for n in range(3)]
    later = item("rank-crash", 9000.0, Strength.STRONG, job="j1")  # another crash: another chance
    elsewhere = item("rank-crash", 60.0, Strength.STRONG, job="j2")
    stall = item("storage-stall", 0.0, Strength.STRONG, host="h1")
    items = [*crash, later, elsewhere, stall]
    weights = given_the_first(items, dict.fromkeys(range(len(items)), 0.5), "storage-stall")
    assert list(weights.values()) == [0.5, 0.85, 0.85, 0.5, 0.5, 0.5]


def test_two_causes_make_a_line_no_likelier_than_the_better_of_them() -> None:
    found = [item("gpu-ecc", 0.0, Strength.MODERATE, host="h1"), item("rank-crash", 10.0, Strength.MODERATE, host="h1")]
    first, second = (Hypothesis(str(n), "gpu-ecc", found[0], 0.1) for n in range(2))
    network = Network(found, [first, second], {"0": {0: 0.6, 1: 0.5}, "1": {0: 0.5, 1: 0.6}})
    cover = Cover(network, [first])
    factors = [likelier(network, cover.misses, index, weight) for index, weight in network.weights["1"].items()]
    leak = found[0].leak
    assert factors == pytest.approx([1.0, (1 - (1 - leak) * 0.4) / (1 - (1 - leak) * 0.5)])
