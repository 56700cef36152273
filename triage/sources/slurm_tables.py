"""Tables of Slurm: ``sacct`` (and ``scontrol show job``), ``sinfo``, ``scontrol show node``, ``squeue``.

Row fields. ``sacct``: job, step, state, by, exit_code, signal, reason, host, user, job_name, start, end, jobs (how many
different jobs the dump lists: accounting of a whole cluster says nothing about one job).
``sinfo``: partition, state, flag, nodes, host, reason, user, at.
``scontrol-node``: host, state, reason, by, at, boot_time, gres, real_memory, free_mem.
``squeue``: job, partition, job_name, user, state, time, host, reason. ``host`` may be a hostlist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

_Fields = dict[str, Scalar]

_EMPTY: Final = frozenset({"", "None", "(null)", "N/A", "Unknown", "none", "None assigned", "n/a"})
_SACCT_NAMES: Final = frozenset({"jobid", "jobidraw"})
_KEY_VALUE: Final = re.compile(r"(?:^|\s)([A-Za-z][\w/:]{1,40})=")
_SUFFIX: Final = re.compile(r"\s*\[(?P<by>[\w.\-]{1,64})@(?P<at>[\dT:\-]{10,25})\]\s*$")
_JOB_KEYS: Final[Mapping[str, str]] = {
    "jobid": "JobId", "state": "JobState", "exitcode": "ExitCode", "reason": "Reason", "nodelist": "NodeList",
    "start": "StartTime", "end": "EndTime", "user": "UserId", "jobname": "JobName",
}  # fmt: skip
_SINFO_FLAGS: Final = "*~#!%$@^-"
_SQUEUE_STATES: Final[Mapping[str, str]] = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING", "DL": "DEADLINE",
    "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RQ": "REQUEUED", "S": "SUSPENDED", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT",
}  # fmt: skip


def _compact(fields: Mapping[str, Scalar]) -> _Fields:
    return {name: value for name, value in fields.items() if value is not None and value not in _EMPTY}


def _state(text: str) -> tuple[str, str | None]:
    """Return the first word of a job state and who cancelled: ``CANCELLED by 1004``."""
    word, _, rest = text.strip().partition(" ")
    by = rest.removeprefix("by ").strip() if rest.startswith("by ") else None
    return word.rstrip("+").upper(), by


def _exit(text: str) -> tuple[int | None, int | None]:
    """Read ``code:signal``."""
    found = re.match(r"\s*(\d{1,3})(?::(\d{1,3}))?\b", text)
    return (int(found[1]), int(found[2] or 0)) if found else (None, None)


# -- sacct -------------------------------------------------------------------------------------------------------------


def _delimiter(header: str) -> str | None:
    """Return the separator of a parsable header (``sacct -p``, ``--delimiter``), None for a padded one."""
    found = re.search(r"[A-Za-z]([|;,\t][^A-Za-z\s]?)[A-Za-z]", header)
    return found[1] if found else None


def _is_sacct_header(line: str) -> bool:
    names = {name.strip().lower() for name in re.split(r"[|;,\t#\s]+", line)}
    return bool(names & _SACCT_NAMES) and bool(names & {"state", "exitcode"}) and "nodelist(reason)" not in names


def _padded(header: str, dashes: str) -> Callable[[str], dict[str, str]]:
    """Return a reader for a padded sacct table: its columns are the runs of dashes below the header."""
    spans = [m.span() for m in re.finditer(r"-+", dashes)]
    names = [header[a:b].strip().lower() for a, b in spans]
    return lambda line: {name: line[a:b].strip() for name, (a, b) in zip(names, spans, strict=True)}


def _split(header: str, delimiter: str) -> Callable[[str], dict[str, str]]:
    names = [name.strip().lower() for name in header.split(delimiter)]
    return lambda line: {n: cell.strip() for n, cell in zip(names, line.split(delimiter), strict=False) if n}


def _accounting_row(number: int, line: str, cells: Mapping[str, str]) -> Row | None:
    state, by = _state(cells.get("state", ""))
    job, _, step = (cells.get("jobid") or cells.get("jobidraw", "")).partition(".")
    if not state or not re.fullmatch(r"\d{1,12}[\w+\[\]%,\-]{0,60}", job):
        return None
    code, signal = _exit(cells.get("exitcode", ""))
    fields: _Fields = {
        "job": job,
        "step": step,
        "state": state,
        "by": by,
        "exit_code": code,
        "signal": signal,
        "reason": cells.get("reason"),
        "host": cells.get("nodelist"),
        "user": cells.get("user"),
        "job_name": cells.get("jobname"),
        "start": cells.get("start"),
        "end": cells.get("end"),
    }
    return Row("job", number, number, _compact(fields), line)


def _sacct(lines: Sequence[str]) -> Iterator[Row]:
    rows = list(_accounting(lines))
    jobs = len({row.fields["job"] for row in rows})
    for row in rows:
        yield replace(row, fields={**row.fields, "jobs": jobs})


def _accounting(lines: Sequence[str]) -> Iterator[Row]:
    read: Callable[[str], dict[str, str]] | None = None
    for number, line in enumerate(lines, 1):
        if _is_sacct_header(line):
            delimiter = _delimiter(line)
            below = lines[number] if number < len(lines) else ""
            if delimiter is not None:
                read = _split(line, delimiter)
            elif below.strip() and not set(below.strip()) - set("- "):
                read = _padded(line, below)
        elif not line.strip():
            read = None
        elif read is not None and (row := _accounting_row(number, line, read(line))) is not None:
            yield row
    for number, last, text, values in _blocks(lines, "JobId"):
        if "JobState" in values:
            cells = {name: values.get(key, "") for name, key in _JOB_KEYS.items()}
            cells["jobid"] = cells["jobid"].partition(" ")[0]
            cells["user"] = cells["user"].partition("(")[0]
            if (row := _accounting_row(number, text, cells)) is not None:
                yield Row(row.kind, number, last, row.fields, text)


# -- scontrol ----------------------------------------------------------------------------------------------------------


def _blocks(lines: Sequence[str], first: str) -> Iterator[tuple[int, int, str, dict[str, str]]]:
    """Yield (line of the state, last line, its text, values) of each block that begins with ``first=``."""
    start, state_line = 0, 0
    values: dict[str, str] = {}
    for number, line in enumerate([*lines, ""], 1):
        begins = line.lstrip().startswith(f"{first}=")
        if start and (begins or not line.strip()):
            yield state_line or start, number - 1, lines[(state_line or start) - 1], values
            start, values, state_line = 0, {}, 0
        if begins:
            start = number
        if start:
            found = _pairs(line)
            if not state_line and not {"State", "JobState", "Reason"}.isdisjoint(found):
                state_line = number
            if found.get("Reason", "None") not in _EMPTY:
                state_line = number
            values.update({name: value for name, value in found.items() if name not in values})


def _pairs(line: str) -> dict[str, str]:
    """Read ``Key=Value`` tokens; a value runs up to the next key (``OS=`` and ``Reason=`` hold blanks)."""
    found = list(_KEY_VALUE.finditer(line))
    ends = [m.start() for m in found[1:]] + [len(line)]
    return {m[1]: line[m.end() : end].strip() for m, end in zip(found, ends, strict=True)}


def _nodes(lines: Sequence[str]) -> Iterator[Row]:
    for number, last, text, values in _blocks(lines, "NodeName"):
        reason = values.get("Reason", "")
        suffix = _SUFFIX.search(reason)
        fields: _Fields = {
            "host": values["NodeName"],
            "state": values.get("State", "").upper(),
            "reason": reason[: suffix.start()] if suffix else reason,
            "by": suffix["by"] if suffix else None,
            "at": suffix["at"] if suffix else None,
            "boot_time": values.get("BootTime"),
            "gres": values.get("Gres"),
            "real_memory": values.get("RealMemory"),
            "free_mem": values.get("FreeMem"),
        }
        if fields["state"]:
            yield Row("node", number, last, _compact(fields), text)


# -- sinfo, squeue -----------------------------------------------------------------------------------------------------


def _sinfo_header(line: str) -> bool:
    names = line.replace("|", " ").split()
    return "NODELIST" in names and ("REASON" in names or ("PARTITION" in names and "STATE" in names))


def _sinfo(lines: Sequence[str]) -> Iterator[Row]:
    header: list[tuple[str, int]] = []
    for number, line in enumerate(lines, 1):
        if _sinfo_header(line):
            header = [(m[0].lower(), m.start()) for m in re.finditer(r"[^\s|]+", line)]
        elif not line.strip():
            header = []
        elif header and (cells := _sinfo_cells(line, header)) is not None:
            word = cells.get("state", "")
            state = word.rstrip(_SINFO_FLAGS).lower()
            fields: _Fields = {
                "partition": cells.get("partition", "").rstrip("*"),
                "state": state,
                "flag": word[len(state) :],
                "nodes": cells.get("nodes"),
                "host": cells["nodelist"],
                "reason": cells.get("reason"),
                "user": cells.get("user"),
                "at": cells.get("timestamp"),
            }
            yield Row("nodes", number, number, _compact(fields), line)


def _sinfo_cells(line: str, header: Sequence[tuple[str, int]]) -> dict[str, str] | None:
    """Cut a line of ``sinfo``: at ``|``, at blanks, or (a reason holds blanks) from the right for what follows it."""
    names = [name for name, _ in header]
    parts = [part.strip() for part in line.split("|")] if "|" in line else line.split()
    if len(parts) < len(names):
        return None
    if len(parts) > len(names):
        if "reason" not in names:
            return None
        at = names.index("reason")
        extra = len(parts) - len(names)
        parts = [*parts[:at], " ".join(parts[at : at + extra + 1]), *parts[at + extra + 1 :]]
    cells = dict(zip(names, parts, strict=True))
    return cells if re.match(r"[A-Za-z][\w.\-\[\],]{0,2000}$", cells.get("nodelist", "")) else None


def _squeue(lines: Sequence[str]) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if "JOBID" in words and "NODELIST(REASON)" in words:
            names = [word.lower() for word in words]
        elif not words:
            names = []
        elif names and len(words) >= len(names) - 1 and words[0][:1].isdigit():
            cells = dict(zip(names[:-1], words, strict=False))
            where = " ".join(words[len(names) - 1 :])
            code = cells.get("st") or cells.get("state", "")
            pending = where.startswith("(")
            fields: _Fields = {
                "job": cells.get("jobid"),
                "partition": cells.get("partition"),
                "job_name": cells.get("name"),
                "user": cells.get("user"),
                "state": _SQUEUE_STATES.get(code, code.upper()),
                "time": cells.get("time"),
                "host": None if pending else where,
                "reason": where.strip("()") if pending else None,
            }
            yield Row("queued", number, number, _compact(fields), line)


@dataclass(frozen=True)
class _Table:
    """A table source: a test of one line of the head and a reader."""

    name: str
    _begins: Callable[[str], bool]
    _read: Callable[[Sequence[str]], Iterator[Row]]
    origin: Origin = Origin.SLURM
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Look for a header or a first line of the table."""
        del path
        return any(self._begins(line) for line in head.splitlines()[:2000])

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield one row for each job or node."""
        yield from self._read(lines)


SACCT = _Table("sacct", lambda line: _is_sacct_header(line) or line.lstrip().startswith("JobId="), _sacct)
SINFO = _Table("sinfo", _sinfo_header, _sinfo)
SCONTROL_NODE = _Table("scontrol-node", lambda line: line.lstrip().startswith("NodeName="), _nodes)
SQUEUE = _Table("squeue", lambda line: "JOBID" in line and "NODELIST(REASON)" in line, _squeue)
