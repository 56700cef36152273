"""One JSON object per line: docker's json-file, ``journalctl -o json``, ``dmesg -J`` rows, structured loggers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from triage import stamps
from triage.sources.base import Stamp

_MAX_LENGTH: Final = 1 << 20
_MESSAGE: Final = ("MESSAGE", "message", "msg", "log", "text", "event", "line")
_TIME: Final = (
    "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "time", "timestamp", "@timestamp", "ts", "time_ms", "asctime",
    "datetime", "eventTime", "Timestamp", "t",
)  # fmt: skip
_FIELDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("host", ("_HOSTNAME", "host", "hostname", "node", "nodename", "node_name", "host.name", "HOSTNAME")),
    ("program", ("SYSLOG_IDENTIFIER", "_COMM", "program", "logger", "name", "app", "logger_name", "component")),
    ("pid", ("_PID", "SYSLOG_PID", "pid", "process")),
    ("usec", ("__MONOTONIC_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP")),
    ("priority", ("PRIORITY", "pri")),
    ("severity", ("level", "levelname", "severity", "lvl", "log.level", "s")),
    ("rank", ("rank", "global_rank", "RANK")),
    ("local_rank", ("local_rank", "LOCAL_RANK")),
    ("stream", ("stream",)),
    ("transport", ("_TRANSPORT",)),
    ("boot_id", ("_BOOT_ID",)),
    ("unit", ("_SYSTEMD_UNIT", "UNIT")),
)
_WORDS: Final = frozenset({"host", "program", "severity", "stream", "transport", "boot_id", "unit"})


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """What a JSON line told; ``message`` None when the object has nothing like a message."""

    stamp: Stamp | None
    message: str | None
    fields: Mapping[str, str] = field(default_factory=dict)


def decode_object(text: str) -> JsonRecord | None:
    """Read one JSON object; None when ``text`` is none or has neither a time nor a message."""
    body = text.strip().rstrip(",")
    if not (body.startswith("{") and body.endswith("}")) or len(body) > _MAX_LENGTH:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    stamp = _stamp(data)
    message = next((_text(data[key]) for key in _MESSAGE if key in data), None)
    fields = dict(_fields(data, stamp))
    if (
        stamp is None
        and ("usec" not in fields and "uptime" not in fields)
        and (message is None or "severity" not in fields)
    ):
        return None
    return JsonRecord(stamp, message.rstrip("\r\n") if message is not None else None, fields)


def _fields(data: Mapping[str, Any], stamp: Stamp | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, keys in _FIELDS:
        value = next((data[key] for key in keys if isinstance(data.get(key), (str, int)) and data[key] != ""), None)
        if value is None or isinstance(value, bool):
            continue
        text = str(value)
        if name in _WORDS or text.isdecimal():
            found.append((name, text))
    if stamp is None and "pri" in data and isinstance(data.get("time"), float):
        found.append(("uptime", str(data["time"])))
    return found


def _stamp(data: Mapping[str, Any]) -> Stamp | None:
    for key in _TIME:
        value = data.get(key)
        stamp = parse_time(value.get("$date") if isinstance(value, dict) else value)  # MongoDB nests its dates
        if stamp is not None:
            return stamp
    return None


def parse_time(value: object) -> Stamp | None:
    """Read the time of a structured record: an epoch of any unit, ISO 8601, or a month-name form; dates only."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return stamps.epoch(f"{value:.6f}" if isinstance(value, float) else str(value)) if abs(value) < 1e20 else None
    if not isinstance(value, str) or len(value) > 64:
        return None
    for parse in (stamps.iso, stamps.epoch, stamps.day_first, stamps.bsd, stamps.mdy):
        stamp = parse(value.strip())
        if stamp is not None:
            return stamp
    return None


def _text(value: object) -> str:
    """Message as text; journald writes non-UTF-8 messages as arrays of byte values."""
    if isinstance(value, list):
        numbers = [n for n in value if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 256]
        if len(numbers) == len(value):
            return bytes(numbers).decode("utf-8", "replace")
        return " ".join(map(str, value))
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
