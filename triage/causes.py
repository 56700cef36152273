"""Which causes explain what was seen: a noisy-OR network over failure classes (the QMR-DT form of medical diagnosis).

    P(e seen | causes R) = 1 - (1 - leak_e) * product over r in R of (1 - w(r, e))

``w(r, e)`` is the strength of the signature when e speaks for r's own class, or of the edge r -> class of e times the
strength, zero when time or place forbid it. Evidence that one emission prints together counts once. All scores are
natural logarithms. The module knows classes and numbers, no log format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Event
from triage.signature import Edge
from triage.vocabulary import UNKNOWN_CLASS, Noise, Role, Scope, Strength

STRENGTH: Final[Mapping[Strength, float]] = {
    Strength.CONCLUSIVE: 0.95,
    Strength.STRONG: 0.85,
    Strength.MODERATE: 0.6,
    Strength.WEAK: 0.3,
}
LEAK: Final[Mapping[Noise, float]] = {Noise.NEVER: 1e-4, Noise.RARE: 1e-2, Noise.COMMON: 0.2}
UNKNOWN_STRENGTH: Final = 0.5  # chance that an unmodelled failure prints a given symptom
UNKNOWN_TIMEOUT: Final = 0.3  # the same for a class that already says "cause not in evidence"
OPENS_AT: Final = 5.0  # a line that is as common without the class opens no hypothesis
SYMPTOM_PRIOR: Final = 0.5  # a class for which only symptoms speak: its own lines are missing
CONSEQUENCE_PRIOR: Final = 0.3  # the same for a class that is mostly a consequence
CONSEQUENCES: Final = frozenset({"rank-crash", "scheduler-kill", "network-bootstrap", "nccl-init-failure", "straggler"})
RELAYS: Final = frozenset({"nccl-timeout", "rank-crash", "scheduler-kill", "network-bootstrap"})
STANDS_ALONE: Final = frozenset({"nccl-timeout"})  # its definition is "the cause is not in evidence"
ACCEPT: Final = 0.0  # a root must gain more than this
MAX_ROOTS: Final = 40
PAIR_POOL: Final = 30


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of evidence: events that count as one. ``weight`` in (0, 1] scales its strength (e.g. progress after it)."""

    key: str
    class_: str
    role: Role
    strength: float
    leak: float
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A class at a place, opened by ``opener`` (None for ``unknown``)."""

    key: str
    class_: str
    opener: Item | None
    prior: float
    item_keys: frozenset[str] = frozenset()


@dataclass(slots=True)
class Network:
    """The sparse weights between hypotheses and items, computed once."""

    items: Sequence[Item]
    hypotheses: Sequence[Hypothesis]
    weights: Mapping[str, Mapping[int, float]]
    reasons: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def misses(self, roots: Sequence[Hypothesis]) -> list[float]:
        """Return for every item the chance that neither a leak nor a root produces it."""
        out = [1.0 - item.leak for item in self.items]
        for root in roots:
            for index, weight in self.weights[root.key].items():
                out[index] *= 1.0 - weight
        return out


def log_odds(probability: float) -> float:
    """Return ln(p / (1 - p))."""
    return math.log(probability / (1.0 - probability))


@dataclass(frozen=True, slots=True)
class Path:
    """One or two edges in a row, from a cause class to ``target``: a chance, a lag window (seconds) and a scope."""

    target: str
    chance: float
    lag_s: tuple[float, float]
    scope: Scope


def paths(edges: Mapping[str, Sequence[Edge]]) -> dict[str, list[Path]]:
    """Return the direct edges of every class and those that lead on through a relay class (Xid -> time-out -> exit -6)."""
    direct = {
        name: [Path(e.target, STRENGTH[e.strength], e.lag_s, e.scope) for e in found] for name, found in edges.items()
    }
    out: dict[str, list[Path]] = {}
    for name, found in direct.items():
        onward = [
            Path(
                b.target,
                a.chance * b.chance,
                (a.lag_s[0] + b.lag_s[0], a.lag_s[1] + b.lag_s[1]),
                _wider(a.scope, b.scope),
            )
            for a in found
            if a.target in RELAYS
            for b in direct.get(a.target, ())
            if b.target not in (name, a.target)
        ]
        out[name] = [*found, *onward]
    return out


def _wider(a: Scope, b: Scope) -> Scope:
    order = [Scope.DEVICE, Scope.RANK, Scope.HOST, Scope.PATH, Scope.RACK, Scope.JOB, Scope.CLUSTER]
    return max(a, b, key=order.index)


def connect(
    items: Sequence[Item],
    hypotheses: Sequence[Hypothesis],
    routes: Mapping[str, Sequence[Path]],
    gate: Callable[[Hypothesis, Item, Path | None], float],
) -> Network:
    """Compute w(r, e) for every pair that class, time and place allow. ``gate`` returns 0..1 for a pair and path."""
    by_class: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        by_class.setdefault(item.class_, []).append(index)
    weights: dict[str, dict[int, float]] = {}
    for hypothesis in hypotheses:
        found: dict[int, float] = {}
        if hypothesis.class_ == UNKNOWN_CLASS:
            weights[hypothesis.key] = {
                i: UNKNOWN_TIMEOUT if item.class_ in STANDS_ALONE else UNKNOWN_STRENGTH
                for i, item in enumerate(items)
                if item.role is not Role.ROOT and gate(hypothesis, item, None) > 0
            }
            continue
        for index in by_class.get(hypothesis.class_, ()):
            if (allowed := gate(hypothesis, items[index], None)) > 0:
                found[index] = max(found.get(index, 0.0), items[index].strength * allowed)
        mere_symptom = hypothesis.opener is not None and hypothesis.opener.role is Role.SYMPTOM
        for path in routes.get(hypothesis.class_, ()):
            for index in by_class.get(path.target, ()):
                item = items[index]
                weight = path.chance * max(item.strength, 0.5)
                if weight <= found.get(index, 0.0) or (mere_symptom and item.role is Role.ROOT):
                    continue  # what only symptoms speak for does not cause what speaks for itself
                if (allowed := gate(hypothesis, item, path)) > 0:
                    found[index] = max(found.get(index, 0.0), weight * allowed)
        weights[hypothesis.key] = found
    return Network(items, hypotheses, weights)


def gain(network: Network, misses: Sequence[float], hypothesis: Hypothesis) -> float:
    """Return by how much adding ``hypothesis`` raises the log posterior, given what the accepted roots leave unexplained."""
    total = log_odds(hypothesis.prior)
    for index, weight in network.weights[hypothesis.key].items():
        miss = misses[index]
        total += math.log(1.0 - miss * (1.0 - weight)) - math.log(1.0 - miss)
    return total


def accept(network: Network) -> list[Hypothesis]:
    """Return the accepted roots: greedy by gain, then exchanges until nothing improves (a MAP estimate)."""
    roots: list[Hypothesis] = []
    while len(roots) < MAX_ROOTS:
        misses = network.misses(roots)
        best = max(
            ((gain(network, misses, h), h) for h in network.hypotheses if h not in roots),
            key=lambda pair: (pair[0], pair[1].key),
            default=None,
        )
        if best is None or best[0] <= ACCEPT:
            break
        roots.append(best[1])
        roots = _prune(network, roots)
    return _exchange(network, roots)


def _prune(network: Network, roots: list[Hypothesis]) -> list[Hypothesis]:
    """Drop roots that the later ones made superfluous."""
    for root in list(roots[:-1]):
        others = [r for r in roots if r is not root]
        if gain(network, network.misses(others), root) <= ACCEPT:
            roots = others
    return roots


def _exchange(network: Network, roots: list[Hypothesis]) -> list[Hypothesis]:
    """Replace single roots by better ones, at most once per root."""
    for root in roots:
        others = [r for r in roots if r is not root]
        misses = network.misses(others)
        pool = [h for h in network.hypotheses if h not in others]
        best = max(pool, key=lambda h: (gain(network, misses, h), h.key), default=root)
        if best is not root and gain(network, misses, best) > gain(network, misses, root) + 1e-9:
            roots = [*others, best]
    return roots


def share(network: Network, roots: Sequence[Hypothesis]) -> dict[str, list[int]]:
    """Give every item to the accepted root that explains it best; items better left to chance stay out."""
    owned: dict[str, list[int]] = {root.key: [] for root in roots}
    for index, item in enumerate(network.items):
        best = max(roots, key=lambda r: network.weights[r.key].get(index, 0.0), default=None)
        if best is not None and network.weights[best.key].get(index, 0.0) > item.leak:
            owned[best.key].append(index)
    return owned


def rivals(
    network: Network, roots: Sequence[Hypothesis], root: Hypothesis, temperature: float
) -> list[tuple[Hypothesis | None, float]]:
    """Return the root and its rivals with probabilities that sum to 1 (None = no incident at all), best first.

    Rivals are hypotheses that touch the same items, scored with the other accepted roots in place.
    """
    others = [r for r in roots if r is not root]
    misses = network.misses(others)
    mine = set(network.weights[root.key])
    pool: list[Hypothesis | None] = [None, root]
    pool.extend(
        h for h in network.hypotheses if h is not root and h not in others and mine & set(network.weights[h.key])
    )
    scores = [(0.0 if h is None else gain(network, misses, h)) / temperature for h in pool]
    top = max(scores)
    masses = [math.exp(s - top) for s in scores]
    total = sum(masses)
    ranked = sorted(
        zip(pool, masses, strict=True), key=lambda pair: (-pair[1], pair[0] is not root, pair[0].key if pair[0] else "")
    )
    return [(h, mass / total) for h, mass in ranked]
