"""Memory of a host: ``free`` in any unit, ``/proc/meminfo``, and the kernel settings that matter (``sysctl``)."""

from __future__ import annotations

import re as _re
from collections.abc import Iterator as _Iterator
from collections.abc import Sequence as _Sequence

from triage.model import Scalar as _Scalar
from triage.sources._dumps import Line as _Line
from triage.sources._dumps import parts as _parts
from triage.sources._dumps import whole as _whole
from triage.sources.base import Row as _Row
from triage.vocabulary import Origin as _Origin

_FREE_HEAD = _re.compile(r"^\s*total +used +free\b(.{0,80})$")
_FREE_ROW = _re.compile(r"^\s*(Mem|Swap|Total|-/\+ buffers/cache):\s+(.{1,160})$")
_AMOUNT = _re.compile(r"^(\d{1,18}(?:[.,]\d{1,3})?)([BKMGTP]?)i?B?$", _re.IGNORECASE)
_MEMINFO = _re.compile(r"^\s*([A-Z][A-Za-z_]{2,24}(?:\(\w+\))?):\s+(\d{1,18})(?: kB)?\s*$")
_SYSCTL = _re.compile(r"^\s*((?:vm|fs|kernel|net)(?:[./][\w*-]{1,40}){1,8})\s*=\s*(.{1,200}?)\s*$")
_SNIFF = _re.compile(
    r"^\s*total +used +free\b|^MemTotal:\s+\d+ kB|^(?:vm|fs|kernel|net)\.[\w.-]+ ?= ?\S", _re.MULTILINE
)
_COMMAND = _re.compile(
    r"\bfree(?:\s+-(?:w|t|s \d+|c \d+|l|v))*\s+-{1,2}w?(b|k|m|g|h)(?:ytes|ibi|ebi|uman|ilo|ega|iga)?w?(?:\s|$)"
)
_KIB = {"B": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
_MEMINFO_FIELDS = {
    "MemTotal": "mem_total_mib", "MemFree": "mem_free_mib", "MemAvailable": "mem_available_mib", "Cached": "cached_mib",
    "SwapTotal": "swap_total_mib", "SwapFree": "swap_free_mib", "Shmem": "shared_mib", "Mlocked": "locked_mib",
    "CommitLimit": "commit_limit_mib", "Committed_AS": "committed_mib", "Dirty": "dirty_mib",
    "Writeback": "writeback_mib",
    "Slab": "slab_mib", "SUnreclaim": "slab_unreclaimable_mib", "HardwareCorrupted": "hardware_corrupted_mib",
    "AnonPages": "anonymous_mib",
}  # fmt: skip
_SETTINGS = _re.compile(
    r"^(?:vm\.(?:swappiness|overcommit_\w+|max_map_count|min_free_kbytes|zone_reclaim_mode|panic_on_oom|oom_\w+|dirty_\w+|nr_hugepages"
    r"|admin_reserve_kbytes|user_reserve_kbytes|watermark_\w+|vfs_cache_pressure|compaction_\w+)"
    r"|fs\.(?:file-max|file-nr|nr_open|aio-\w+-?\w*|inotify\.\w+|mqueue\.\w+)"
    r"|kernel\.(?:pid_max|threads-max|shm\w+|sem|hung_task_\w+|panic\w*|numa_balancing|softlockup_panic|watchdog\w*|core_pattern|ostype|osrelease)"
    r"|net\.core\.(?:[rw]mem_\w+|somaxconn|netdev_\w+)|net\.ipv4\.(?:tcp_\w+|ip_local_port_range|neigh\.\w+\.gc_thresh\d)"
    r"|net\.ipv4\.conf\.[\w-]+\.(?:rp_filter|arp_\w+)|net\.netfilter\.nf_conntrack_(?:max|count))$"
)


class _Memory:
    """Rows of kind ``free``, ``meminfo`` (one per host) and ``sysctl`` (one per setting).

    Fields: ``mem_total_mib``, ``mem_used_mib``, ``mem_free_mib``, ``mem_available_mib``, ``available_percent``,
    ``shared_mib``, ``swap_total_mib``, ``swap_free_mib``, ``committed_percent``, ``hardware_corrupted_mib`` ...;
    settings carry ``setting`` and ``value``.
    """

    name = "memory"
    origin = _Origin.DUMP
    triggers: _Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Say whether the text holds the output of one of the commands."""
        return _SNIFF.search(head) is not None

    def rows(self, lines: _Sequence[str]) -> _Iterator[_Row]:
        """Yield the rows of every ``free`` table, meminfo block and setting."""
        for part in _parts(lines):
            base: dict[str, _Scalar] = {} if part.host is None else {"host": part.host}
            yield from self._free(part.lines, base)
            yield from self._meminfo(part.lines, base)
            for line in part.lines:
                found = _SYSCTL.match(line.text[:400])
                name = found[1].replace("/", ".") if found else ""
                if found and _SETTINGS.match(name):
                    fields = {**base, "setting": name, "value": _setting(found[2])}
                    yield _Row("sysctl", line.number, line.number, fields, line.text)

    def _free(self, lines: _Sequence[_Line], base: dict[str, _Scalar]) -> _Iterator[_Row]:
        unit, columns, table = "", [], None
        fields: dict[str, _Scalar] = {}
        for line in lines:
            text = line.text[:400]
            if command := _COMMAND.search(text):
                unit = {"h": ""}.get(command[1], command[1].upper())
            if found := _FREE_HEAD.match(text):
                if table is not None:
                    yield _finished("free", table, fields, base)
                columns, table, fields = ["total", "used", "free", *found[1].split()], None, {}
            elif columns and (found := _FREE_ROW.match(text)):
                items = found[2].split()
                if found[1] == "Mem":
                    table, unit = line, unit or _guess(items[0])
                values = [_kib(item, unit) for item in items]
                _take(found[1], dict(zip(columns, values, strict=False)), fields)
            elif table is not None and not text.strip():
                yield _finished("free", table, fields, base)
                columns, table, fields = [], None, {}
        if table is not None:
            yield _finished("free", table, fields, base)

    def _meminfo(self, lines: _Sequence[_Line], base: dict[str, _Scalar]) -> _Iterator[_Row]:
        fields: dict[str, _Scalar] = {}
        table: _Line | None = None
        for line in lines:
            found = _MEMINFO.match(line.text[:200])
            if found is None:
                continue
            if found[1] == "MemTotal":
                if table is not None:
                    yield _finished("meminfo", table, fields, base)
                fields, table = {}, line
            if table is not None and found[1] == "MemAvailable":
                table = line
            if table is not None and found[1] in _MEMINFO_FIELDS:
                fields.setdefault(_MEMINFO_FIELDS[found[1]], _whole(round(int(found[2]) / 1024, 1)))
        if table is not None:
            yield _finished("meminfo", table, fields, base)


def _setting(text: str) -> _Scalar:
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else text


def _guess(total: str) -> str:
    """Return the unit of bare numbers by the size of the total: no GPU host has less than 4 GiB or more than 8 TiB."""
    amount = int(total) if total.isdecimal() and len(total) < 20 else 1 << 30
    return "G" if amount < 4096 else "M" if amount < 8_000_000 else "K"


def _kib(text: str, unit: str) -> float | None:
    found = _AMOUNT.match(text)
    if found is None:
        return None
    return float(found[1].replace(",", ".")) * _KIB[found[2].upper() or unit or "K"]


def _take(row: str, values: dict[str, float | None], fields: dict[str, _Scalar]) -> None:
    """Put the numbers of one line of ``free`` into ``fields``, in MiB."""
    names = {name: name for name in ("total", "used", "free", "available", "shared")} | {"buff/cache": "cache"}
    prefix = {"Mem": "mem", "Swap": "swap"}.get(row)
    for column, value in values.items():
        if prefix is None or value is None or column not in names:
            continue
        name = names[column] if column in ("shared", "buff/cache") else f"{prefix}_{names[column]}"
        fields[f"{name}_mib"] = _whole(round(value / 1024, 1))


def _finished(kind: str, line: _Line, fields: dict[str, _Scalar], base: dict[str, _Scalar]) -> _Row:
    """Add the shares and return the row."""
    out = {**base, **fields}
    total, available = out.get("mem_total_mib"), out.get("mem_available_mib")
    if isinstance(total, (int, float)) and isinstance(available, (int, float)) and total > 0:
        out["available_percent"] = round(100 * available / total, 2)
    limit, committed = out.get("commit_limit_mib"), out.get("committed_mib")
    if isinstance(limit, (int, float)) and isinstance(committed, (int, float)) and limit > 0:
        out["committed_percent"] = round(100 * committed / limit, 1)
    return _Row(kind, line.number, line.number, out, line.text)


MEMORY = _Memory()
