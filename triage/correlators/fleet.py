"""Settings that must be equal on all hosts of a job and are not: port MTU, driver version."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from triage.correlators.base import Context, Correlation
from triage.filescan import FileScan
from triage.model import Event, Evidence, Place, When
from triage.sources.base import Row
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Strength


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a row source that must not differ between hosts, and what it means if it does."""

    source: str
    field: str
    class_: str
    title: str
    role: Role
    strength: Strength
    noise: Noise


SETTINGS = (
    Setting("ibv_devinfo", "active_mtu", "network-config", "port MTU differs between hosts", Role.ROOT, Strength.STRONG, Noise.RARE),
    Setting(
        "nvidia-smi-table", "driver_version", "version-mismatch", "NVIDIA driver differs between hosts",
        Role.CONFIRMATION, Strength.WEAK, Noise.COMMON,
    ),
)  # fmt: skip


def correlate(context: Context) -> Correlation:
    """Return one event per setting that differs; it stands at the hosts that are in the minority."""
    return Correlation(events=tuple(event for setting in SETTINGS for event in _differences(context, setting)))


def _differences(context: Context, setting: Setting) -> Iterator[Event]:
    seen: dict[str, tuple[str, Evidence]] = {}
    for scan in context.scans:
        host = context.topology.files[scan.path].host
        for source, row, _ in scan.rows:
            value = row.fields.get(setting.field)
            name = str(row.fields.get("host") or host or "")
            if source == setting.source and value is not None and name:
                seen.setdefault(name, (str(value), _line_of(scan, row, setting.field, name)))
    values = Counter(value for value, _ in seen.values())
    if len(values) < 2:
        return
    usual, count = values.most_common(1)[0]
    odd = sorted(name for name, (value, _) in seen.items() if value != usual)
    alone = len(odd) == 1 and count > 1
    by_value: dict[str, list[Evidence]] = defaultdict(list)
    for value, line in seen.values():
        by_value[value].append(line)
    lines = tuple(found[0] for _, found in sorted(by_value.items(), key=lambda item: len(item[1])))
    why = ", ".join(f"{value} on {len(found)} hosts" for value, found in sorted(by_value.items()))
    yield Event(
        id=f"f:{setting.source}:{setting.field}", signature=f"fleet-{setting.field.replace('_', '-')}-differs", title=setting.title,
        class_=setting.class_, role=setting.role, level=Level.HIGH, strength=setting.strength, noise=setting.noise, scope=Scope.JOB,
        place=context.topology.place(Place(host=odd[0] if alone else None)), first=When(), last=When(), effective=When(), count=1,
        lines=lines[:6], group=f"fleet-{setting.field}", origin=Origin.DUMP, why=f"{setting.title}: {why}",
    )  # fmt: skip


def _line_of(scan: FileScan, row: Row, field: str, host: str) -> Evidence:
    """Return the line of a row that names the field, else the row's own."""
    for number, parsed in scan.samples:
        if row.line <= number <= row.end_line + 40 and field in parsed.body:
            return Evidence(scan.path, number, parsed.body.strip(), host=host)
    return Evidence(scan.path, row.line, row.text, host=host)
