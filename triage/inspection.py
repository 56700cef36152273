"""``triage inspect``: how each physical line of one file is read (DESIGN section 10)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from triage.clock import Clock, FileSample
from triage.peel import Peeler, decode
from triage.sources.base import LineSource, Parsed
from triage.vocabulary import TimeBasis

_BLOCK: Final = 1 << 20
_MAX_LINE: Final = 1 << 16  # prefixes are at the start; the rest of a giant line is not needed to show how it is read


def inspect(
    path: str | Path,
    lines: Collection[int] = (),
    *,
    year: int | None = None,
    tz: str | None = None,
    sources: Iterable[LineSource] | None = None,
    now: datetime | None = None,
) -> list[dict[str, Any]]:
    """Return one dict per asked physical line (1-based; all when none is asked), in file order.

    ``time`` is the line's own (ISO 8601; with an offset only where the line or the file tells the zone),
    ``inferred_time`` what the clock makes of it. Line numbers count ``\\n`` only.
    """
    file = Path(path)
    peeler = Peeler(line_sources() if sources is None else sources)
    parsed = [(number, peeler.peel(decode(raw))) for number, raw in enumerate(physical_lines(file), 1)]
    mtime = file.stat().st_mtime
    sample = FileSample(file.name, None, mtime, parsed)
    clock = Clock.build([sample], year=year, tz=tz, now=now or datetime.now(timezone.utc))
    starts = record_lines(parsed)
    wanted = set(lines)
    return [
        describe(clock, file.name, number, starts[number - 1], line)
        for number, line in parsed
        if not wanted or number in wanted
    ]


def line_sources() -> list[LineSource]:
    """Return all line sources: ours and those of installed plug-ins."""
    import triage.sources
    from triage.registry import discover

    return discover(
        triage.sources, lambda v: isinstance(v, LineSource) and not isinstance(v, type), group="triage.sources"
    )


def physical_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzip file without ``\\n``, each cut to its first 64 KiB; a broken end ends it."""
    kept, length = bytearray(), 0
    pending = False
    for block in _blocks(path):
        *whole, last = block.split(b"\n")
        for part in whole:
            kept += part[: max(0, _MAX_LINE - length)]
            yield bytes(kept)
            kept, length = bytearray(), 0
        kept += last[: max(0, _MAX_LINE - length)]
        length += len(last)
        pending = length > 0
    if pending:
        yield bytes(kept)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        magic = raw.read(2)
    opener = gzip.open if magic == b"\x1f\x8b" else open
    try:
        with opener(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return


def record_lines(parsed: Sequence[tuple[int, Parsed]]) -> list[int]:
    """Return for each line the first line of its record: an indented or bare line continues the dated one above it."""
    starts: list[int] = []
    current = 0
    in_traceback = False
    for number, line in parsed:
        own = line.layout is not None and (line.stamp is not None or line.uptime_s is not None)
        text = line.body
        continues = bool(current) and not own and _continues(text, in_traceback)
        if not continues:
            current = number
            in_traceback = False
        if text.startswith(("Traceback (most recent call last)", "Stack trace", "Exception raised from")):
            in_traceback = True
        elif in_traceback and not _indented(text) and text:
            in_traceback = False
        starts.append(current)
    return starts


def _continues(text: str, in_traceback: bool) -> bool:
    """Say whether a line without a time of its own belongs to the record above it."""
    if not text.strip("\x00 \t"):
        return in_traceback
    return _indented(text) or in_traceback or text.startswith(("Traceback (most recent call last)", "frame #"))


def _indented(text: str) -> bool:
    return text[:1] in {" ", "\t"}


def describe(clock: Clock, path: str, number: int, record: int, line: Parsed) -> dict[str, Any]:
    """Build the object of one line."""
    return {
        "line": number,
        "record_line": record,
        "source": line.source or None,
        "layout": line.layout,
        "time": _own_time(clock, path, number, line),
        "uptime_s": line.uptime_s,
        "inferred_time": _inferred(clock, path, number, line),
        "host": line.host,
        "program": line.program,
        "pid": line.pid,
        "rank": line.rank,
        "severity": line.severity,
        "message": line.body,
    }


def _own_time(clock: Clock, path: str, number: int, line: Parsed) -> str | None:
    own = clock.own_time(path, line.host, line, number)
    if own is not None:
        wall, offset = own
        if offset is None:
            offset = clock.known_offset(line.host, wall)
        return _iso(wall, offset)
    if line.stamp is None and line.uptime_s is not None:
        when = clock.when(path, line.host, line, number)
        if when.at is not None and when.basis is TimeBasis.UPTIME:
            return when.at.isoformat()
    return None


def _inferred(clock: Clock, path: str, number: int, line: Parsed) -> str | None:
    when = clock.when(path, line.host, line, number)
    return when.at.isoformat() if when.at is not None and when.basis is not TimeBasis.STAMP else None


def _iso(wall: datetime, offset_s: int | None) -> str:
    if offset_s is None:
        return wall.isoformat()
    return wall.replace(tzinfo=timezone(timedelta(seconds=offset_s))).isoformat()
