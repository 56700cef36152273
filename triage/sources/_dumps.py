"""What readers of command output share: numbered lines, and the host that a dump of several hosts speaks about.

Collected dumps are pasted terminals (``[ops@gpu-12 ~]$ free -g``), files with banners (``==== gpu-12 2030-01-01 ====``)
or output of pdsh / clush (``gpu-12: text`` on every line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_HOST: Final = r"(?=[\w.-]*\d)[A-Za-z][\w.-]{0,62}"
_BANNER: Final = re.compile(
    rf"^\s*(?:[=#*>-]{{2,}}|#)\s*(?:(?:host|node|hostname|on)\s*[:=]?\s*)?({_HOST})(?=[\s:,=#*<-]|$)", re.IGNORECASE
)
_PROMPT: Final = re.compile(r"^\s*[\[(]?[\w.-]{1,32}@([A-Za-z][\w.-]{0,62})[\s:][^$#>%]{0,200}[$#>%](?:\s|$)")
_SSH: Final = re.compile(r"[$#%]\s*(?:pdsh -w|ssh)\s+(?:-\S+\s+)*(?:[\w.-]+@)?([A-Za-z][\w.-]{0,62})\s+\S")
_PDSH: Final = re.compile(rf"^({_HOST}): ?(.*)$")
_NOT_HOSTS: Final = re.compile(
    r"^(?:[abhvtlpk]\d{1,3}s?|gb?\d{3}|(?:rtx|gtx|cuda|step|run|ipv|mlx|bond|eth|ib|nvme|cpu|rank|numa|v)[_-]?\d{0,4}(?:\.\d+)*)$",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"^\s*([+-]?\d{1,18}(?:\.\d{1,9})?)(?:\s*(?:[%A-Za-z].{0,20}|x))?\s*$")


class Line(NamedTuple):
    """A line of a dump: its 1-based number in the text handed in, and what it says without a pdsh label."""

    number: int
    text: str


class Part(NamedTuple):
    """The lines of one host (None: not told)."""

    host: str | None
    lines: list[Line]


def host_of(line: str) -> str | None:
    """Return the host that a banner, a shell prompt or an ``ssh`` command line names."""
    for pattern in (_PROMPT, _SSH, _BANNER):
        found = pattern.search(line[:400])
        if found is not None and not (pattern is _BANNER and _NOT_HOSTS.match(found[1])):
            return found[1].rstrip(".-:")
    return None


def parts(lines: Sequence[str]) -> Iterator[Part]:
    """Split the lines of a dump by host: pdsh labels if every line has one, else banners and prompts.

    Banner and prompt lines open the part of their host and belong to it.
    """
    labelled = [(n, found) for n, line in enumerate(lines, 1) if line.strip() and (found := _PDSH.match(line[:4000]))]
    if len(labelled) >= 2 and len(labelled) == sum(1 for line in lines if line.strip()):
        by_host: dict[str, list[Line]] = {}
        for number, found in labelled:
            by_host.setdefault(found[1], []).append(Line(number, found[2]))
        yield from (Part(host, rows) for host, rows in by_host.items())
        return
    current = Part(None, [])
    for number, line in enumerate(lines, 1):
        host = host_of(line)
        if host is not None and host != current.host:
            if current.lines:
                yield current
            current = Part(host, [])
        current.lines.append(Line(number, line))
    if current.lines:
        yield current


def number(text: str) -> float | None:
    """Return the number of ``81 C``, ``638.09 W``, ``100 %``, ``16x``, ``2560 bank(s)``; None for anything else."""
    found = _NUMBER.match(text)
    return float(found[1]) if found else None


def whole(value: float) -> int | float:
    """Return an integer for a whole number."""
    return int(value) if value == int(value) else value
