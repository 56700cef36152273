"""Directory listings: ``ls -l`` in every time style, ``ls -lR``, ``find -ls``, ``stat``. One row per entry.

Fields: ``path`` (with its directory as far as told), ``size`` (bytes), ``entry`` (file, directory, link, other),
``owner``, ``mtime`` (ISO 8601; only for full-iso, iso and ``stat``, else ``mtime_text``), ``rounded`` when the size was
printed in K, M, G.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts
from triage.sources.base import Row
from triage.vocabulary import Origin

_MODE: Final = r"(?P<mode>[-dlbcps][-rwxsStT]{9})[.+@]?"
_WHEN: Final = (
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?[+-]\d{4})?)"
    r"|(?P<text>(?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2}) {1,2}(?:\d\d:\d\d(?::\d\d)?(?: \d{4})?|\d{4}))"
    r"|(?P<short>\d\d-\d\d \d\d:\d\d))"
)
_ENTRY: Final = re.compile(
    rf"^\s{{0,12}}(?:\d{{1,20}}\s+)?(?:\d[\d.]{{0,20}}[KMGT]?\s+)?{_MODE}\s+\d{{1,10}}\s+(?P<owner>\S{{1,64}})\s+(?:(?P<group>\S{{1,64}})\s+)?"
    rf"(?P<size>\d{{1,20}}(?:[.,]\d)?[KMGTP]?|\d+, +\d+)\s+{_WHEN}\s+(?P<name>\S.{{0,1000}}?)\s*$"
)
_DIRECTORY: Final = re.compile(r"^(?P<path>(?:/|\./|\.\./|~/|[\w.@+-]+/|[\w.@+-]+:$)[^\r\n]{0,1000}?):?$")
_COMMAND: Final = re.compile(r"(?:^|[$#%>;&|]\s*)ls(?:\s+-{1,2}\S+)*\s+(?P<path>/[^\s;|&'\"<>*?\[{]{0,1000})(?:\s|$)")
_STAT_FILE: Final = re.compile(r"^\s*File: [`'\"‘]?(?P<path>[^'\"’\r\n]{1,1000}?)['\"’]?\s*$")
_STAT_SIZE: Final = re.compile(
    r"^\s*Size: (?P<size>\d{1,20})\s.{0,120}?"
    r"(?P<entry>regular empty file|regular file|directory|symbolic link|\S+(?: \S+)?)\s*$"
)
_STAT_TIME: Final = re.compile(r"^\s*Modify: (?P<iso>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: [+-]\d{4})?)")
_ENTRIES: Final = {"-": "file", "d": "directory", "l": "link"}
_POWER: Final = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_FULL_ISO: Final = re.compile(r"^(\S{10})[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*(?: ?([+-]\d\d)(\d\d))?$")


def _iso(text: str) -> str:
    """Return ISO 8601 with at most microseconds for the forms of ls and stat."""
    found = _FULL_ISO.match(text)
    if found is None:
        return text
    return f"{found[1]}T{found[2]}" + (f"{found[3]}:{found[4]}" if found[3] else "")


def _entry(line: Line, directory: str, host: str | None) -> Row | None:
    found = _ENTRY.match(line.text[:3000])
    if found is None or ("," in found["size"] and found["mode"][0] in "bc"):
        return None
    name = found["name"]
    if found["mode"][0] == "l":
        name = name.partition(" -> ")[0]
    path = name if name.startswith("/") or not directory else f"{directory.rstrip('/')}/{name}"
    size = found["size"].replace(",", ".")
    entry = _ENTRIES.get(found["mode"][0], "other")
    fields: dict[str, Scalar] = {"path": path, "entry": entry, "owner": found["owner"]}
    if size[-1].isalpha() or "." in size:
        fields["rounded"] = True
        scale = 1024 ** _POWER.get(size[-1], 0)
        fields["size"] = int(float(size.rstrip("KMGTP")) * scale)
    else:
        fields["size"] = int(size)
    if found["iso"]:
        fields["mtime"] = _iso(found["iso"])
    else:
        fields["mtime_text"] = found["text"] or found["short"]
    if host is not None:
        fields["host"] = host
    return Row("listing", line.number, line.number, fields, line.text)


def _kind(words: str) -> str:
    return "file" if "regular" in words else words.replace("symbolic link", "link")


def _stat_row(path: Line, fields: dict[str, Scalar], end: int, host: str | None) -> Row:
    if host is not None:
        fields["host"] = host
    return Row("listing", path.number, end, fields, path.text)


class _Listing:
    """Rows of kind ``listing``."""

    name = "listing"
    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`: two entries among the first lines, or a ``stat`` block."""
        seen, lines = 0, head.split("\n")[:2000]
        for number, line in enumerate(lines):
            seen += _ENTRY.match(line[:3000]) is not None
            below = lines[number + 1] if number + 1 < len(lines) else ""
            if seen >= 2 or (_STAT_FILE.match(line) and _STAT_SIZE.match(below)):
                return True
        return seen == 1 and len([line for line in lines if line.strip()]) <= 6

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        for host, members in parts(lines):
            yield from _read(members, host)


def _read(members: Sequence[Line], host: str | None) -> Iterator[Row]:
    directory = ""
    block: tuple[Line, dict[str, Scalar]] | None = None
    for line in members:
        if (row := _entry(line, directory, host)) is not None:
            yield row
        elif (found := _STAT_FILE.match(line.text)) is not None:
            if block is not None:
                yield _stat_row(*block, line.number - 1, host)
            block = (line, {"path": found["path"].partition("' -> ")[0]})
        elif block is not None and (found := _STAT_SIZE.match(line.text)) is not None:
            block[1]["size"] = int(found["size"])
            block[1]["entry"] = _kind(found["entry"])
        elif block is not None and (found := _STAT_TIME.match(line.text)) is not None:
            block[1]["mtime"] = _iso(found["iso"])
        elif (found := _COMMAND.search(line.text[:2000])) is not None:
            directory = found["path"]
        elif line.text.rstrip().endswith(":") and (found := _DIRECTORY.match(line.text.rstrip())) is not None:
            directory = found["path"].rstrip(":")
    if block is not None:
        yield _stat_row(*block, members[-1].number, host)


LISTING = _Listing()
