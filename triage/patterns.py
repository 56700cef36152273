"""Regular expressions of signatures: parsed once, rewritten for the scanner, for ripgrep, and judged for cost.

A signature's pattern is written for the ``regex`` package over bytes. The scanner wants a form that reports a match as
early as possible and only once: anchors, look-arounds and group names dropped, trailing open quantifiers cut. Each
rewrite only ever widens what matches; confirmation with the full pattern decides (docs/decisions/003-scan-forms.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_QUANTIFIERS = "*+?{"
_NEEDLESS_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?=[^A-Za-z0-9\\.+*?()|\[\]{}^$#&\-~])")
KEPT_REPEAT = 2  # higher counts are opened in the scan form


class PatternSyntaxError(ValueError):
    """The pattern cannot be parsed; ``position`` is the 0-based offset in the pattern."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Item:
    """An atom with its quantifier. ``group`` holds the alternatives when the atom is a group."""

    atom: str
    low: int = 1
    high: int | None = 1
    group: tuple[tuple[Item, ...], ...] | None = None
    zero_width: bool = False

    def __str__(self) -> str:
        body = self.atom if self.group is None else f"(?:{emit(self.group)})"
        return body + _quantifier(self.low, self.high)


Alternatives = tuple[tuple[Item, ...], ...]


def _quantifier(low: int, high: int | None) -> str:
    match (low, high):
        case (1, 1):
            return ""
        case (0, None):
            return "*"
        case (1, None):
            return "+"
        case (0, 1):
            return "?"
        case (_, None):
            return f"{{{low},}}"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def emit(alternatives: Alternatives) -> str:
    """Write parsed alternatives back as a pattern."""
    return "|".join("".join(map(str, items)) for items in alternatives)


class _Parser:
    """Recursive descent over the pattern syntax that signatures may use."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags = ""

    def parse(self) -> Alternatives:
        found = self._alternatives()
        if self.at < len(self.text):
            raise PatternSyntaxError("unbalanced parenthesis", self.at)
        return found

    def _alternatives(self) -> Alternatives:
        out: list[tuple[Item, ...]] = []
        items: list[Item] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                out.append(tuple(items))
                items = []
            elif (item := self._item()) is not None:
                items.append(item)
        return (*out, tuple(items))

    def _item(self) -> Item | None:
        start, char = self.at, self.text[self.at]
        if char == "(":
            item = self._group()
        elif char == "[":
            item = Item(self._class())
        elif char == "\\":
            item = self._escape()
        elif char in _QUANTIFIERS and not (char == "{" and not self._braces_ahead()):
            raise PatternSyntaxError("nothing to repeat", start)
        else:
            self.at += 1
            item = Item(char, zero_width=char in "^$")
        return self._quantified(item) if item is not None else None

    def _escape(self) -> Item:
        if self.at + 1 >= len(self.text):
            raise PatternSyntaxError("pattern ends in a backslash", self.at)
        char = self.text[self.at + 1]
        if char in "KRXGp" or char.isdigit():
            raise PatternSyntaxError(f"\\{char} is not supported by the scanner", self.at)
        length = 4 if char == "x" else 2
        atom = self.text[self.at : self.at + length]
        self.at += length
        return Item(atom, zero_width=char in "bBAZz")

    def _class(self) -> str:
        start = self.at
        self.at += 1
        for lead in "^]":
            if self.text[self.at : self.at + 1] == lead:
                self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "]":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise PatternSyntaxError("unterminated character class", start)
        self.at += 1
        return self.text[start : self.at]

    def _group(self) -> Item | None:
        start = self.at
        self.at += 1
        looks = False
        if self.text[self.at : self.at + 1] == "?":
            looks, done = self._group_head(start)
            if done:
                return None
        inner = self._alternatives()
        if self.text[self.at : self.at + 1] != ")":
            raise PatternSyntaxError("missing ), unterminated group", start)
        self.at += 1
        return Item("", group=inner, zero_width=looks)

    def _group_head(self, start: int) -> tuple[bool, bool]:
        """Skip what follows ``(?``; say (look-around, flags only)."""
        rest = self.text[self.at + 1 :]
        for head in ("=", "!", "<=", "<!"):
            if rest.startswith(head):
                self.at += 1 + len(head)
                return True, False
        if rest.startswith(":"):
            self.at += 2
            return False, False
        if rest.startswith("P<") and ">" in rest:
            self.at += 2 + rest.index(">")
            return False, False
        letters = rest.split(")")[0]
        if start == 0 and letters and set(letters) <= set("i"):
            self.flags, self.at = letters, self.at + len(letters) + 2
            return False, True
        raise PatternSyntaxError("only (?:, (?P<name>, look-arounds and a leading (?i) are supported", start)

    def _braces_ahead(self) -> bool:
        body = self.text[self.at + 1 :].split("}")[0]
        return "}" in self.text[self.at :] and bool(body) and set(body) <= set("0123456789,")

    def _quantified(self, item: Item) -> Item:
        char = self.text[self.at : self.at + 1]
        if not char or char not in _QUANTIFIERS or (char == "{" and not self._braces_ahead()):
            return item
        start = self.at
        low, high = self._read_quantifier(char)
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1  # lazy: the same language
        elif self.text[self.at : self.at + 1] == "+":
            raise PatternSyntaxError("possessive quantifiers are not supported by the scanner", start)
        return replace(item, low=low, high=high)

    def _read_quantifier(self, char: str) -> tuple[int, int | None]:
        if char != "{":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        body = self.text[self.at + 1 :].split("}")[0]
        self.at += len(body) + 2
        low, comma, high = body.partition(",")
        if not comma:
            return int(low), int(low)
        return int(low or 0), int(high) if high else None


def parse(pattern: str) -> tuple[str, Alternatives]:
    """Return (leading flags, alternatives) of a pattern. Raises :class:`PatternSyntaxError`."""
    parser = _Parser(pattern)
    tree = parser.parse()
    return parser.flags, tree


def scan_form(pattern: str) -> str:
    """Return the widened form that the scanner compiles. Raises :class:`PatternSyntaxError`, also if it may match nothing."""
    flags, tree = parse(pattern)
    trimmed = tuple(_trim(_plain(items)) for items in tree)
    if any(_may_be_empty(items) for items in trimmed):
        raise PatternSyntaxError("the pattern can match without any fixed text", 0)
    return (f"(?{flags})" if flags else "") + emit(trimmed)


def rg_form(pattern: str) -> str:
    """Return a form that ripgrep 13 and newer (Rust regex syntax) accepts and that finds the same lines as the scan form."""
    return _NEEDLESS_ESCAPE.sub(r"\1", scan_form(pattern))


def _plain(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Drop anchors and look-arounds and open counted repeats, all the way down.

    Counted repeats cost the scanner states, open ones nearly nothing: 413 patterns compiled in 1.7 s and ran at
    0.09 GB/s with counts, and at the speed of DESIGN section 5 without.
    """
    out = []
    for item in items:
        if item.zero_width:
            continue
        if item.group is not None:
            item = replace(item, group=tuple(_plain(inner) for inner in item.group))
        if item.high is not None and item.high > KEPT_REPEAT:
            item = replace(item, low=min(item.low, 1), high=None)
        out.append(item)
    return tuple(out)


def _trim(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Cut trailing quantifiers so that a match is reported at its first possible end."""
    rest = list(items)
    while rest:
        last = rest[-1]
        if last.low == 0:
            rest.pop()
            continue
        last = replace(last, high=last.low)
        if last.group is not None and last.low == 1:
            inner = tuple(_trim(alternative) for alternative in last.group)
            if any(not alternative for alternative in inner):
                rest.pop()
                continue
            last = replace(last, group=inner)
        rest[-1] = last
        break
    return tuple(rest)


def _may_be_empty(items: tuple[Item, ...]) -> bool:
    return all(
        item.zero_width or item.low == 0 or (item.group is not None and any(map(_may_be_empty, item.group)))
        for item in items
    )


MIN_LITERAL = 6
"""Shorter literals occur too often to be worth a look-up; such patterns are scanned in their widened form."""

MAX_LITERALS = 40
_CLASS_ESCAPES = frozenset("dDwWsSbBAZzhvN")
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def probe_forms(pattern: str) -> list[str]:
    """Return what the scanner looks for: literals of which every match holds at least one, else the widened form.

    Literals keep the scan at the speed of a multi-string search however many patterns there are; confirmation with the
    full pattern sees only lines that hold one. Raises :class:`PatternSyntaxError` like :func:`scan_form`.
    """
    form = scan_form(pattern)
    flags, tree = parse(pattern)
    found = _union([_required(items) for items in tree])
    if found is None or min(map(len, found)) < MIN_LITERAL or any("\n" in text for text in found):
        return [form]
    head = f"(?{flags})" if flags else ""
    return [head + escape(text) for text in sorted(found)]


def escape(text: str) -> str:
    """Return ``text`` as a pattern that matches just it."""
    return "".join("\\" + c if c in r"\.^$*+?{}[]()|#/&~-" else c for c in text)


def _union(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    """Join the literals of alternatives: each must have some."""
    out: set[str] = set()
    for part in parts:
        if not part:
            return None
        out |= part
    return frozenset(out) if len(out) <= MAX_LITERALS else None


def _required(items: tuple[Item, ...]) -> frozenset[str] | None:
    """Return the best set of literals of which a sequence always holds one; None if it has none."""
    best: frozenset[str] | None = None
    run = ""
    for item in (*_flat(items), None):
        text = _literal(item) if item is not None else None
        if text is not None and item is not None:
            run += text * item.low
            if item.high == item.low:
                continue
        best = _better(best, frozenset({run}) if run else None)
        run = ""
        if item is not None and item.group is not None and item.low >= 1 and not item.zero_width:
            best = _better(best, _union([_required(inner) for inner in item.group]))
    return best


def _flat(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield items with plain groups of one alternative taken apart and zero-width items dropped."""
    for item in items:
        if item.zero_width:
            continue
        if item.group is not None and len(item.group) == 1 and (item.low, item.high) == (1, 1):
            yield from _flat(item.group[0])
        else:
            yield item


def _literal(item: Item) -> str | None:
    """Return the character that an item stands for, None if it may be several or none."""
    if item.group is not None or item.low == 0 or item.atom.startswith("[") or item.atom == ".":
        return None
    if not item.atom.startswith("\\"):
        return item.atom
    kind = item.atom[1]
    if kind in _CLASS_ESCAPES:
        return None
    if kind == "x":
        return chr(int(item.atom[2:], 16)) if int(item.atom[2:], 16) < 128 else None
    return _CONTROL_ESCAPES.get(kind, kind)


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if not one or not other:
        return one or other
    return max(one, other, key=lambda found: (min(24, *map(len, found), 24), -len(found)))


def unbounded_gaps(pattern: str) -> Iterator[str]:
    """Yield atoms such as ``.*`` that may run over a whole line: authors should bound them (``.{0,400}``)."""

    def walk(items: tuple[Item, ...]) -> Iterator[str]:
        for position, item in enumerate(items):
            if (
                item.high is None
                and item.atom in (".", r"\S", r"\s")
                and position < len(items) - 1
                and item.atom == "."
            ):
                yield str(item)
            for inner in item.group or ():
                yield from walk(inner)

    for items in parse(pattern)[1]:
        yield from walk(items)
