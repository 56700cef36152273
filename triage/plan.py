"""What one scan looks for: signature patterns, triggers of row sources, metric lines; all in one compiled set."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triage import diskcache, facts
from triage.engine import Engine, build
from triage.firstchars import first_chars
from triage.patterns import probe_forms
from triage.signature import Signature
from triage.sources.base import LineSource, RowSource
from triage.vocabulary import Role

SIGNATURE, TRIGGER, METRIC, FACT = range(4)


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled scan. ``targets[n]`` = (kind, index): what pattern number n of the engine belongs to."""

    signatures: tuple[Signature, ...]
    triggered: tuple[RowSource, ...]
    dumps: tuple[RowSource, ...]
    lines: tuple[LineSource, ...]
    targets: tuple[tuple[int, int], ...]
    engine: Engine
    row_signatures: dict[str, tuple[int, ...]]
    benign: frozenset[int]
    heads: Mapping[str, str | None] = field(default_factory=dict)


def layout_heads(lines: Sequence[LineSource], cache: Path | None) -> dict[str, str | None]:
    """Return the first characters of every layout by pattern, from the cache when the layouts are the same."""
    patterns = sorted({layout.pattern for source in lines for layout in source.layouts})
    if cache is None or not patterns:
        return {}
    name = hashlib.sha256("\0".join(patterns).encode()).hexdigest()[:32]
    saved = cache / f"heads-{name}.json"
    known = diskcache.read(saved)
    if isinstance(known, dict) and known.keys() == set(patterns):
        return known
    found = {
        pattern: None if (chars := first_chars(pattern)) is None else "".join(sorted(chars)) for pattern in patterns
    }
    diskcache.write(saved, found)
    return found


def make_plan(
    signatures: Sequence[Signature],
    lines: Sequence[LineSource],
    rows: Sequence[RowSource],
    metrics: Sequence[bytes] = (),
    cache: Path | None = None,
) -> Plan:
    """Compile everything a scan looks for. Raises :class:`triage.patterns.PatternSyntaxError` for unchecked patterns."""
    triggered = tuple(source for source in rows if source.triggers)
    forms: list[str] = []
    targets: list[tuple[int, int]] = []
    for index, signature in enumerate(signatures):
        if not signature.where:
            probes = signature.probes or tuple(form for pattern in signature.patterns for form in probe_forms(pattern))
            forms.extend(probes)
            targets.extend((SIGNATURE, index) for _ in probes)
    for index, source in enumerate(triggered):
        triggers = [form for pattern in source.triggers for form in probe_forms(pattern)]
        forms.extend(triggers)
        targets.extend((TRIGGER, index) for _ in triggers)
    forms.extend(form.decode() for form in (*metrics, *facts.TRIGGERS))
    targets.extend([(METRIC, 0)] * len(metrics) + [(FACT, 0)] * len(facts.TRIGGERS))
    by_row: dict[str, list[int]] = {}
    for index, signature in enumerate(signatures):
        if signature.where:
            for name in signature.sources:
                by_row.setdefault(name, []).append(index)
    return Plan(
        signatures=tuple(signatures),
        triggered=triggered,
        dumps=tuple(source for source in rows if not source.triggers),
        lines=tuple(lines),
        targets=tuple(targets),
        engine=build(forms, cache),
        row_signatures={name: tuple(found) for name, found in by_row.items()},
        heads=layout_heads(lines, cache),
        benign=frozenset(i for i, s in enumerate(signatures) if s.role is Role.BENIGN),
    )
