"""Which causes explain what was seen: a causal network over failure classes (the QMR-DT form of medical diagnosis).

    P(e seen | causes R) = 1 - (1 - leak_e) * (1 - max over r in R of w(r, e))

``w(r, e)`` is the strength of the signature when e speaks for r's own class, or of the edge r -> class of e times the
strength, zero when time or place forbid it; a chain of consequences pays its edge once (docs/decisions/005). Evidence
that one emission prints together counts once. All scores are natural logarithms. The module knows classes and numbers,
no log format.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.model import Event
from triage.signature import Edge
from triage.vocabulary import Noise, Role, Scope, Strength

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
MAX_ROOTS: Final = 400
SAME_EPISODE_S: Final = 1800.0  # what a longer silence parts is not one emission


@dataclass(frozen=True, slots=True)
class Span:
    """When the events of an item began and were seen, in seconds since 1970; empty for undated ones.

    ``begins`` holds (start, uncertainty) of at most 50 events, ``seen`` (start, end, uncertainty) of the earliest and the
    latest one.
    """

    begins: tuple[tuple[float, float], ...] = ()
    seen: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of evidence: events that count as one, the most telling first."""

    key: str
    class_: str
    role: Role
    strength: float
    leak: float
    events: tuple[Event, ...]
    span: Span = Span()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A class at a place, opened by ``opener`` (None for ``unknown``)."""

    key: str
    class_: str
    opener: Item | None
    prior: float
    item_keys: frozenset[str] = frozenset()


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
