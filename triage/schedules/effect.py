"""What a command does to files: the :class:`Effect` type and the words that options are split into."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from triage.schedules.mounts import overlaps

Kind = Literal["delete", "overwrite", "truncate", "read-load", "lock", "update", "unknown", "none"]
Side = Literal["source", "destination"]

DESTRUCTIVE: Final[frozenset[Kind]] = frozenset({"delete", "overwrite", "truncate", "update"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing a command does to one tree.

    ``path`` is absolute where known, else relative, or None; ``host`` names another machine than the one that runs the
    command. ``excludes`` are patterns that the tool leaves alone, ``names`` the only base names it takes, files younger
    than ``min_age_s`` are spared. ``script`` and ``line`` say where the command stands when cron runs a script.
    Kind ``unknown``: a program that the bundle does not hold; ``none``: harmless, ``harmless_reason`` says why.
    """

    kind: Kind
    path: str | None
    role: Side = "destination"
    tool: str = ""
    option: str = ""
    harmless_reason: str = ""
    host: str | None = None
    excludes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    min_age_s: float = 0.0
    script: str | None = None
    line: int = 0

    @property
    def is_destructive(self) -> bool:
        """Whether it can take away or change data that training needs."""
        return self.kind in DESTRUCTIVE

    def spares(self, path: str) -> bool:
        """Say whether exclusion or name patterns keep the tool away from ``path`` although it lies in the tree."""
        if self.path is None:
            return False
        below = [part for part in path.split("/") if part][len([p for p in self.path.split("/") if p]) :]
        if any(_excluded(pattern, below) for pattern in self.excludes):
            return True
        is_file = bool(below) and "." in below[-1]
        return bool(self.names) and is_file and not any(fnmatchcase(below[-1], name) for name in self.names)

    def touches(self, path: str) -> bool:
        """Say whether the effect reaches ``path``, seen from one and the same host."""
        return self.path is not None and overlaps(self.path, path) and not self.spares(path)


def word_set(text: str) -> frozenset[str]:
    """The words of ``text``: tables of names stay readable that way."""
    return frozenset(text.split())


def _excluded(pattern: str, below: Sequence[str]) -> bool:
    parts = [part for part in pattern.split("/") if part and part != "**"]
    if not parts:
        return False
    starts = range(1) if pattern.startswith("/") else range(len(below))
    return any(
        len(below) >= start + len(parts) and all(fnmatchcase(b, p) for b, p in zip(below[start:], parts, strict=False))
        for start in starts
    )


def split_options(args: Sequence[str], valued: Collection[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Part (option, value) pairs from operands; ``valued`` options take the next word when no value is attached."""
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    queue = list(args)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return options, operands + queue
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            options.append((name, value if equals or name not in valued or not queue else queue.pop(0)))
        elif re.match(r"-[A-Za-z0-9]", word):
            options.extend(_cluster(word[1:], valued, queue))
        else:
            operands.append(word)
    return options, operands


def _cluster(letters: str, valued: Collection[str], queue: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        if f"-{letter}" in valued:
            rest = letters[place + 1 :]
            return [*found, (f"-{letter}", rest or (queue.pop(0) if queue else ""))]
        found.append((f"-{letter}", ""))
    return found
