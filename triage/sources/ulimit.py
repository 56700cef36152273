"""Limits of a process: ``ulimit -a`` as bash, dash and zsh print it, and ``/proc/<pid>/limits``. One row per limit."""

from __future__ import annotations

import re as _re
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence

from triage.model import Scalar as _Scalar
from triage.sources._dumps import parts as _parts
from triage.sources.base import Row as _Row
from triage.vocabulary import Origin as _Origin

_BASH = _re.compile(r"^\s*[a-zA-Z][\w -]{2,40}?\s+\((?:[\w ]{3,12}, )?-(\w)\)\s+(\S+)\s*$")
_DASH = _re.compile(r"^\s*(time|file|data|stack|coredump|memory|locked memory|process|nofiles|vmemory|locks|rtprio)"
                    r"(?:\((\w+)\))?\s+(\d{1,20}|unlimited)\s*$")  # fmt: skip
_ZSH = _re.compile(r"^\s*-(\w): ([a-z][\w -]{2,40}?)(?: \((\w+)\))?\s+(\S+)\s*$")
_PROC = _re.compile(r"^\s*(Max [a-z][\w ./-]{2,30}?)\s{2,}(\d{1,20}|unlimited)\s+(\d{1,20}|unlimited)(?:\s+\w+)?\s*$")
_ASKED = _re.compile(r"(?:[$#%>]|&&|;|'|\")\s*ulimit\s+(?:-[SH]\s*)?-[SH]?([lnusvmfctxqi])\s*['\"]?\s*$")
_ANSWER = _re.compile(r"^\s*(\d{1,20}|unlimited)\s*$")
_SNIFF = _re.compile(
    r"\(kbytes, -l\)|^\s*locked memory\(kbytes\)|^-l: |^Max locked memory\s|^open files\s+\(-n\)|\bulimit -",
    _re.MULTILINE,
)

# letter of bash and zsh -> (name of the limit, field)
_LETTERS: dict[str, tuple[str, str]] = {
    "l": ("memlock", "memlock_kib"), "n": ("nofile", "nofile"), "u": ("nproc", "nproc"), "s": ("stack", "stack_kib"),
    "v": ("address-space", "address_space_kib"), "m": ("resident", "resident_kib"),
    "f": ("file-size", "file_size_blocks"), "c": ("core", "core_blocks"),
    "t": ("cpu-time", "cpu_time_s"), "x": ("file-locks", "file_locks"),
    "q": ("message-queue", "message_queue_bytes"), "i": ("pending-signals", "pending_signals"),
}  # fmt: skip
_DASH_LETTERS = {
    "locked memory": "l", "nofiles": "n", "process": "u", "stack": "s", "vmemory": "v", "memory": "m", "file": "f",
    "coredump": "c", "time": "t", "locks": "x",
}  # fmt: skip
_PROC_LETTERS = {
    "max locked memory": ("l", 1 / 1024), "max open files": ("n", 1.0), "max processes": ("u", 1.0),
    "max stack size": ("s", 1 / 1024), "max address space": ("v", 1 / 1024), "max resident set": ("m", 1 / 1024),
    "max file size": ("f", 1 / 512), "max core file size": ("c", 1 / 512), "max cpu time": ("t", 1.0),
    "max file locks": ("x", 1.0), "max msgqueue size": ("q", 1.0), "max pending signals": ("i", 1.0),
}  # fmt: skip


def _value(text: str, scale: float = 1.0) -> int | None:
    """Return the limit in the field's unit, -1 for ``unlimited``, None for anything else."""
    if text in ("unlimited", "infinity", "hard", "-1"):
        return -1
    return int(int(text) * scale) if text.isdecimal() and len(text) <= 20 else None


class _Ulimit:
    """Rows of kind ``limit``: ``limit`` (name), one field with the soft value, and ``hard`` when it is told."""

    name = "ulimit"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text holds a table of limits."""
        return _SNIFF.search(head) is not None

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield one row per limit; the values are -1 for ``unlimited``."""
        for part in _parts(lines):
            asked: str | None = None
            for number, line in part.lines:
                text = line[:200]
                told = (asked, found[1], None, 1.0) if asked and (found := _ANSWER.match(text)) else _limit(text)
                asked = found[1] if (found := _ASKED.search(text)) else None
                if told is not None and (fields := _fields(*told)) is not None:
                    if part.host is not None:
                        fields["host"] = part.host
                    yield _Row("limit", number, number, fields, line)


def _limit(text: str) -> tuple[str | None, str, str | None, float] | None:
    """Return (letter, soft, hard, scale) of a line of a table of limits."""
    if found := _BASH.match(text):
        return found[1], found[2], None, 1.0
    if found := _PROC.match(text):
        letter, scale = _PROC_LETTERS.get(found[1].lower(), (None, 1.0))
        return letter, found[2], found[3], scale
    if found := _ZSH.match(text):
        return found[1], found[4], None, 1.0
    if found := _DASH.match(text):
        return _DASH_LETTERS.get(found[1]), found[3], None, 1.0
    return None


def _fields(letter: str | None, soft: str, hard: str | None, scale: float) -> dict[str, _Scalar] | None:
    value = _value(soft, scale)
    if letter not in _LETTERS or value is None:
        return None
    name, field = _LETTERS[letter]
    fields: dict[str, _Scalar] = {"limit": name, field: value}
    if hard is not None and (top := _value(hard, scale)) is not None:
        fields["hard"] = top
    return fields


ULIMIT = _Ulimit()
