"""systemd timers: ``systemctl list-timers``, unit files (alone or from ``systemctl cat``), ``systemctl show``.

Rows: ``timer`` (an OnCalendar= line), ``service`` (what the unit runs), ``timer-state`` (next and last elapse).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

# Mon 2025-02-03 04:10:00 CET
_WHEN: Final = r"(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: [A-Z][A-Za-z0-9+-]*)?|n/a|-"
_SPAN: Final = r"(?:\d+[a-z]+(?: \d+[a-z]+)*(?: left| ago)?|n/a|-|left|ago|passed)"
_STATE: Final = re.compile(
    rf"^[●\s]*(?P<next>{_WHEN})\s+{_SPAN}\s+(?P<last>{_WHEN})\s+{_SPAN}\s+(?P<unit>\S+\.timer)(?:\s+(?P<activates>\S+))?\s*$"
)
_HEADER: Final = re.compile(r"^\s*NEXT\s+LEFT\s+LAST\s+PASSED\s+UNIT\b", re.MULTILINE)
# # /etc/systemd/system/tidy.timer      ==> tidy.service <==
_UNIT_FILE: Final = re.compile(
    r"^(?:==>\s*|#+\s*|=+\s*)?(?P<path>(?:[^\s=]*/)?(?P<unit>[\w@:.\\-]+\.(?:timer|service)))\s*(?:<==|=+)?\s*$"
)
_SECTION: Final = re.compile(r"^\s*\[(?P<name>\w+)\]\s*$")
_SETTING: Final = re.compile(r"^\s*(?P<key>[A-Z]\w*)\s*=\s*(?P<value>.*?)\s*$")
# TimersCalendar={ OnCalendar=*-*-* 04:10:00 ; next_elapse=Mon 2025-02-03 04:10:00 CET }
_SHOWN: Final = re.compile(r"^TimersCalendar=\{ OnCalendar=(?P<expr>.*?) ; next_elapse=(?P<next>.*?) \}")
_SPAN_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNIT_NAMES: Final = {"sec": "s", "min": "m", "minutes": "m", "minute": "m", "hr": "h", "hour": "h", "hours": "h"} | {
    "second": "s", "seconds": "s", "day": "d", "days": "d", "week": "w", "weeks": "w", "usec": "us", "msec": "ms",
}  # fmt: skip


@dataclass(slots=True)
class _Unit:
    """Settings of the unit that is being read."""

    unit: str | None = None
    path: str | None = None
    section: str = ""
    calendars: list[tuple[int, str, str]] = field(default_factory=list)
    starts: list[tuple[int, str, str]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


def span_s(text: str) -> float:
    """Seconds of a systemd time span (``1h 30min``, ``90``); 0 when it is none."""
    total = 0.0
    for number, unit in re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.lower()):
        total += float(number) * _SPAN_UNITS.get(_UNIT_NAMES.get(unit, unit) or "s", 0.0)
    return total


class _TimerSource:
    """Row source for systemd timers."""

    name = "timers"
    origin = Origin.CRONTAB
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Take timer units, service units, and the output of ``list-timers``, ``cat`` and ``show`` about them."""
        if _HEADER.search(head) or _SHOWN.search(head) or re.search(r"^TimersCalendar=\{", head, re.MULTILINE):
            return True
        is_unit = bool(re.search(r"^\s*\[(?:Unit|Timer|Service|Install)\]\s*$", head, re.MULTILINE))
        timer = bool(re.search(r"^\s*OnCalendar\s*=", head, re.MULTILINE))
        return is_unit and (timer or (path.endswith(".service") and "ExecStart" in head))

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield timers, services and timer states in the order of the file."""
        unit = _Unit()
        for number, line in enumerate(lines, 1):
            state = _STATE.match(line)
            shown = _SHOWN.match(line)
            if state:
                yield _state_row(number, line, state)
            elif shown:
                fields = _fields(unit, shown["expr"]) | {"next": shown["next"]}
                yield Row("timer", number, number, fields, line)
            else:
                header = _UNIT_FILE.match(line)
                if header:
                    yield from _finish(unit)
                    unit = _Unit(header["unit"], header["path"])
                else:
                    _read(unit, number, line)
        yield from _finish(unit)


def _read(unit: _Unit, number: int, line: str) -> None:
    section = _SECTION.match(line)
    if section:
        unit.section = section["name"]
        return
    setting = _SETTING.match(line)
    if setting is None:
        return
    key, value = setting["key"], setting["value"]
    if key == "OnCalendar":
        # An empty assignment in a drop-in resets the list.
        unit.calendars = [*unit.calendars, (number, value, line)] if value else []
    elif key in {"ExecStart", "ExecStartPre", "ExecStartPost"}:
        unit.starts = [*unit.starts, (number, value.lstrip("-@:+!"), line)] if value else []
    else:
        unit.settings[key] = value


def _fields(unit: _Unit, expr: str) -> dict[str, Scalar]:
    return {
        "schedule": expr,
        "form": "timer",
        "unit": unit.unit,
        "table": unit.path,
        "activates": unit.settings.get("Unit"),
        "command": unit.settings.get("Unit") or "",
        "user": None,
        "tz": None,
        "enabled": True,
        "random_delay_s": span_s(unit.settings.get("RandomizedDelaySec", "")),
        "persistent": unit.settings.get("Persistent", "").lower() in {"yes", "true", "on", "1"},
    }


def _finish(unit: _Unit) -> Iterator[Row]:
    for number, expr, line in unit.calendars:
        yield Row("timer", number, number, _fields(unit, expr), line)
    for number, command, line in unit.starts:
        fields: dict[str, Scalar] = {
            "form": "service",
            "unit": unit.unit,
            "table": unit.path,
            "command": command,
            "user": unit.settings.get("User", "root"),
            "directory": unit.settings.get("WorkingDirectory"),
        }
        yield Row("service", number, number, fields, line)


def _state_row(number: int, line: str, match: re.Match[str]) -> Row:
    fields: dict[str, Scalar] = {
        "schedule": "",
        "form": "timer-state",
        "unit": match["unit"],
        "activates": match["activates"] or match["unit"].removesuffix(".timer") + ".service",
        "next": None if match["next"] in {"n/a", "-"} else match["next"],
        "last": None if match["last"] in {"n/a", "-"} else match["last"],
        "enabled": True,
    }
    return Row("timer-state", number, number, fields, line)


SOURCE: Final = _TimerSource()
