"""Health of drives: ``smartctl`` (text and JSON) and ``nvme smart-log`` (text and JSON). One row per drive.

Fields: ``nvme`` or ``device``, ``model``, ``firmware``, ``passed``, ``critical_warning``, ``percentage_used``,
``media_errors``, ``available_spare``, ``spare_threshold``, ``spare_margin`` (spare minus threshold), ``temperature_c``,
``error_log_entries``, ``unsafe_shutdowns``, ``power_on_hours``, and for SATA disks ``reallocated_sectors``,
``pending_sectors``, ``uncorrectable_sectors``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts
from triage.sources.base import Row
from triage.vocabulary import Origin

_START: Final = re.compile(
    r"^\s*smartctl \d+\.\d+ .{0,40}\d{4}|^=== START OF INFORMATION SECTION ===|"
    r"^\s*Smart Log for NVME device:\s*(?:/dev/)?(\w{3,32})",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"\b(?:smartctl|nvme smart-log)\b[^|;\r\n]{0,80}?/dev/(\w{2,32})|^\s*[=#*>-]*\s*/dev/(nvme\d+\w*|sd[a-z]+)\b"
)
_PAIR: Final = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 /_.()-]{2,60}?)\s*:\s*(.*?)\s*$")
_ATTRIBUTE: Final = re.compile(
    r"^\s*(\d{1,3}) ([A-Za-z_]\w{2,40})\s+0x[0-9a-f]{4}\s+\d{1,3}\s+\d{1,3}\s+(?:\d{1,3}|---)"
    r"\s+\S+\s+\S+\s+(\S+)\s+(\d{1,20})"
)
_ATTRIBUTES: Final = {
    "5": "reallocated_sectors", "197": "pending_sectors", "198": "uncorrectable_sectors", "194": "temperature_c",
}  # fmt: skip
_TEXT_KEYS: Final = {
    "critical warning": "critical_warning", "available spare": "available_spare",
    "available spare threshold": "spare_threshold",
    "percentage used": "percentage_used", "percent used": "percentage_used", "temperature": "temperature_c",
    "current drive temperature": "temperature_c", "media and data integrity errors": "media_errors",
    "media errors": "media_errors",
    "error information log entries": "error_log_entries", "num err log entries": "error_log_entries",
    "unsafe shutdowns": "unsafe_shutdowns", "power on hours": "power_on_hours",
}  # fmt: skip
_NAMES: Final = {"model number": "model", "device model": "model", "firmware version": "firmware"}
_VERDICTS: Final = ("smart overall-health self-assessment test result", "smart health status")
_JSON_KEYS: Final = {
    "critical_warning": "critical_warning", "avail_spare": "available_spare", "available_spare": "available_spare",
    "spare_thresh": "spare_threshold", "available_spare_threshold": "spare_threshold",
    "percent_used": "percentage_used", "percentage_used": "percentage_used", "media_errors": "media_errors",
    "num_err_log_entries": "error_log_entries",
    "unsafe_shutdowns": "unsafe_shutdowns", "power_on_hours": "power_on_hours",
}  # fmt: skip
_DECISIVE: Final = ("passed", "critical_warning", "media_errors", "spare_margin", "percentage_used")
_LIMIT: Final = 10**20
_OBJECT: Final = re.compile(r"^[ \t]{0,8}\[?\s{0,8}(\{)", re.MULTILINE)
_TRIES: Final = 2000


def _number(text: str) -> int | None:
    """Return the integer of ``81%``, ``0x04``, ``1,234,567``, ``35 Celsius``; None for anything else."""
    text = text.strip().replace("\u00a0", "").replace("\u202f", "")
    if (found := re.match(r"^0x([0-9a-fA-F]{1,16})\b", text)) is not None:
        return int(found[1], 16)
    found = re.match(r"^(\d{1,3}(?:[.,' ]\d{3})+|\d{1,20})(?![\d])", text)
    return int(re.sub(r"[.,' ]", "", found[1])) if found else None


def _temperature(text: str) -> int | None:
    value = _number(text)
    if value is not None and re.match(r"^\s*\d+\s*(?:K\b|Kelvin)", text):
        return value - 273
    return value


def _place(fields: dict[str, Scalar], device: str | None) -> None:
    """Put the device's name: the controller of a namespace for NVMe."""
    if device is None:
        return
    device = device.removeprefix("/dev/")
    found = re.match(r"^(nvme\d+)", device)
    fields["nvme" if found else "device"] = found[1] if found else device


class _Drive:
    """One drive's text section while it is read."""

    def __init__(self, line: Line, device: str | None) -> None:
        self.fields: dict[str, Scalar] = {}
        self.lines: dict[str, Line] = {}
        self.first = self.last = line
        _place(self.fields, device)

    def put(self, name: str, value: Scalar, line: Line) -> None:
        if value is not None and name not in self.fields:
            self.fields[name], self.lines[name], self.last = value, line, line

    def read(self, line: Line) -> None:
        if (found := _ATTRIBUTE.match(line.text)) is not None:
            if found[1] in _ATTRIBUTES:
                self.put(_ATTRIBUTES[found[1]], min(int(found[4]), _LIMIT), line)
            return
        if (found := _PAIR.match(line.text)) is None:
            return
        key, value = " ".join(found[1].replace("_", " ").lower().split()), found[2]
        if key in _VERDICTS:
            self.put("passed", value.upper().startswith(("PASSED", "OK")), line)
        elif key in _NAMES:
            self.put(_NAMES[key], value[:100] or None, line)
        elif key in _TEXT_KEYS:
            name = _TEXT_KEYS[key]
            self.put(name, _temperature(value) if name == "temperature_c" else _number(value), line)

    def row(self, host: str | None) -> Row | None:
        if not {"passed", "critical_warning", "percentage_used", "media_errors", "pending_sectors"} & set(self.fields):
            return None
        if host is not None:
            self.fields["host"] = host
        _margin(self.fields)
        if "spare_margin" in self.fields and "available_spare" in self.lines:
            self.lines["spare_margin"] = self.lines["available_spare"]
        bad = next((n for n in _DECISIVE if _worse(n, self.fields.get(n))), None)
        line = self.lines.get(bad or "percentage_used") or self.first
        return Row("smart", line.number, max(self.last.number, line.number), self.fields, line.text)


def _worse(name: str, value: Scalar) -> bool:
    if name == "passed":
        return value is False
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return {"spare_margin": value < 0, "percentage_used": value > 80}.get(name, value > 0)


def _margin(fields: dict[str, Scalar]) -> None:
    spare, threshold = fields.get("available_spare"), fields.get("spare_threshold")
    if isinstance(spare, int) and isinstance(threshold, int):
        fields["spare_margin"] = spare - threshold


def _text_rows(lines: Sequence[str]) -> Iterator[Row]:
    for host, members in parts(lines):
        drive: _Drive | None = None
        device: str | None = None
        for line in members:
            if (command := _COMMAND.search(line.text[:300])) is not None:
                device = command[1] or command[2]
                drive, done = None, drive
                if done is not None and (row := done.row(host)) is not None:
                    yield row
            elif (start := _START.match(line.text)) is not None:
                if drive is not None and drive.lines:
                    if (row := drive.row(host)) is not None:
                        yield row
                    device, drive = None, None
                device = start[1] or device
                drive = drive or _Drive(line, device)
                if start[1]:
                    _place(drive.fields, start[1])
            else:
                drive = drive or _Drive(line, device)
                drive.read(line)
        if drive is not None and (row := drive.row(host)) is not None:
            yield row


def _documents(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line, object) for the JSON objects that begin a line, also inside a list or one after the other."""
    decoder = json.JSONDecoder()
    end = 0
    for found in islice(_OBJECT.finditer(text), _TRIES):
        if found.start(1) < end:
            continue
        try:
            value, end = decoder.raw_decode(text, found.start(1))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield text.count("\n", 0, found.start(1)) + 1, value


def _json_fields(document: Mapping[str, Any]) -> dict[str, Scalar]:
    log = document.get("nvme_smart_health_information_log")
    log = log if isinstance(log, Mapping) else document
    fields: dict[str, Scalar] = {}
    device = document.get("device")
    _place(fields, str(device["name"]) if isinstance(device, Mapping) and isinstance(device.get("name"), str) else None)
    for key, name in _JSON_KEYS.items():
        value = log.get(key)
        value = value.get("value") if isinstance(value, Mapping) else value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LIMIT:
            fields[name] = int(value)
    for key, name in (("model_name", "model"), ("firmware_version", "firmware")):
        if isinstance(document.get(key), str):
            fields[name] = document[key][:100]
    status = document.get("smart_status")
    if isinstance(status, Mapping) and isinstance(status.get("passed"), bool):
        fields["passed"] = status["passed"]
    heat = document.get("temperature", log.get("temperature"))
    heat = heat.get("current") if isinstance(heat, Mapping) else heat
    if isinstance(heat, (int, float)) and not isinstance(heat, bool) and 0 <= heat < 1000:
        fields["temperature_c"] = int(heat) - 273 if heat > 200 else int(heat)
    table = document.get("ata_smart_attributes")
    for item in table.get("table", ()) if isinstance(table, Mapping) and isinstance(table.get("table"), list) else ():
        raw = item.get("raw", {}) if isinstance(item, Mapping) else {}
        attribute = _ATTRIBUTES.get(str(item.get("id"))) if isinstance(item, Mapping) else None
        if attribute not in (None, "temperature_c") and isinstance(raw, Mapping) and isinstance(raw.get("value"), int):
            fields[str(attribute)] = min(raw["value"], _LIMIT)
    _margin(fields)
    return fields


_JSON_NAMES: Final = {
    "passed": ("passed",), "critical_warning": ("critical_warning",), "media_errors": ("media_errors",),
    "spare_margin": ("available_spare", "avail_spare"), "percentage_used": ("percentage_used", "percent_used"),
}  # fmt: skip


def _json_rows(lines: Sequence[str]) -> Iterator[Row]:
    for start, document in _documents("\n".join(lines)):
        fields = _json_fields(document)
        if not {"passed", "critical_warning", "percentage_used", "media_errors"} & set(fields):
            continue
        bad = next((n for n in _DECISIVE if _worse(n, fields.get(n))), "percentage_used")
        wanted = tuple(f'"{name}"' for name in _JSON_NAMES[bad])
        line = next((n for n in range(start, len(lines) + 1) if any(w in lines[n - 1] for w in wanted)), start)
        yield Row("smart", line, line, fields, lines[line - 1])


class _Smart:
    """Rows of kind ``smart``."""

    name = "smart"
    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()
    _mark = re.compile(
        r"^smartctl \d+\.\d+ |=== START OF (?:SMART DATA|INFORMATION|READ SMART DATA) SECTION ===|"
        r"^Smart Log for NVME device|"
        r"^Percentage Used:\s|^percentage_used\s*:|SMART/Health Information|"
        r'"nvme_smart_health_information_log"|"smartctl"\s*:|"percent(?:age)?_used"\s*:',
        re.MULTILINE | re.IGNORECASE,
    )

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`."""
        return self._mark.search(head) is not None

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        yield from _text_rows(lines)
        if any(line.lstrip()[:1] in ("{", "[") for line in lines if line.strip()):
            yield from _json_rows(lines)


SMART = _Smart()
