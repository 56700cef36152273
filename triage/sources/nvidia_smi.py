"""What nvidia-smi prints: ``-q``, ``--query-gpu`` CSV, the default table and ``-L``, and ``nvlink -s`` / ``-e``.

Each source yields one row per GPU and sample; the row cites the line of the value that matters most. Two traps are
known: ``GPU T.Limit Temp`` is headroom in degrees, not a temperature, and the section ``Clocks Event Reasons Counters``
repeats the names of ``Clocks Event Reasons`` with lifetime values.
"""

from __future__ import annotations

import csv as _csv
import re as _re
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence

from triage.model import Scalar as _Scalar
from triage.sources import _smi
from triage.sources._dumps import Line as _Line
from triage.sources._dumps import parts as _parts
from triage.sources._smi import Sample as _Sample
from triage.sources.base import Row as _Row
from triage.vocabulary import Origin as _Origin

_GPU_HEAD = _re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_PAIR = _re.compile(r"^( *)([^:]{1,80}?)\s*:(?:\s+(.{0,200}))?$")
_SECTION = _re.compile(r"^( *)([A-Za-z][\w ./-]{1,60}?)\s*$")
_UNIT = _re.compile(r"\s*\[[^\]]{0,12}\]\s*$")
_COLUMN = _re.compile(r"^[a-zA-Z_][\w.]{1,80}$")
_TABLE_HEAD = _re.compile(r"^\|?\s*NVIDIA-SMI\s+(\S+)\s+.*?Driver Version:?\s*(\S+?)\s+(?:CUDA Version:\s*(\S+))?")
_TABLE_GPU = _re.compile(
    r"^\|\s*(\d{1,3})\s+(\S.{0,60}?)\s+(?:On|Off|N/A|ERR!)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
    r"\s+(?:On|Off|N/A)\s*\|\s*(\S+)\s*\|"
)
_TABLE_LOAD = _re.compile(
    r"^\|\s*(\S+)\s+(\S+?)C?\s+(\S+)\s+(\S+?)W?\s*/\s*(\S+?)W?\s*\|\s*(\S+?)(?:MiB)?\s*/\s*(\S+?)(?:MiB)?\s*\|\s*(\S+?)%?\s"
)
_TABLE_PROCESS = _re.compile(
    r"^\|\s+(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d{1,10})\s+(C|G|C\+G|M\+C)\s+(\S.{0,80}?)\s+(\d+)MiB\s*\|"
)
_TABLE_FIELDS = (
    "fan", "temperature_c", "pstate", "power_w", "power_limit_w", "memory_used_mib", "memory_total_mib",
    "utilization_percent",
)  # fmt: skip
_NO_PROCESS = _re.compile(r"No running processes found")
_LIST_GPU = _re.compile(r"^\s*GPU (\d{1,3}): (\S.{0,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)")
_LINK = _re.compile(r"^\s+Link (\d{1,2}): (?:(<inactive>|\S+ GB/s)|([\w ]{3,30} Errors): (\d{1,18}))\s*$")


class _Query:
    """``nvidia-smi -q``. Fields: see :data:`triage.sources._smi.Q_FIELDS`, plus ``load``, ``thermal_slowdown`` ..."""

    name = "nvidia-smi-q"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text holds such a dump."""
        return "NVSMI LOG==" in head or ("NVIDIA System Management Interface -- v" in head and "Clocks" in head)

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield one row per ``GPU 00000000:19:00.0`` section."""
        for part in _parts(lines):
            yield from self._dump(part.host, part.lines)

    def _dump(self, host: str | None, lines: _Sequence[_Line]) -> _Iterator[_Row]:
        head: dict[str, _Scalar] = {}
        found: list[_Sample] = []
        stack: list[tuple[int, str]] = []
        for line in lines:
            text = line.text[:400].rstrip().expandtabs(4)
            if "NVSMI LOG==" in text:
                yield from _numbered(found, head, host)
                head, found, stack = {}, [], []
            elif gpu := _GPU_HEAD.match(text):
                sample = _Sample("gpu", line)
                sample.put("pci", gpu[1], line)
                found.append(sample)
                stack = []
            elif not found:
                _head_value(text, head)
            elif text[:1] == " ":
                _nested(text, line, stack, found[-1])
        yield from _numbered(found, head, host)


def _head_value(text: str, head: dict[str, _Scalar]) -> None:
    """Read the lines above the first GPU, which hold for all of them."""
    names = {"timestamp": "timestamp", "driver version": "driver_version", "cuda version": "cuda_version"}
    pair = _PAIR.match(text)
    if pair is None or not pair[3]:
        return
    if pair[2].lower() == "attached gpus" and pair[3].strip().isdecimal():
        head["attached"] = int(pair[3].strip()[:6])
    elif pair[2].lower() in names:
        head[names[pair[2].lower()]] = pair[3].strip()


def _nested(text: str, line: _Line, stack: list[tuple[int, str]], sample: _Sample) -> None:
    """Read one indented line: its path is made of the less indented lines above it."""
    pair = _PAIR.match(text) or _SECTION.match(text)
    if pair is None:
        return
    indent, key = len(pair[1]), pair[2].strip().lower()
    while stack and stack[-1][0] >= indent:
        stack.pop()
    path = "/".join([*(name for _, name in stack), key])
    stack.append((indent, key))
    value = pair[3] if pair.re is _PAIR else None
    if value is None:
        return
    name = _smi.Q_FIELDS.get(path) or _ecc_field(path)
    if name is not None:
        sample.put(name, value, line)


def _ecc_field(path: str) -> str | None:
    """Return the sum field of an ECC counter: SRAM / DRAM (Ampere and later) or Single Bit / Double Bit totals."""
    names = path.split("/")
    if names[0] != "ecc errors" or len(names) < 3 or names[1] not in ("volatile", "aggregate"):
        return None
    if len(names) == 3 and "correctable" in names[2]:
        return f"ecc_{'un' if 'uncorrectable' in names[2] else ''}corrected_{names[1]}+"
    if len(names) == 4 and names[3] == "total" and names[2] in ("single bit", "double bit"):
        return f"ecc_{'un' if names[2] == 'double bit' else ''}corrected_{names[1]}+"
    return None


def _numbered(found: list[_Sample], head: dict[str, _Scalar], host: str | None) -> _Iterator[_Row]:
    """Yield the rows of one dump; the index is known when all GPUs are listed."""
    attached = head.pop("attached", None)
    for position, sample in enumerate(found):
        if attached == len(found):
            sample.fields["gpu"] = position
        sample.fields.update(head)
        yield sample.row(host)
    if isinstance(attached, int) and found:
        fields: dict[str, _Scalar] = {**head, "gpu_count": attached, "gpus_listed": len(found)}
        if host is not None:
            fields["host"] = host
        yield _Row("summary", found[0].first.number, found[-1].last.number, fields, found[0].first.text)


class _Csv:
    """``nvidia-smi --query-gpu=... --format=csv`` with a header line, also in a loop (``-l``)."""

    name = "nvidia-smi-csv"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether a header line of known columns is in the text, or the file says it holds nvidia-smi output."""
        return any("," in line and _columns(line) is not None for line in head.split("\n")) or "--query-gpu=" in head

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield one row per line below a header."""
        for part in _parts(lines):
            columns: list[str] | None = None
            for line in part.lines:
                if "," not in line.text:
                    columns = columns if not line.text.strip() else None
                    continue
                if (new := _columns(line.text)) is not None:
                    columns = new
                    continue
                cells = _cells(line.text)
                if columns is None or len(cells) != len(columns):
                    continue
                sample = _Sample("gpu", line)
                for column, cell in zip(columns, cells, strict=True):
                    if column in _smi.CSV_FIELDS:
                        sample.put(_smi.CSV_FIELDS[column], cell, line)
                for word in ("uncorrected", "corrected"):
                    total = sample.fields.pop(f"ecc_{word}_volatile_parts", None)
                    if total is not None:
                        sample.fields.setdefault(f"ecc_{word}_volatile", total)
                yield sample.row(part.host)


def _cells(text: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(_csv.reader([text[:20_000]]), [])]
    except _csv.Error:
        return []


def _columns(text: str) -> list[str] | None:
    """Return the lower-case column names of a ``--query-gpu`` header line, None for any other line."""
    if len(text) > 20_000 or "%" in text[:1] or text.lstrip()[:1].isdigit():
        return None
    names = [_UNIT.sub("", cell) for cell in _cells(text)]
    if len(names) < 2 or not all(_COLUMN.match(name) for name in names):
        return None
    names = [name.lower() for name in names]
    known = [name for name in names if name in _smi.CSV_FIELDS]
    telling = [name for name in known if "." in name or name in ("gpu_bus_id", "gpu_recovery_action")]
    return names if telling and 2 * len(known) >= min(len(names), 8) and "pid" not in names else None


class _Table:
    """The default table and ``-L``: kinds ``gpu``, ``process``, ``summary`` (``gpu_count``, ``processes`` ...)."""

    name = "nvidia-smi-table"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text holds such a table or list."""
        return "| NVIDIA-SMI " in head or _LIST_GPU.search(head[head.find("GPU 0: ") :][:300]) is not None

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield the rows of each table."""
        for part in _parts(lines):
            yield from self._tables(part.host, part.lines)

    def _tables(self, host: str | None, lines: _Sequence[_Line]) -> _Iterator[_Row]:
        table: _TableState | None = None
        for line in lines:
            text = line.text[:400]
            if head := _TABLE_HEAD.search(text):
                yield from table.rows(host) if table else ()
                table = _TableState(line, {"driver_version": head[2], "cuda_version": head[3]})
            elif found := _LIST_GPU.match(text):
                if table is None or int(found[1]) in table.listed:
                    yield from table.rows(host) if table else ()
                    table = _TableState(line, {})
                table.listed.add(int(found[1]))
                table.last = line
            elif table is not None:
                table.feed(text, line)
        yield from table.rows(host) if table else ()


class _TableState:
    """One table while it is read."""

    def __init__(self, line: _Line, head: dict[str, _Scalar]) -> None:
        self.first = self.last = line
        self.head = head
        self.samples: list[_Sample] = []
        self.processes: list[_Row] = []
        self.listed: set[int] = set()
        self.none: _Line | None = None

    def feed(self, text: str, line: _Line) -> None:
        if found := _TABLE_GPU.match(text):
            sample = _Sample("gpu", line)
            for name, value in zip(("gpu", "name", "pci", "ecc_uncorrected_volatile"), found.groups(), strict=True):
                sample.put(name, value, line)
            self.samples.append(sample)
        elif self.samples and (found := _TABLE_LOAD.match(text)):
            for name, value in zip(_TABLE_FIELDS, found.groups(), strict=True):
                self.samples[-1].put(name, value, line)
        elif found := _TABLE_PROCESS.match(text):
            fields: dict[str, _Scalar] = {
                "gpu": int(found[1]), "pid": int(found[2]), "type": found[3], "comm": found[4],
                "memory_used_mib": int(found[5]),
            }  # fmt: skip
            self.processes.append(_Row("process", line.number, line.number, fields, line.text))
        elif _NO_PROCESS.search(text):
            self.none = line
        else:
            return
        self.last = line

    def rows(self, host: str | None) -> _Iterator[_Row]:
        told: dict[str, _Scalar] = {} if host is None else {"host": host}
        for sample in self.samples:
            sample.fields.update(self.head)
            yield sample.row(host)
        for row in self.processes:
            yield _Row(row.kind, row.line, row.end_line, {**row.fields, **told}, row.text)
        if not self.samples and not self.listed:
            return
        count = len(self.samples) or len(self.listed)
        fields: dict[str, _Scalar] = {**self.head, **told, "gpu_count": count, "processes": len(self.processes)}
        indices = {index for s in self.samples if isinstance(index := s.fields.get("gpu"), int)} | self.listed
        fields["gpus_missing"] = max(indices, default=-1) + 1 - len(indices)
        line = self.first
        if self.none is not None:
            line = self.none
            idle = [s.fields.get("memory_used_mib") for s in self.samples if s.fields.get("load") == "idle"]
            fields["memory_without_process_mib"] = max((m for m in idle if isinstance(m, int)), default=0)
        yield _Row("summary", line.number, self.last.number, fields, line.text)


class _Links:
    """``nvidia-smi nvlink -s`` and ``-e``: links of each GPU that are up, and how many its best peer has more."""

    name = "nvidia-smi-nvlink"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text lists NVLinks."""
        return _re.search(r"^\s+Link \d{1,2}: (?:<inactive>|\S+ GB/s|\w+ Errors: )", head, _re.MULTILINE) is not None

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield one row per GPU: ``links_up``, ``links_inactive``, ``links_missing``, ``recovery_errors`` ..."""
        for part in _parts(lines):
            samples: list[_Sample] = []
            for line in part.lines:
                text = line.text[:200].expandtabs(4)
                if found := _LIST_GPU.match(text):
                    samples.append(_Sample("nvlink", line))
                    samples[-1].fields.update({"gpu": int(found[1]), "name": found[2], "uuid": found[3]})
                elif samples and (found := _LINK.match(text)):
                    _link(samples[-1], found, line)
            best = max((_count(s, "links_up") for s in samples), default=0)
            for sample in samples:
                if any(name.startswith("link") or name.endswith("_errors") for name in sample.fields):
                    sample.fields["links_missing"] = best - _count(sample, "links_up") if best else 0
                    line = sample.lines.get("links_inactive") or sample.lines.get("errors") or sample.first
                    fields = {**sample.fields, **({} if part.host is None else {"host": part.host})}
                    yield _Row("nvlink", line.number, sample.last.number, fields, line.text)


def _count(sample: _Sample, name: str) -> int:
    value = sample.fields.get(name)
    return value if isinstance(value, int) else 0


def _link(sample: _Sample, found: _re.Match[str], line: _Line) -> None:
    """Count one link, or one error counter of a link."""
    sample.last = line
    if found[2] is not None:
        name = "links_inactive" if found[2] == "<inactive>" else "links_up"
        sample.fields[name] = _count(sample, name) + 1
        if name == "links_inactive":
            sample.lines.setdefault(name, line)
        return
    name = found[3].lower().replace(" ", "_")
    sample.fields[name] = _count(sample, name) + int(found[4])
    if name == "recovery_errors" and int(found[4]):
        sample.lines.setdefault("errors", line)


NVIDIA_SMI_Q = _Query()
NVIDIA_SMI_CSV = _Csv()
NVIDIA_SMI_TABLE = _Table()
NVIDIA_SMI_NVLINK = _Links()
