"""One piece of a file with lazily peeled lines: offsets to line numbers, the labels around a line, the last stamp above."""

from __future__ import annotations

import re

from triage.peel import Peeler, strip_ansi
from triage.sources.base import Parsed

SMALL_BYTES = 256 << 10  # every line of a smaller piece is peeled
TEXT_LIMIT = 2000
WINDOW_BEFORE, WINDOW_AFTER = 60, 400
STAMP_LINES_BACK = 200
_JSON_COLOUR = re.compile(rb"\\u001b\[[0-9;?]*[A-Za-z]")
_JSON_ESCAPES = ((b'\\"', b'"'), (b"\\n", b" "), (b"\\t", b"\t"), (b"\\/", b"/"))


class Block:
    """One piece of a file with lazily peeled lines. Line numbers here count from 0 within the piece."""

    def __init__(self, raw: bytes, first_line: int, peeler: Peeler) -> None:
        self.raw = raw
        self.first_line = first_line
        self.peeler = peeler
        self.scanned = scannable(raw)
        self._at = (0, 0)  # (offset in scanned, line number) of the last question
        self._peeled: dict[int, Parsed] = {}
        self._raw_at = (0, 0)

    def number_at(self, offset: int) -> int:
        """Return the number of the line that starts at ``offset``; questions come in rising order."""
        at, number = self._at
        number = (
            number + self.scanned.count(b"\n", at, offset) if offset >= at else self.scanned.count(b"\n", 0, offset)
        )
        self._at = (offset, number)
        if self.raw is self.scanned:
            self._raw_at = (offset, number)
        return number

    def _raw_start(self, number: int) -> int:
        at, known = self._raw_at
        if number < known:
            at, known = (0, 0) if number < known // 2 else self._back(at, known, number)
        while known < number:
            following = self.raw.find(b"\n", at)
            if following < 0:
                return len(self.raw)
            at, known = following + 1, known + 1
        self._raw_at = (at, known)
        return at

    def _back(self, at: int, known: int, number: int) -> tuple[int, int]:
        while known > number:
            at, known = self.raw.rfind(b"\n", 0, at - 1) + 1, known - 1
        return at, known

    def line_bytes(self, number: int) -> bytes:
        """Return a physical line as it stands in the file, cut at 64 KiB."""
        start = self._raw_start(number)
        stop = self.raw.find(b"\n", start, start + 65536)
        return self.raw[start : stop if stop >= 0 else start + 65536]

    def keep(self, number: int, line: bytes) -> Parsed:
        """Peel a line that the caller already cut out."""
        parsed = self._peeled.get(number)
        if parsed is None:
            parsed = self._peeled[number] = self.peeler.peel(line[:8192].decode("utf-8", "replace"))
        return parsed

    def parsed_line(self, number: int) -> Parsed:
        """Return the peeled line, read at most once."""
        return self._peeled.get(number) or self.keep(number, self.line_bytes(number))

    def text(self, number: int) -> str:
        """Return the original text of a line for evidence, cut at 2000 characters."""
        return self.line_bytes(number).decode("utf-8", "replace").rstrip("\r")[:TEXT_LIMIT]

    def stamped_above(self, number: int) -> tuple[int, Parsed] | None:
        """Return the nearest line at or above ``number`` that carries a time, within 200 lines of the block."""
        for candidate in range(number, max(-1, number - STAMP_LINES_BACK), -1):
            parsed = self.parsed_line(candidate)
            if parsed.stamp is not None or parsed.uptime_s is not None:
                return self.first_line + candidate, parsed
        return None

    def window(self, number: int) -> tuple[list[str], list[int], int]:
        """Return the messages around a line that carry the same labels, their numbers, and the line's position."""
        own = self.parsed_line(number)
        label = (own.rank, own.local_rank, own.task)
        texts: list[str] = []
        numbers: list[int] = []
        last = self.raw.count(b"\n") if len(self.raw) <= SMALL_BYTES else number + WINDOW_AFTER
        for candidate in range(max(0, number - WINDOW_BEFORE), min(number + WINDOW_AFTER, last) + 1):
            parsed = self.parsed_line(candidate)
            if (parsed.rank, parsed.local_rank, parsed.task) == label:
                texts.append(parsed.body)
                numbers.append(candidate)
        return texts, numbers, numbers.index(number)


def scannable(raw: bytes) -> bytes:
    """Return the bytes that patterns see: ANSI escapes, NULs and JSON escapes removed, the same number of lines."""
    if raw[:1] == b"{" and b"\\" in raw:
        raw = _JSON_COLOUR.sub(b"", raw)
        for escaped, plain in _JSON_ESCAPES:
            raw = raw.replace(escaped, plain)
    if b"\x1b" not in raw and b"\x00" not in raw:
        return raw
    return strip_ansi(raw.decode("latin-1")).encode("latin-1")
