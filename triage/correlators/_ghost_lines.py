"""What the scans of a bundle hold for the search of ghosts: dated hits, rows by kind, script texts, zones of hosts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final

from triage.correlators._scripts import SCRIPT as _SCRIPT
from triage.correlators._scripts import wants_text
from triage.correlators.base import Context
from triage.events import place_of
from triage.filescan import FileScan, Hit, base_id
from triage.model import Evidence, Place, When
from triage.naming import path_facts
from triage.schedules import short
from triage.sources.base import Parsed, Row, Stamp
from triage.vocabulary import Origin, TimeBasis
from triage.zones import find_zone

MAX_TEXT_BYTES: Final = 256 << 10
_RANK: Final = re.compile(r"(?:global_)?rank[._-]?\d{1,6}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seen:
    """One line that a context signature matched, dated and placed."""

    path: str
    hit: Hit
    when: When
    place: Place

    def field(self, name: str) -> str | None:
        """Return a capture as text, None when it is absent or empty."""
        value = self.hit.fields.get(name)
        return None if value is None or str(value) == "" else str(value)

    @property
    def evidence(self) -> Evidence:
        """The line as a report cites it."""
        return Evidence(self.path, self.hit.line, self.hit.text, self.when, self.place.host, self.place.rank)


def seen(context: Context, signatures: Collection[str]) -> list[Seen]:
    """Return every kept hit of some signatures: events keep six lines of a run, a schedule needs each of its starts."""
    found: list[Seen] = []
    for scan in context.scans:
        for (signature, _), tally in scan.tallies.items():
            if base_id(signature) in signatures:
                found.extend(_seen(context, scan, hit) for hit in tally.hits())
    return sorted(found, key=lambda s: (s.when.at is None, s.when.at or datetime.min, s.path, s.hit.line))


def _seen(context: Context, scan: FileScan, hit: Hit) -> Seen:
    place = place_of(hit, scan.path, context.topology)
    own = _is_stamped(hit.parsed)
    line, parsed = (hit.line, hit.parsed) if own or hit.near is None else hit.near
    at = _date(context, scan.path, line, parsed)
    if at is None:
        return Seen(scan.path, hit, When(), place)
    slack = 1.0 if own else 1.0 + min(600.0, hit.line - line)
    return Seen(scan.path, hit, When(at, slack, TimeBasis.STAMP if own else TimeBasis.INHERITED), place)


def _is_stamped(parsed: Parsed) -> bool:
    return parsed.stamp is not None or parsed.uptime_s is not None


def _date(context: Context, path: str, line: int, parsed: Parsed) -> datetime | None:
    """Ask the clock about one peeled line; the samples of a large file hold only some of its lines."""
    return context.when(FileScan(path, samples=[(line, parsed)]), line)


def rows(context: Context, sources: Collection[str]) -> Iterator[tuple[FileScan, str, Row, str | None]]:
    """Yield (scan, source, row, host) of the row sources asked for."""
    for scan in context.scans:
        for source, row, _ in scan.rows:
            if source in sources:
                yield scan, source, row, host_of(context, scan.path, row)


def host_of(context: Context, path: str, row: Row | None = None) -> str | None:
    """Return the host a row or a file speaks about."""
    named = row.fields.get("host") if row is not None else None
    facts = context.topology.files.get(path)
    return short(str(named)) if named else facts.host if facts is not None else None


def texts(context: Context) -> Mapping[str, str]:
    """Return the scripts of the bundle, without a ``.txt`` that a collector put behind their names."""
    found = {path: text for path, text in context.texts.items() if wants_text(path)}
    for scan in context.scans:
        if scan.path not in context.texts and wants_text(scan.path) and 0 < scan.size <= MAX_TEXT_BYTES:
            found[scan.path] = "\n".join(parsed.body for _, parsed in scan.samples)
    return {_bare(path): text for path, text in found.items()}


def _bare(path: str) -> str:
    return path.removesuffix(".txt") if _SCRIPT.search(path) else path


def script_line(context: Context, path: str, number: int) -> Evidence | None:
    """Return a line of a script, only if its text is known to the letter."""
    for name in (path, f"{path}.txt"):
        lines = context.texts[name].split("\n") if name in context.texts else []
        if 0 < number <= len(lines):
            return Evidence(name, number, lines[number - 1].rstrip("\r"), host=host_of(context, name))
        for scan in context.scans:
            if scan.path == name:
                pair = next((p for line, p in scan.samples if line == number and p.layout is None), None)
                return Evidence(name, number, pair.body, host=host_of(context, name)) if pair is not None else None
    return None


def zones(context: Context, hosts: Iterable[str | None]) -> dict[str, str]:
    """Return the zones of hosts: what ``timedatectl`` says, else the offset by which the clock reads their lines."""
    found: dict[str, str] = {}
    for _, _, row, host in rows(context, {"timedate"}):
        zone = str(row.fields.get("zone") or "")
        if host and ("/" in zone or zone in {"UTC", "GMT"} or zone[:1] in "+-") and find_zone(zone):
            found.setdefault(host, zone)
    end = context.window[1]
    files = {facts.host: path for path, facts in context.topology.files.items() if facts.host}
    for host in {short(h) for h in hosts} - {None}:
        if host is not None and host not in found and end is not None and host in files:
            offset = _offset(context, files[host], end)
            if offset is not None:
                found[host] = offset
    return found


def _offset(context: Context, path: str, at: datetime) -> str | None:
    wall = at.astimezone(timezone.utc).replace(tzinfo=None, microsecond=0)
    asked = Parsed(None, "", Origin.GENERIC, "", stamp=Stamp(wall))
    told = _date(context, path, 1, asked)
    if told is None:
        return None
    minutes = round((wall.replace(tzinfo=timezone.utc) - told).total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def job_of(place: Place, path: str) -> str:
    """Return the job of a line: the one it names, else its file's name without what tells ranks and hosts apart."""
    if place.job:
        return place.job
    host = path_facts(path).host
    name = _RANK.sub("*", path)
    return name.replace(host, "*") if host else name
