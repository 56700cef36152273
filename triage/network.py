"""The network at work: weights between hypotheses and items, and the search for the roots that explain the items best.

What a root's arrival changes is computed anew, nothing else: of ten thousand places most share no evidence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.causes import (
    ACCEPT,
    MAX_ROOTS,
    RELAYS,
    SAME_EPISODE_S,
    STANDS_ALONE,
    UNKNOWN_STRENGTH,
    UNKNOWN_TIMEOUT,
    Hypothesis,
    Item,
    Path,
    log_odds,
)
from triage.gates import LOCAL, PLACED_EVENTS, Gate, Shelf
from triage.vocabulary import UNKNOWN_CLASS, Role, Scope

NO_GAIN = -math.inf
HUGE = 1e200  # a product of likelihood ratios is turned into a logarithm before it overflows


@dataclass(slots=True)
class Network:
    """The sparse weights w(r, e): per hypothesis, by its key, chances by position of the item. Computed once."""

    items: Sequence[Item]
    hypotheses: Sequence[Hypothesis]
    weights: Mapping[str, Mapping[int, float]]
    touching: Mapping[int, Sequence[int]] = field(init=False)
    """Positions, rising, of the hypotheses that have a weight on an item."""

    def __post_init__(self) -> None:
        touching: dict[int, list[int]] = defaultdict(list)
        for position, hypothesis in enumerate(self.hypotheses):
            for index in self.weights[hypothesis.key]:
                touching[index].append(position)
        self.touching = touching

    def miss(self, index: int, weight: float) -> float:
        """Return the chance that neither chance nor a root of that weight produces an item."""
        return (1.0 - self.items[index].leak) * (1.0 - weight)

    def neighbours(self, hypothesis: Hypothesis) -> list[Hypothesis]:
        """Return the hypotheses that share an item with one, itself among them, in their order."""
        lists = [self.touching[index] for index in self.weights[hypothesis.key]]
        return [self.hypotheses[position] for position in sorted(set().union(*lists))]


class Cover:
    """How well some roots explain each item: the best of them counts, for two causes print a line no likelier than one.

    ``misses`` holds for every item the chance that neither chance nor a root produces it.
    """

    def __init__(self, network: Network, roots: Iterable[Hypothesis] = ()) -> None:
        self._network = network
        self._weights: dict[int, dict[str, float]] = defaultdict(dict)
        self.misses = [1.0 - item.leak for item in network.items]
        for root in roots:
            self.add(root)

    def add(self, root: Hypothesis) -> None:
        """Let a root explain what it can."""
        for index, weight in self._network.weights[root.key].items():
            self._weights[index][root.key] = weight
            self.misses[index] = min(self.misses[index], self._network.miss(index, weight))

    def drop(self, root: Hypothesis) -> None:
        """Take a root out again."""
        self.misses = self.without(root)
        for index in self._network.weights[root.key]:
            del self._weights[index][root.key]

    def without(self, root: Hypothesis) -> list[float]:
        """Return the misses of the other roots."""
        out = list(self.misses)
        for index in self._network.weights[root.key]:
            others = (weight for key, weight in self._weights[index].items() if key != root.key)
            out[index] = self._network.miss(index, max(others, default=0.0))
        return out


@dataclass(frozen=True, slots=True)
class _Shelves:
    """The items of one class: those that hold for a device or host, and those of wider scope."""

    local: Shelf = field(default_factory=Shelf)
    wide: Shelf = field(default_factory=Shelf)

    def add(self, number: int, item: Item) -> None:
        (self.local if item.events[0].scope in LOCAL else self.wide).add(number, item.events[:PLACED_EVENTS])

    def own(self, opener: Item) -> list[int]:
        """Return what can be evidence of the opener's own class."""
        cause = opener.events[0]
        return sorted((*self.local.on_host(cause, named=True), *self.wide.in_job(cause, named=True)))

    def reached(self, opener: Item, scope: Scope) -> list[int]:
        """Return what an edge of a scope can lead to."""
        cause = opener.events[0]
        if scope is Scope.CLUSTER:
            return self.all()
        if scope in LOCAL:
            return sorted((*self.local.on_host(cause), *self.wide.on_host(cause)))
        return sorted((*self.local.in_job(cause), *self.wide.in_job(cause)))

    def all(self) -> list[int]:
        return sorted((*self.local.numbers, *self.wide.numbers))


def connect(
    items: Sequence[Item], hypotheses: Sequence[Hypothesis], routes: Mapping[str, Sequence[Path]], gate: Gate
) -> Network:
    """Compute w(r, e) for every pair that class, time and place allow."""
    by_class: dict[str, _Shelves] = defaultdict(_Shelves)
    victims = _Shelves()
    for index, item in enumerate(items):
        by_class[item.class_].add(index, item)
        if item.role is not Role.ROOT:
            victims.add(index, item)
    weights: dict[str, Mapping[int, float]] = {}
    for hypothesis in hypotheses:
        if hypothesis.class_ == UNKNOWN_CLASS:
            weights[hypothesis.key] = _unknown(items, hypothesis, victims, gate)
        else:
            weights[hypothesis.key] = _weights(items, hypothesis, by_class, routes, gate)
    return Network(items, hypotheses, weights)


def _unknown(items: Sequence[Item], hypothesis: Hypothesis, victims: _Shelves, gate: Gate) -> dict[int, float]:
    """An unmodelled failure may print any symptom of its job."""
    near = victims.own(hypothesis.opener) if hypothesis.opener else victims.all()
    return {
        index: UNKNOWN_TIMEOUT if items[index].class_ in STANDS_ALONE else UNKNOWN_STRENGTH
        for index in near
        if gate(hypothesis, items[index], None) > 0
    }


def _weights(
    items: Sequence[Item],
    hypothesis: Hypothesis,
    by_class: Mapping[str, _Shelves],
    routes: Mapping[str, Sequence[Path]],
    gate: Gate,
) -> dict[int, float]:
    opener, found = hypothesis.opener, {}
    assert opener is not None  # noqa: S101 - only "unknown" may stand without evidence of its own
    for index in by_class[hypothesis.class_].own(opener):
        if (allowed := gate(hypothesis, items[index], None)) > 0:
            found[index] = items[index].strength * allowed
    linked = gate.links(opener)
    reached: dict[tuple[str, Scope], Sequence[int]] = {}
    for path in routes.get(hypothesis.class_, ()):
        if path.target not in by_class:
            continue
        if (key := (path.target, path.scope)) not in reached:
            shelves = by_class[path.target]
            reached[key] = shelves.all() if linked else shelves.reached(opener, path.scope)
        for index in reached[key]:
            item = items[index]
            weight = path.chance * max(item.strength, 0.5)
            if weight <= found.get(index, 0.0) or (opener.role is Role.SYMPTOM and item.role is Role.ROOT):
                continue  # what only symptoms speak for does not cause what speaks for itself
            if (allowed := gate(hypothesis, item, path)) > 0:
                found[index] = max(found.get(index, 0.0), weight * allowed)
    return given_the_first(items, found, hypothesis.class_)


def given_the_first(items: Sequence[Item], found: Mapping[int, float], own: str) -> dict[int, float]:
    """Let each chain of consequences pay once for having begun: what follows is as likely as if it stood alone.

    A crash prints its traceback, exit codes and torn connections; whether the root led to the crash is one question,
    not one per line. A chain is what the classes that pass failures on say of one job without a gap of half an hour.
    """
    chains: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for index in found:
        item, place = items[index], items[index].events[0].place
        if item.class_ != own:
            chains["" if item.class_ in RELAYS else item.class_, place.job or place.host].append(index)
    out = dict(found)
    for members in chains.values():
        for run in _runs(items, members):
            first = max(run, key=lambda index: items[index].strength / items[index].leak)
            out.update((index, max(found[index], items[index].strength)) for index in run if index != first)
    return out


def _runs(items: Sequence[Item], members: Iterable[int]) -> list[list[int]]:
    """Cut at gaps of half an hour; undated items come first, as one run."""
    runs: list[list[int]] = []
    last = NO_GAIN
    for start, index in sorted((min(items[i].span.begins, default=(NO_GAIN, 0.0))[0], i) for i in members):
        if not runs or start - last > SAME_EPISODE_S:
            runs.append([])
        runs[-1].append(index)
        last = start
    return runs


def gain(network: Network, misses: Sequence[float], hypothesis: Hypothesis) -> float:
    """Return by how much adding ``hypothesis`` raises the log posterior, given what the accepted roots leave unexplained."""
    total, factor = log_odds(hypothesis.prior), 1.0
    for index, weight in network.weights[hypothesis.key].items():
        factor *= likelier(network, misses, index, weight)
        if factor > HUGE:
            total, factor = total + math.log(factor), 1.0
    return total + math.log(factor)


def likelier(network: Network, misses: Sequence[float], index: int, weight: float) -> float:
    """Return how many times likelier (>= 1) an item is with a root of that weight than with what explains it already."""
    return (1.0 - min(misses[index], network.miss(index, weight))) / (1.0 - misses[index])


class _Search:
    """The accepted roots, what they leave unexplained, and the gain of every other hypothesis beside them.

    Hypotheses stand in falling order of their keys, so that among equals the last by key comes first. A further root
    only lowers gains: one that is out of date is an upper bound, and is computed anew when it leads.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.roots: list[Hypothesis] = []
        self._cover = Cover(network)
        self._order = sorted(network.hypotheses, key=lambda h: h.key, reverse=True)
        self._slot = {h.key: slot for slot, h in enumerate(self._order)}
        self._gains = [gain(network, self._cover.misses, h) for h in self._order]
        self._stale: set[int] = set()

    def best(self) -> tuple[float, Hypothesis] | None:
        """Return the hypothesis that adds most, the last by key among equals."""
        while (top := max(self._gains, default=NO_GAIN)) > NO_GAIN:
            slot = self._gains.index(top)
            if slot not in self._stale:
                return top, self._order[slot]
            self._renew(slot)
        return None

    def add(self, root: Hypothesis) -> None:
        self.roots.append(root)
        self._cover.add(root)
        self._stale.update(self._slot[h.key] for h in self.network.neighbours(root))
        self._gains[self._slot[root.key]] = NO_GAIN

    def drop(self, root: Hypothesis) -> None:
        self._cover.drop(root)
        self.roots = [r for r in self.roots if r is not root]
        accepted = {r.key for r in self.roots}
        for hypothesis in (*self.network.neighbours(root), root):
            if hypothesis.key not in accepted:
                self._renew(self._slot[hypothesis.key])

    def without(self, root: Hypothesis) -> list[float]:
        """Return what the other roots leave unexplained."""
        return self._cover.without(root)

    def others(self) -> list[Hypothesis]:
        """Return the hypotheses that are no root, best gain first."""
        for slot in sorted(self._stale):
            if self._gains[slot] > NO_GAIN:
                self._renew(slot)
        slots = sorted(range(len(self._order)), key=self._gains.__getitem__, reverse=True)
        return [self._order[slot] for slot in slots if self._gains[slot] > NO_GAIN]

    def _renew(self, slot: int) -> None:
        self._stale.discard(slot)
        self._gains[slot] = gain(self.network, self._cover.misses, self._order[slot])


def accept(network: Network) -> list[Hypothesis]:
    """Return the accepted roots: greedy by gain, then exchanges until nothing improves (a MAP estimate)."""
    search = _Search(network)
    while len(search.roots) < MAX_ROOTS:
        best = search.best()
        if best is None or best[0] <= ACCEPT:
            break
        search.add(best[1])
        _prune(search, best[1])
    return _exchange(search)


def _prune(search: _Search, latest: Hypothesis) -> None:
    """Drop roots that the latest one made superfluous; those that share no item with it are as good as before."""
    new = search.network.weights[latest.key].keys()
    for root in search.roots[:-1]:
        shared = not new.isdisjoint(search.network.weights[root.key])
        if shared and gain(search.network, search.without(root), root) <= ACCEPT:
            search.drop(root)


def _exchange(search: _Search) -> list[Hypothesis]:
    """Replace single roots by better ones, at most once per root."""
    network, others = search.network, search.others()
    for root in list(search.roots):
        misses = search.without(root)
        own = gain(network, misses, root)
        near = network.neighbours(root)
        known = {h.key for h in near}
        far = next((h for h in others if h.key not in known), None)
        accepted = {r.key for r in search.roots if r is not root}
        pool = [*near, *([] if far is None else [far])]
        scored = [(gain(network, misses, h), h.key, h) for h in pool if h.key not in accepted]
        value, _, best = max(scored, key=lambda found: found[:2], default=(own, root.key, root))
        if best is not root and value > own + 1e-9:
            search.drop(root)
            search.add(best)
            others = search.others()
    return search.roots


def share(network: Network, roots: Sequence[Hypothesis]) -> dict[str, list[int]]:
    """Give every item to the accepted root that explains it best; items better left to chance stay out."""
    best: dict[int, tuple[float, str]] = {}
    for root in roots:
        for index, weight in network.weights[root.key].items():
            if weight > best.get(index, (0.0, ""))[0]:
                best[index] = (weight, root.key)
    owned: dict[str, list[int]] = {root.key: [] for root in roots}
    for index in sorted(best):
        weight, key = best[index]
        if weight > network.items[index].leak:
            owned[key].append(index)
    return owned


def rivals(
    network: Network, misses: Sequence[float], roots: Iterable[Hypothesis], root: Hypothesis, temperature: float
) -> list[tuple[Hypothesis | None, float]]:
    """Return the root and its rivals with probabilities that sum to 1 (None = no incident at all), best first.

    Rivals are hypotheses that touch the same items, scored with the other accepted roots in place (``misses`` is what
    those leave unexplained).
    """
    accepted = {r.key for r in roots}
    pool: list[Hypothesis | None] = [None, root, *(h for h in network.neighbours(root) if h.key not in accepted)]
    scores = [(0.0 if h is None else gain(network, misses, h)) / temperature for h in pool]
    top = max(scores)
    masses = [math.exp(s - top) for s in scores]
    total = sum(masses)
    ranked = sorted(
        zip(pool, masses, strict=True), key=lambda pair: (-pair[1], pair[0] is not root, pair[0].key if pair[0] else "")
    )
    return [(h, mass / total) for h, mass in ranked]
