"""Joins many line layouts into one regular expression, and tells which layout a match belongs to.

An empty marker group stands behind each alternative, so ``match.lastindex`` names it. Layouts that begin with the same
time pattern share it and stand together, where the best of them stood: a line's date is then scanned once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from triage.sources.base import Layout

_GROUP_NAME: Final = re.compile(r"\(\?P<(\w+)>")
_STAMP: Final = "(?P<stamp>"
_STARTS: Final = (0, len(r"\["))  # a shared time begins the pattern, or follows one bracket
# Optional beginnings, and the first character of a line that has them.
_OPTIONAL: Final = ((r"\[?", "[", r"\["), (r"(?:<(?P<priority>\d{1,3})>)?", "<", None), (" ?", " ", None))


class Candidate(NamedTuple):
    """A layout, its source, and the characters a match can begin with (None: any)."""

    layout: Layout
    source: str
    first: frozenset[str] | None
    late: bool = False  # of a catch-all source: never tried before the layouts of another one


class Entry(NamedTuple):
    """A layout inside a table: which groups of the joined expression are its fields."""

    layout: Layout
    source: str
    fields: tuple[tuple[int, str], ...]  # (group, name of the field)
    stamps: tuple[int, ...]  # groups of the time
    body: int  # group where the message starts, 0: where the match ends
    constants: tuple[tuple[str, str], ...]  # what the layout itself says, by a group named program_is_opensm


class Table(NamedTuple):
    """Layouts as one expression; ``entries`` by the number of the marker group."""

    pattern: re.Pattern[str]
    entries: Mapping[int, Entry]


def join(candidates: Sequence[Candidate], group: frozenset[str] | None = None) -> Table:
    """Build the table of ``candidates`` (best first) for lines that begin with a character of ``group`` (None: any)."""
    parts: list[str] = []
    shared: dict[int, str] = {}  # candidate -> name of the stamp group it shares
    for number, (head, members) in enumerate(_factor(candidates, group)):
        tails = [f"{_suffixed(tail, index)}(?P<end__{index}>)" for index, tail in members]
        if head:
            shared.update((index, f"stamp__head{number}") for index, _ in members)
            parts.append(_GROUP_NAME.sub(rf"(?P<\1__head{number}>", head) + "(?:" + "|".join(tails) + ")")
        else:
            parts.extend(tails)
    pattern = re.compile("|".join(parts))
    return Table(pattern, MappingProxyType(dict(_entries(pattern, candidates, shared))))


def _suffixed(pattern: str, number: int) -> str:
    """Make the group names of one layout unique; guard its alternatives."""
    return "(?:" + _GROUP_NAME.sub(rf"(?P<\1__{number}>", pattern) + ")"


def _factor(
    candidates: Sequence[Candidate], group: frozenset[str] | None
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield (shared head or "", [(candidate number, rest of its pattern)]), a group where its first member stood."""
    grouped: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for number, candidate in enumerate(candidates):
        pattern = _specialised(candidate.layout.pattern, group)
        head = _head(pattern)
        grouped.setdefault((int(candidate.late), head) if head else (number, ""), []).append(
            (number, pattern[len(head) :])
        )
    for (_, head), members in grouped.items():
        yield head, members


def _specialised(pattern: str, group: frozenset[str] | None) -> str:
    """Decide optional beginnings by the known first character."""
    for optional, char, present in _OPTIONAL:
        if group is None or not pattern.startswith(optional):
            continue
        if char not in group:
            pattern = pattern[len(optional) :]
        elif present is not None and group == {char}:
            pattern = present + pattern[len(optional) :]
    return pattern


def _head(pattern: str) -> str:
    """Return the time a pattern begins with, if other layouts could share it; else nothing."""
    start = pattern.find(_STAMP)
    if start not in _STARTS or (start and not pattern.startswith(r"\[")):
        return ""
    end = 0
    for index, char, depth in _syntax(pattern):
        if char == "|" and depth == 0:
            return ""  # alternatives at the top: the head belongs to the first one only
        if char == ")" and depth == 0 and not end:
            end = index + 1
    return pattern[:end]


def _syntax(pattern: str) -> Iterator[tuple[int, str, int]]:
    """Yield (index, character, depth of groups after it) of the characters outside escapes and classes."""
    depth, index, in_class = 0, 0, False
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            index += pattern.startswith("^", index + 1)
            index += pattern.startswith("]", index + 1)
        else:
            depth += (char == "(") - (char == ")")
            yield index, char, depth
        index += 1


def _entries(
    pattern: re.Pattern[str], candidates: Iterable[Candidate], shared: Mapping[int, str]
) -> Iterator[tuple[int, Entry]]:
    names: dict[str, dict[str, int]] = {}
    for name, index in pattern.groupindex.items():
        base, _, owner = name.rpartition("__")
        names.setdefault(owner, {})[base] = index
    for number, candidate in enumerate(candidates):
        groups = names[str(number)]
        marker, body = groups.pop("end"), groups.pop("body", 0)
        stamps = tuple(groups.pop(name) for name in list(groups) if name.rstrip("0123456789") == "stamp")
        stamps = stamps or tuple(pattern.groupindex[name] for name in [shared.get(number, "")] if name)
        said = tuple((name, value) for name, is_, value in (g.partition("_is_") for g in groups) if is_)
        fields = tuple((index, name.rstrip("0123456789")) for name, index in groups.items() if "_is_" not in name)
        yield marker, Entry(candidate.layout, candidate.source, fields, stamps, body, said)
