"""With which characters can a match of a regular expression begin? Lets the peeler try few layouts per line.

Walks the parse tree of the standard library's ``re``. What it does not understand answers "any", which costs speed
and nothing else.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any, Final

_DIGITS: Final = frozenset("0123456789")
_SPACES: Final = frozenset(" \t\n\r\f\v")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ANY: Final = None
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_TRANSPARENT: Final = frozenset({"AT", "ASSERT", "ASSERT_NOT"})


def first_chars(pattern: str) -> frozenset[str] | None:
    """Return the characters a non-empty match of ``pattern`` can begin with; None when they cannot be listed."""
    try:
        parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
        chars, empty = _sequence(parser.parse(pattern))
    except Exception:
        return _ANY
    return _ANY if empty or chars is None else chars


def required_literal(pattern: str) -> str:
    """Return the longest text that every match of ``pattern`` holds, as far as its outer sequence tells; else ""."""
    try:
        parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
        runs = "".join(_literals(parser.parse(pattern))).split("\0")
    except Exception:
        return ""
    return max(runs, key=len)


def _literals(items: Any) -> Iterator[str]:
    """Yield the literal characters of a sequence, NUL for everything else."""
    for operator, argument in items:
        if str(operator) == "LITERAL":
            yield chr(argument)
        elif str(operator) == "SUBPATTERN" and not argument[1]:
            yield from _literals(argument[-1])
        else:
            yield "\0"


def _sequence(items: Any) -> tuple[frozenset[str] | None, bool]:
    """Return (first characters, can match empty) of a sequence of parse tree nodes."""
    chars: frozenset[str] = frozenset()
    for operator, argument in items:
        found, empty = _node(str(operator), argument)
        if found is None:
            return None, empty
        chars |= found
        if not empty:
            return chars, False
    return chars, True


def _node(operator: str, argument: Any) -> tuple[frozenset[str] | None, bool]:
    """Return (first characters, can match empty) of one node."""
    if operator in _TRANSPARENT:
        return frozenset(), True
    if operator == "BRANCH":
        return _branch(argument[1])
    if operator == "SUBPATTERN":
        return _group(argument)
    if operator in _REPEATS:
        chars, empty = _sequence(argument[2])
        return chars, empty or argument[0] == 0
    if operator == "IN":
        return _set(argument), False
    return (frozenset({chr(argument)}) if operator == "LITERAL" and argument < 128 else None), False


def _group(argument: Any) -> tuple[frozenset[str] | None, bool]:
    """First characters of a group; one with flags of its own, such as ``(?i:...)``, is taken to ignore case."""
    chars, empty = _sequence(argument[-1])
    if chars is not None and argument[1]:
        chars = frozenset(case for char in chars for case in (char.lower(), char.upper()))
    return chars, empty


def _branch(branches: Any) -> tuple[frozenset[str] | None, bool]:
    chars: frozenset[str] = frozenset()
    empty = False
    for branch in branches:
        found, can_be_empty = _sequence(branch)
        if found is None:
            return None, can_be_empty
        chars |= found
        empty |= can_be_empty
    return chars, empty


def _set(items: Any) -> frozenset[str] | None:
    """Members of a character class; None when it reaches beyond ASCII."""
    chars: set[str] = set()
    for operator, argument in items:
        name = str(operator)
        if name == "LITERAL" and argument < 128:
            chars.add(chr(argument))
        elif name == "RANGE" and argument[1] < 128:
            chars.update(map(chr, range(argument[0], argument[1] + 1)))
        elif name == "CATEGORY" and str(argument) in _CATEGORIES:
            chars |= _CATEGORIES[str(argument)]
        else:
            return None
    return frozenset(chars)


# \d, \s and \w reach beyond ASCII; prefixes do not begin there, and a line that does is read as text.
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": _DIGITS,
    "CATEGORY_SPACE": _SPACES,
    "CATEGORY_WORD": _DIGITS | _LETTERS | {"_"},
}
