"""From one physical line to host, time, rank, program and message, by the layouts of the line sources.

Wrappers (shipper time, ``srun -l`` label, ``[default0]:`` ...) are taken off one by one, outermost first, then one
terminal layout is looked for. All layouts that can begin with the line's first character form one regular expression,
compiled when such a line is first seen; its alternatives are ordered by the priority of their sources, so the result
does not depend on the lines seen before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from triage.firstchars import first_chars, required_literal
from triage.jsonline import decode_object
from triage.layout_table import Candidate, Entry, Table, join
from triage.model import Scalar
from triage.sources.base import LineSource, Parsed, Stamp
from triage.stamps import STAMPS
from triage.vocabulary import Origin

_ANSI: Final = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|\x1b[()][0-9A-B]|\x1b[=>78M]"
)
_CURSOR_UP: Final = "\x1b[A"  # progress bars of several lines redraw themselves by it, as others do by a CR
_MAX_WRAPPERS: Final = 8
_MAX_PREFIX: Final = 4096  # no prefix is longer; keeps the regular expressions off megabyte lines
_MAX_STAMPS: Final = 4096
_MAX_FIELD: Final = 512
_CATCH_ALL: Final = 80  # sources from this priority on match almost anything that begins with a date
_BLANKS: Final = frozenset({" ", "\t"})
# Characters that share one table: fewer expressions to compile than one for every letter.
_CLASSES: Final = tuple(map(frozenset, ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789")))

_SEVERITIES: Final = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")
_SEVERITY_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "v": "debug", "d": "debug", "i": "info", "n": "notice", "w": "warning", "e": "error", "f": "fatal",
        "c": "critical", "verbose": "debug", "trace": "debug", "debug": "debug", "debug1": "debug",
        "debug2": "debug", "debug3": "debug", "info": "info", "information": "info", "notice": "notice",
        "normal": "info", "warn": "warning", "warning": "warning", "err": "error", "error": "error",
        "crit": "critical", "critical": "critical", "alert": "alert", "emerg": "emergency", "panic": "emergency",
        "emergency": "emergency", "fatal": "fatal", "failure": "error", "severe": "error", "exception": "error",
        "failed": "error", "ok": "info", "depend": "warning", "abort": "fatal", "call": "debug",
    }
)  # fmt: skip

_CRON: Final = frozenset({"cron", "crond", "anacron", "atd", "crontab", "/usr/sbin/cron", "fcron", "run-parts"})
_SLURM: Final = frozenset({"slurmctld", "slurmd", "slurmstepd", "slurmdbd", "srun", "sbatch", "salloc", "slurmrestd"})
_KUBERNETES: Final = frozenset(
    {"kubelet", "containerd", "dockerd", "k3s", "rke2", "kube-proxy", "kube-apiserver", "kube-scheduler", "cri-dockerd"}
)


def strip_ansi(text: str) -> str:
    """Remove terminal escape sequences (colours, cursor movements, titles) and NUL characters."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return text.replace("\x00", "") if "\x00" in text else text


def decode(raw: bytes) -> str:
    """Decode one physical line: UTF-8, what is invalid becomes U+FFFD; a byte order mark in front goes."""
    text = raw.decode("utf-8", "replace")
    return text[1:] if text.startswith("\ufeff") else text


def severity(word: str) -> str | None:
    """Map a level word or letter of any emitter (``W``, ``ERR``, ``Warning``) to one vocabulary; None if unknown."""
    return _SEVERITY_WORDS.get(word.lower())


def program_origin(program: str | None) -> Origin:
    """Tell who printed a line of a system log from its tag: kernel, cron, Slurm, Kubernetes, else syslog."""
    if program is None:
        return Origin.SYSLOG
    name = program.lower()
    if name == "kernel":
        return Origin.KERNEL
    if name in _CRON or name.startswith("crond("):
        return Origin.CRON
    if name in _SLURM or name.startswith(("slurmd-", "slurmstepd-")):
        return Origin.SLURM
    return Origin.KUBERNETES if name in _KUBERNETES else Origin.SYSLOG


def _priority(source: LineSource) -> int:
    """Rank of a source; those of others that state none stand in the middle."""
    value = getattr(source, "priority", 50)
    return value if isinstance(value, int) else 50


def last_frame(text: str) -> str:
    """Return the last non-empty part of a line that holds carriage returns (progress bars)."""
    for frame in reversed(text.split("\r")):
        if frame.strip():
            return frame
    return ""


_NO_HEADS: Final[Mapping[str, str | None]] = MappingProxyType({})


class Peeler:
    """Takes the prefixes off lines. Holds no state that a line could change, apart from caches.

    ``heads`` are known answers of :func:`first_chars` by pattern (as text), to save the time of finding them.
    """

    def __init__(self, sources: Iterable[LineSource], heads: Mapping[str, str | None] = _NO_HEADS) -> None:
        self._heads = heads
        ordered = sorted(sources, key=lambda source: (_priority(source), source.name))
        self._sources: tuple[LineSource, ...] = tuple(ordered)
        self._candidates: tuple[Candidate, ...] = ()
        self._rare: tuple[tuple[str, Table], ...] = ()
        self._tables: dict[tuple[str | None, str], Table | None] = {}
        self._stamps: dict[tuple[str, str], Stamp | None] = {}
        self._origins: dict[tuple[str, str | None], Origin] = {}

    def peel(self, line: str, hint: str | None = None, *, last: bool = True) -> Parsed:
        """Parse one physical line (with or without its line end).

        ``hint`` names the source whose layouts are tried first. Of a line with inner carriage returns the last
        non-empty frame is the message (behind the wrappers of the line), unless ``last`` is False.
        """
        text = line.rstrip("\r\n")
        if "\x1b" in text or "\x00" in text:
            text = strip_ansi(text.replace(_CURSOR_UP, "\r")).rstrip("\r")
        if text[:1] == "\ufeff":
            text = text[1:]
        state = _State()
        rest = self._peel(text, hint, state)
        if last and "\r" in rest:
            rest = self._peel(last_frame(rest), hint, state)
        return state.parsed(rest)

    def _peel(self, text: str, hint: str | None, state: _State) -> str:
        """Take prefixes off until a terminal layout or none matches; return the message."""
        for _ in range(_MAX_WRAPPERS):
            found = self._match(text, hint)
            if found is None and text[:1] in _BLANKS:
                found = self._match_indented(text, hint)
            if found is None or not self._absorb(found[0], found[1], state):
                break
            entry, match = found
            if state.message is not None:
                text, state.message = state.message, None
            else:
                text = match.string[match.start(entry.body) if entry.body else match.end() :]
            if not entry.layout.wrapper:
                break
        return text

    def _match(self, text: str, hint: str | None) -> tuple[Entry, re.Match[str]] | None:
        key = (hint, text[:1])
        try:
            table = self._tables[key]
        except KeyError:
            table = self._compile(hint, text[:1])
        if table is not None:
            match = table.pattern.match(text, 0, _MAX_PREFIX)
            if match is not None:
                return table.entries[match.lastindex or 0], match
        for needed, rare in self._rare:
            if needed in text:
                match = rare.pattern.match(text, 0, _MAX_PREFIX)
                if match is not None:
                    return rare.entries[match.lastindex or 0], match
        return None

    def _match_indented(self, text: str, hint: str | None) -> tuple[Entry, re.Match[str]] | None:
        """Try again without indentation; only a layout that carries a time may be indented."""
        found = self._match(text.lstrip(" \t"), hint)
        if found is None or (found[0].layout.stamp is None and all(name != "uptime" for _, name in found[0].fields)):
            return None
        return found

    def _absorb(self, entry: Entry, match: re.Match[str], state: _State) -> bool:
        """Put the fields of a match into ``state``; False when its time is none (the layout does not apply)."""
        layout = entry.layout
        for group in entry.stamps:
            text = match[group]
            if text:
                stamp = self._stamp(layout.stamp or "iso", text)
                if stamp is None:
                    return False
                known = state.stamp
                if known is None or (known.offset_s is None and stamp.offset_s is not None):
                    state.stamp = stamp
        fields = state.fields
        for group, name in entry.fields:
            value = match[group]
            if value and name not in fields:
                if name == "json":
                    if not state.absorb_json(match.string[match.start(group) :]):
                        return False
                else:
                    fields[name] = value
        for name, value in entry.constants:
            fields.setdefault(name, value)
        state.layout, state.source = layout.id, entry.source
        if layout.origin is not None:
            state.origin = layout.origin
        elif not layout.wrapper and (entry.source != "generic" or state.origin is Origin.GENERIC):
            state.origin = self._origin(entry.source, fields.get("program"))
        return True

    def _origin(self, source: str, program: str | None) -> Origin:
        """Origin of a terminal layout that leaves it to the program; outside system logs a tag may be anything."""
        key = (source, program)
        origin = self._origins.get(key)
        if origin is None:
            origin = program_origin(program)
            if origin is Origin.SYSLOG and source not in _SYSTEM_SOURCES:
                origin = Origin.GENERIC
            if len(self._origins) < _MAX_STAMPS:
                self._origins[key] = origin
        return origin

    def _stamp(self, name: str, text: str) -> Stamp | None:
        cache = self._stamps
        key = (name, text)
        if key in cache:
            return cache[key]
        if len(cache) >= _MAX_STAMPS:
            cache.clear()
        stamp = cache[key] = STAMPS[name](text)
        return stamp

    def _compile(self, hint: str | None, char: str) -> Table | None:
        """Join the layouts that can begin with ``char`` or its like, those of source ``hint`` first."""
        if not self._candidates:
            self._load()
        group = next((chars for chars in _CLASSES if char in chars), frozenset({char}))
        fitting = [c for c in self._candidates if c.first is not None and not group.isdisjoint(c.first)]
        fitting.sort(key=lambda c: c.source != hint)
        table = join(fitting, group) if fitting and char else None
        self._tables.update(((hint, member), table) for member in group)
        return table

    def _first(self, pattern: str) -> frozenset[str] | None:
        if pattern not in self._heads:
            return first_chars(pattern)
        known = self._heads[pattern]
        return None if known is None else frozenset(known)

    def _load(self) -> None:
        self._candidates = tuple(
            Candidate(layout, source.name, self._first(layout.pattern), _priority(source) >= _CATCH_ALL)
            for source in self._sources
            for layout in source.layouts
        )
        rare = [c for c in self._candidates if c.first is None]
        self._rare = tuple((required_literal(c.layout.pattern), join([c])) for c in rare)


_SYSTEM_SOURCES: Final = frozenset({"syslog", "journal", "foreign", "daemon", "console"})


class _State:
    """What the prefixes of one line have told so far; the outermost word on a field stands."""

    __slots__ = ("fields", "layout", "message", "origin", "source", "stamp")

    def __init__(self) -> None:
        self.layout: str | None = None
        self.source = ""
        self.origin = Origin.GENERIC
        self.stamp: Stamp | None = None
        self.fields: dict[str, str] = {}
        self.message: str | None = None

    def absorb_json(self, text: str) -> bool:
        """Read a JSON object as the record it holds; False when it is none."""
        record = decode_object(text)
        if record is None:
            return False
        if record.stamp is not None and (self.stamp is None or self.stamp.offset_s is None):
            self.stamp = record.stamp
        for name, value in record.fields.items():
            self.fields.setdefault(name, value)
        self.message = record.message if record.message is not None else text
        return True

    def parsed(self, body: str) -> Parsed:
        """Convert to the contract's type; what it has no place for goes to ``attributes``."""
        numbers: list[int | None] = [None, None, None, None, None]
        host = program = level = uptime = None
        attributes: dict[str, Scalar] | None = None
        for name, value in self.fields.items():
            if name == "host":
                host = value
            elif name == "program":
                program = value
            elif name in _NUMBERS:
                numbers[_NUMBERS[name]] = _integer(value)
            elif name == "severity":
                level = severity(value) or level
            elif name == "priority":
                level = level or _priority_word(value)
            elif name == "uptime":
                uptime = float(value)
            elif name == "usec":
                uptime = _seconds(value)
            elif attributes is None:
                attributes = {name: value}
            else:
                attributes[name] = value
        return Parsed(
            self.layout, self.source, self.origin, body, self.stamp, uptime, host, program,
            numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], level, attributes or {},
        )  # fmt: skip


_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({"pid": 0, "rank": 1, "local_rank": 2, "task": 3, "gpu": 4})


def _integer(text: str) -> int | None:
    """Small whole number, None for anything else (a hostile line may hold any digits)."""
    return int(text) if len(text) <= 18 and text.lstrip("-").isdecimal() else None


def _seconds(micros: str) -> float | None:
    return int(micros) / 1e6 if micros.isdecimal() and len(micros) <= 18 else None


def _priority_word(text: str) -> str | None:
    """Severity in a syslog priority (facility * 8 + severity)."""
    return _SEVERITIES[int(text) & 7] if text.isdecimal() and len(text) <= 6 else None
