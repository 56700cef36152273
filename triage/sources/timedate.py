"""How far a host's clock can be trusted: ``timedatectl``, ``chronyc tracking``, ``ntpstat``, ``date``."""

from __future__ import annotations

import re as _re
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence

from triage.model import Scalar as _Scalar
from triage.sources._dumps import Line as _Line
from triage.sources._dumps import parts as _parts
from triage.sources.base import Row as _Row
from triage.vocabulary import Origin as _Origin

_SNIFF = _re.compile(
    r"^\s*(?:System clock synchroni[sz]ed|NTP synchroni[sz]ed|Leap status|Time zone)\s*:|^\s*Reference ID\s+:"
    r"|^(?:un)?synchroni[sz]ed(?: to | )|[$#%] (?:sudo )?date\s*$",
    _re.MULTILINE,
)
_KEY = _re.compile(r"^\s*(?:\w[\w.-]{0,30}\s)??([A-Z][A-Za-z ()-]{2,32}?)\s*: (.{1,120})$")
_SYSTEM_TIME = _re.compile(r"^([\d.]{1,24}) seconds (fast|slow) of NTP time")
_NTPSTAT = _re.compile(r"^\s*(un)?synchroni[sz]ed(?: to .{1,100})?\s*$")
_DATE_COMMAND = _re.compile(r"[$#%>]\s*(?:sudo )?date(?:\s+(?:-u|-R|-Is?|--iso-8601\S*|--utc))?\s*$")
_DATE = _re.compile(
    r"^\s*((?:[^\W\d]{2,6}\.? +)?(?:[^\W\d]{3,10}\.? +\d{1,2}|\d{1,2}\.? +[^\W\d]{3,10}\.?)(?: +\d{4})?,?"
    r" +\d{1,2}:\d\d:\d\d(?: [AP]M)?(?: ([A-Z]{3,5}|[+-]\d{2,4}))?(?: \d{4})?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)?)\s*$"
)
_TIMEDATECTL = {
    "system clock synchronized": "synchronised", "system clock synchronised": "synchronised",
    "ntp synchronized": "synchronised", "ntp service": "ntp_active", "ntp enabled": "ntp_active",
    "network time on": "ntp_active", "systemd-timesyncd.service active": "ntp_active", "time zone": "zone",
    "timezone": "zone", "local time": "local_time", "universal time": "universal_time", "rtc in local tz": "rtc_local",
}  # fmt: skip
_CHRONY = {
    "reference id": "reference", "stratum": "stratum", "system time": "offset_s", "last offset": "last_offset_s",
    "root dispersion": "dispersion_s", "leap status": "synchronised",
}  # fmt: skip
_YES = ("yes", "active", "true")


class _Block:
    """The lines of one command's output while it is read."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.fields: dict[str, _Scalar] = {}
        self.lines: dict[str, _Line] = {}

    def put(self, name: str, value: _Scalar, line: _Line) -> None:
        self.fields[name] = value
        self.lines[name] = line

    def row(self, host: str | None) -> _Row:
        """Return the row of a block that holds a value; it cites a large offset, else the state."""
        offset = self.fields.get("offset_s")
        far = isinstance(offset, float) and abs(offset) >= 1.0
        first = self.lines.get("offset_s") if far else None
        line = first or self.lines.get("synchronised") or self.lines.get("zone") or next(iter(self.lines.values()))
        fields = dict(self.fields)
        if isinstance(offset, float):
            fields["abs_offset_s"] = abs(offset)
        if host is not None:
            fields["host"] = host
        return _Row(self.kind, line.number, max(at.number for at in self.lines.values()), fields, line.text)


class _Timedate:
    """Rows of kind ``timedatectl``, ``chronyc``, ``ntpstat`` and ``date``.

    Fields: ``synchronised``, ``ntp_active``, ``zone``, ``local_time``, ``universal_time``, ``offset_s`` (local clock
    minus true time), ``abs_offset_s``, ``stratum``, ``reference``, ``time`` (as ``date`` printed it), ``host``.
    """

    name = "timedate"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text holds the output of one of the commands."""
        return _SNIFF.search(head) is not None

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield one row per command output."""
        for part in _parts(lines):
            yield from self._part(part.host, part.lines)

    def _part(self, host: str | None, lines: _Sequence[_Line]) -> _Iterator[_Row]:
        block: _Block | None = None
        after_date = False
        for line in lines:
            text = line.text[:300]
            if after_date and (found := _DATE.match(text)):
                fields: dict[str, _Scalar] = {"time": found[1], "zone": found[2] or found[3]}
                if host is not None:
                    fields["host"] = host
                yield _Row("date", line.number, line.number, fields, line.text)
            after_date = _DATE_COMMAND.search(text) is not None
            if found := _NTPSTAT.match(text):
                told: dict[str, _Scalar] = {"synchronised": found[1] is None, **_host(host)}
                yield _Row("ntpstat", line.number, line.number, told, line.text)
                continue
            kind, name, value = _key(text)
            if name is None or value is None:
                continue
            if block is not None and (block.kind != kind or name in block.fields):
                yield block.row(host)
                block = None
            block = block or _Block(kind)
            block.put(name, value, line)
        if block is not None:
            yield block.row(host)


def _host(host: str | None) -> dict[str, _Scalar]:
    return {} if host is None else {"host": host}


def _key(text: str) -> tuple[str, str | None, _Scalar]:
    """Return (kind, field, value) of a ``Key: value`` line of timedatectl or chronyc; field None: not one of them."""
    if (found := _KEY.match(text)) is None:
        return "", None, None
    key, value = found[1].lower().strip(), found[2].strip()
    if key in _TIMEDATECTL:
        return "timedatectl", _TIMEDATECTL[key], _timedatectl(_TIMEDATECTL[key], value)
    if key in _CHRONY:
        return "chronyc", _CHRONY[key], _chrony(_CHRONY[key], value)
    return "", None, None


def _timedatectl(name: str, value: str) -> _Scalar:
    if name in ("synchronised", "ntp_active", "rtc_local"):
        return value.lower().startswith(_YES)
    return value.split(" (", 1)[0] if name == "zone" else value


def _chrony(name: str, value: str) -> _Scalar:
    if name == "synchronised":
        return not value.lower().startswith("not ")
    if name == "offset_s":
        amount = _SYSTEM_TIME.match(value)
        return _float(amount[1]) * (1 if amount[2] == "fast" else -1) if amount else None
    if name == "stratum":
        return int(value) if value.isdecimal() and len(value) < 4 else None
    return value if name == "reference" else _float(value.split(maxsplit=1)[0])


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0  # an empty or torn number: no offset


TIMEDATE = _Timedate()
