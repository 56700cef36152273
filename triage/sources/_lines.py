"""The common form of a line source, and pattern fragments that several of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from triage.sources.base import Layout


@dataclass(frozen=True, slots=True)
class Lines:
    """A line source. Among layouts that match, the one of the source with the lowest ``priority`` wins."""

    name: str
    layouts: tuple[Layout, ...]
    priority: int = 50


ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:.]))"
"""A zone behind a numeric time; needs something else than a word behind it."""

CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
"""Time of day with optional fraction."""

ISO: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9}(?!\d))?(?: ?(?:Z|[+-]\d\d:?\d\d)(?![\w:.]))?"
"""ISO 8601 as loggers write it. Layouts that begin with exactly ``(?P<stamp>{ISO})`` share one scan of the date."""

BSD: Final = r"(?:[A-Za-z][^\W\d_]{2,8}\.?|\d{1,2}月) {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
"""Syslog's time: month name (any language, checked by the stamp function), day, clock."""

_WORDS: Final = (
    "alert", "critical", "crit", "debug", "emergency", "emerg", "error", "err", "exception", "fatal", "information",
    "info", "notice", "severe", "trace", "warning", "warn",
)  # fmt: skip


def _any_case(words: tuple[str, ...]) -> str:
    """Match words in lower, upper and title case; by first letter, which fails faster than ``(?i:...)``."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[0], []).extend((word[1:], word[1:].upper()))
    return "|".join(f"[{letter.upper()}{letter}](?:{'|'.join(rest)})" for letter, rest in tails.items())


LEVEL: Final = rf"(?:{_any_case(_WORDS)})(?![\w.])"
"""A severity word."""

KERNEL_LEVEL: Final = r"(?:emerg|alert|crit|err|error|warn|warning|notice|info|debug)"
"""Severity words of the kernel and of syslog."""

HOST: Final = r"[A-Za-z0-9](?:[\w.%-]{0,62})"
"""A host name or IPv4 address."""

NO_HOST: Final = (
    r"(?!(?:[Ee]poch|[Ss]tep|[Ii]ter(?:ation)?|[Rr]ank|cuda|[Ll]ayer|[Ss]tage|nvme|mlx\d_|eth|ib|sd)[_-]?\d)"
)
"""Numbered things that stand before a colon and are not hosts."""

NUMBERED_HOST: Final = rf"{NO_HOST}(?=[\w.-]{{0,40}}\d)[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+){{0,8}}"
"""A host name that carries a number, as nodes of a cluster do."""
