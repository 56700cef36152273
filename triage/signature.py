"""Signatures in memory: what a line means, and what that is worth as evidence. Loading is in :mod:`triage.loader`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import regex

from triage.model import Scalar
from triage.patterns import scan_form
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Status, Strength

STRICT_ORIGINS = frozenset({Origin.KERNEL.value, Origin.CRON.value})
"""Origins that nobody else may speak for: a daemon or a shell that quotes a kernel line proves nothing."""

ECHO_PROGRAMS = frozenset({"sudo", "su", "audit", "auditd", "bash", "sh", "zsh", "logger", "root", "snoopy"})
"""Syslog tags under which command lines and injected test text appear."""


@dataclass(frozen=True, slots=True)
class Edge:
    """``explains``: this class, once present, produces ``target`` within the lag window and the scope.

    ``lag_s`` is (earliest, latest) seconds from cause to effect.
    """

    target: str
    strength: Strength
    lag_s: tuple[float, float]
    scope: Scope


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One condition on a row field: ``name|operator: value`` (operators as in Sigma, plus numeric comparisons)."""

    name: str
    operator: str  # eq, ne, gt, gte, lt, lte, contains, startswith, endswith, re, exists
    value: Scalar | tuple[Scalar, ...]

    def holds(self, fields: Mapping[str, Scalar]) -> bool:
        """Say whether ``fields`` satisfies the test; a missing field only satisfies ``exists: false``."""
        have = fields.get(self.name)
        if self.operator == "exists":
            return (have is not None) == bool(self.value)
        if have is None:
            return False
        wanted = self.value if isinstance(self.value, tuple) else (self.value,)
        return any(_compare(self.operator, have, value) for value in wanted)


def _compare(operator: str, have: Scalar, want: Scalar) -> bool:
    if operator in ("gt", "gte", "lt", "lte"):
        try:
            left, right = float(str(have)), float(str(want))
        except ValueError:
            return False
        return {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[operator]
    a, b = str(have).lower(), str(want).lower()
    if operator == "re":
        return regex.search(str(want), str(have), timeout=1.0) is not None
    return {
        "eq": a == b,
        "ne": a != b,
        "contains": b in a,
        "startswith": a.startswith(b),
        "endswith": a.endswith(b),
    }[operator]


@dataclass(frozen=True, slots=True)
class Example:
    """A line that a signature must match, or (``why`` set) must not."""

    text: str
    fields: Mapping[str, Scalar] = field(default_factory=dict)
    origin: Origin | None = None
    source: str | None = None
    why: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """Counting or order over other signatures' events (Sigma correlation)."""

    type: str  # event_count | value_count | temporal | temporal_ordered
    signatures: tuple[str, ...]
    group_by: tuple[str, ...]
    timespan_s: float
    gte: int = 1
    value: str | None = None


@dataclass(frozen=True)
class Signature:
    """What a line means. See docs/signatures.md for every field."""

    id: str
    title: str
    class_: str
    role: Role
    level: Level
    status: Status
    sources: frozenset[str]
    scope: Scope
    strength: Strength
    noise: Noise
    patterns: tuple[str, ...] = ()
    not_patterns: tuple[str, ...] = ()
    where: tuple[FieldTest, ...] = ()
    condition: Condition | None = None
    group: str | None = None
    variant: str | None = None
    recovered_by: tuple[str, ...] = ()
    recovery_s: float = 60.0
    cancels: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
    explains: tuple[Edge, ...] = ()
    description: str = ""
    proves_not: str = ""
    falsepositives: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    matches: tuple[Example, ...] = ()
    near_misses: tuple[Example, ...] = ()
    probes: tuple[str, ...] = ()
    table_key: str | None = None
    table: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: str = ""

    @cached_property
    def compiled(self) -> tuple[regex.Pattern[str], ...]:
        """The full patterns, compiled on first use: text patterns with ASCII classes, as the scanner sees bytes."""
        return tuple(regex.compile(pattern, regex.ASCII) for pattern in self.patterns)

    @cached_property
    def _loose(self) -> tuple[regex.Pattern[str], ...]:
        return tuple(regex.compile(scan_form(pattern), regex.ASCII) for pattern in self.patterns)

    def may_match(self, line: str) -> bool:
        """Say whether a line, prefixes and all, can satisfy a pattern: what :meth:`compiled` finds, this finds."""
        return any(pattern.search(line) for pattern in self._loose)

    @cached_property
    def compiled_not(self) -> tuple[regex.Pattern[str], ...]:
        """Patterns whose match on the same line voids the hit."""
        return tuple(regex.compile(pattern, regex.ASCII) for pattern in self.not_patterns)

    def accepts(self, origin: Origin, program: str | None) -> bool:
        """Say whether a line printed by ``origin``/``program`` can be this signature's line."""
        if origin is Origin.SYSLOG and (program or "").lower() in ECHO_PROGRAMS:
            return False
        if origin is Origin.CRONTAB:
            return origin.value in self.sources
        strict = self.sources & STRICT_ORIGINS
        if origin is Origin.GENERIC or origin.value in strict:
            return True
        return bool(self.sources - STRICT_ORIGINS) and origin.value not in STRICT_ORIGINS

    def resolve(self, code: Scalar) -> Signature:
        """Return the signature of one row of the code table; unknown codes give the ``default`` row."""
        key = str(code)
        if key not in self._resolved and len(self._resolved) < 10_000:
            self._resolved[key] = self._row(key)
        return self._resolved.get(key) or self._row(key)

    @cached_property
    def _resolved(self) -> dict[str, Signature]:
        return {}

    def _row(self, key: str) -> Signature:
        known = key in self.table
        row = self.table.get(key) or self.table.get("default") or {}
        return replace(
            self,
            id=f"{self.id}/{key}",
            title=row.get("title") or f"{self.title}: unknown code {key}"
            if known
            else f"{self.title}: unknown code {key}",
            class_=row.get("class", self.class_),
            role=Role(row.get("role", self.role)),
            level=Level(row.get("level", self.level)),
            scope=Scope(row.get("scope", self.scope)),
            strength=Strength(row.get("strength", self.strength)),
            noise=Noise(row.get("noise", self.noise)),
            group=row.get("group", self.group),
            variant=row.get("variant", self.variant),
            description=row.get("meaning", self.description),
            proves_not=row.get("proves_not", self.proves_not),
        )
