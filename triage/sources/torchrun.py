"""The failure summary of torchrun (``ChildFailedError``): which worker failed, with host, rank, pid and exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Scalar
from triage.sources._frames import TAG
from triage.sources.base import Row
from triage.vocabulary import Origin

_ROOT: Final = "Root Cause (first observed failure):"
_ITEM: Final = re.compile(r"\s*\[(\d{1,6})\]:\s*$")
_FIELD: Final = re.compile(r"\s*(time|host|rank|exitcode|error_file|traceback)\s*: ?(.*)$")
_RULE: Final = re.compile(r"\s*[-=*]{8,}\s*$")
_RANK: Final = re.compile(r"(-?\d{1,9})(?: \(local_rank: (-?\d{1,9})\))?")
_EXIT: Final = re.compile(r"(-?\d{1,9}) \(pid: (-?\d{1,9})\)(?:\s+\((SIG\w+)\))?")
_SIGNAL: Final = re.compile(r"Signal (\d{1,3}) \((\w+)\) received by PID")
_ERROR: Final = re.compile(r"\s*((?:[A-Za-z_]\w*\.){0,12}[A-Z]\w{0,100})(?:: (.*)|:?)$")
_LOGGER: Final = re.compile(r"[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \S{1,200}:\d+\] ")


@dataclass
class _Item:
    """One failure of a summary while it is read."""

    is_first: bool
    start: int
    values: dict[str, str] = field(default_factory=dict)
    where: dict[str, int] = field(default_factory=dict)
    trace: list[tuple[int, str]] = field(default_factory=list)
    end: int = 0


class TorchrunSummary:
    """Reads all summaries of the window; a cut one gives the items that are whole enough to name an exit code."""

    name = "torchrun-summary"
    origin = Origin.TRAINING
    triggers: Sequence[str] = (r"Root Cause \(first observed failure\):",)

    def sniff(self, path: str, head: str) -> bool:
        """A triggered source never takes whole files."""
        return False

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield a row per failed worker; its line is the exit code's, or the exception's where the summary has one."""
        item: _Item | None = None
        section: bool | None = None  # is_first of the section, None outside a summary
        for index, raw in enumerate(lines):
            text = _bare(raw)
            heading = _section(text)
            if heading is None and section is None:
                continue
            opens = _ITEM.match(text)
            if heading is not None or opens or _RULE.match(text):
                yield from _finish(item)
                item = None
                if heading is not None:
                    section = heading
                elif opens and section is not None:
                    item = _Item(section, index, end=index)
                elif text.strip().startswith("="):
                    section = None
            elif item is not None:
                _add(item, index, text)
        yield from _finish(item)


def _bare(text: str) -> str:
    """Take off a rank tag or a torch log prefix that stands before every line of the block."""
    while (found := TAG.match(text) or _LOGGER.match(text)) is not None and not _ITEM.match(text):
        text = text[found.end() :]
    return text


def _section(text: str) -> bool | None:
    """Return True at the root-cause heading, False at the list of the others, None elsewhere."""
    if _ROOT in text:
        return True
    return False if text.strip() in ("Failures:", "Other Failures:") else None


def _add(item: _Item, index: int, text: str) -> None:
    """Take one line of an item: a field, or a further line of its traceback."""
    found = _FIELD.match(text)
    if found is not None and found[1] not in item.values and "traceback" not in item.values:
        item.values[found[1]], item.where[found[1]] = found[2].strip(), index
        if found[1] == "traceback":
            item.trace.append((index, found[2].strip()))
    elif item.trace:
        item.trace.append((index, text))
    else:
        return
    item.end = index


def _finish(item: _Item | None) -> Iterator[Row]:
    """Yield the row of a completed item."""
    if item is None or "exitcode" not in item.values:
        return
    yield Row("failure", _decisive(item) + 1, item.end + 1, _fields(item), "\n".join(t for _, t in item.trace)[:16_384])


def _last_error(item: _Item) -> tuple[int, re.Match[str]] | None:
    """Return the last line of the item's traceback that names an exception."""
    for index, text in reversed(item.trace[1:]):
        if (found := _ERROR.match(text)) is not None:
            return index, found
    return None


def _decisive(item: _Item) -> int:
    error = _last_error(item)
    return error[0] if error else item.where["exitcode"]


def _fields(item: _Item) -> Mapping[str, Scalar]:
    values = item.values
    fields: dict[str, Scalar] = {"is_first": item.is_first, "host": values.get("host") or None}
    if (when := values.get("time")) is not None:
        fields["at"] = when.replace("_", "T", 1)
    if (rank := _RANK.match(values.get("rank", ""))) is not None:
        fields["rank"] = int(rank[1])
        fields["local_rank"] = int(rank[2]) if rank[2] else None
    if (code := _EXIT.match(values["exitcode"])) is not None:
        fields["exitcode"], fields["pid"] = int(code[1]), int(code[2])
        if int(code[1]) < 0:
            fields["signal"] = -int(code[1])
        fields["signal_name"] = code[3]
    elif (plain := re.match(r"-?\d{1,9}", values["exitcode"])) is not None:
        fields["exitcode"] = int(plain[0])
    if (signal := _SIGNAL.search(values.get("traceback", ""))) is not None:
        fields["signal"], fields["signal_name"] = int(signal[1]), signal[2]
    if (error := _last_error(item)) is not None:
        fields["exception"] = error[1][1].rpartition(".")[2]
        fields["message"] = (error[1][2] or "")[:1000]
    elif "To enable traceback" not in values.get("traceback", ""):
        fields["traceback"] = values.get("traceback", "")[:1000] or None
    if values.get("error_file", "<N/A>") != "<N/A>":
        fields["error_file"] = values["error_file"]
    return {name: value for name, value in fields.items() if value is not None}


TORCHRUN_SUMMARY: Final = TorchrunSummary()
