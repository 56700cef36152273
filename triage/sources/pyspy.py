"""Output of ``py-spy dump``: where each process stood. One row per process, from its main thread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Scalar
from triage.sources._frames import Frame, busy
from triage.sources.base import Row
from triage.vocabulary import Origin

_HOST: Final = r"(?:(?P<host>[A-Za-z][\w.-]{0,63}): ?)?"
_PROCESS: Final = re.compile(_HOST + r"Process (?P<pid>\d{1,10}): (?P<cmdline>.*)$")
_THREAD: Final = re.compile(
    r"(?:[A-Za-z][\w.-]{0,63}: ?)?Thread (?P<tid>(?:0x)?[0-9A-Fa-f]{1,16})"
    r"(?: \((?P<state>[^)]{0,40})\))?(?:: \"(?P<name>[^\"]*)\")?"
)
_FRAME: Final = re.compile(
    r"(?:[A-Za-z][\w.-]{0,63}: ?)?\s+(?P<function>\S.{0,200}?) \((?P<file>[^()]{1,500}?)(?::\d{1,9})?\)\s*$"
)
_LOCAL_RANK: Final = re.compile(r"--local[-_]rank[= ](\d{1,4})")
_HEAD: Final = re.compile(r"(?m)^(?:[\w.-]{1,64}: ?)?Process \d{1,10}: .*$")
_HEAD_THREAD: Final = re.compile(r"(?m)^(?:[\w.-]{1,64}: ?)?Thread (?:0x)?[0-9A-Fa-f]{1,16} \([a-z+ ]{3,40}\)")


@dataclass
class _Thread:
    tid: str
    state: str
    name: str
    line: int
    frames: list[Frame] = field(default_factory=list)


@dataclass
class _Process:
    pid: int
    cmdline: str
    host: str | None
    line: int
    threads: list[_Thread] = field(default_factory=list)

    def main(self) -> _Thread | None:
        """Return the main thread: by name, by id, else the first."""
        for thread in self.threads:
            if thread.name == "MainThread":
                return thread
        for thread in self.threads:
            if thread.tid == str(self.pid):
                return thread
        return self.threads[0] if self.threads else None


class PySpy:
    """Reads one dump or several in a row. Which process is the odd one out is for a correlator."""

    name = "pyspy"
    origin = Origin.DUMP
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """A process line and a thread line with a state, as only py-spy writes them."""
        return _HEAD.search(head) is not None and _HEAD_THREAD.search(head) is not None

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield a row per process; its line is the frame that tells what the process is busy with."""
        process: _Process | None = None
        last = 0
        for index, text in enumerate(lines):
            if (found := _PROCESS.match(text)) is not None:
                yield from _finish(process, lines, last)
                process = _Process(int(found["pid"]), found["cmdline"].strip(), found["host"], index)
            elif process is None:
                continue
            elif (thread := _THREAD.match(text)) is not None:
                process.threads.append(_Thread(thread["tid"], thread["state"] or "", thread["name"] or "", index))
            elif process.threads and (frame := _FRAME.match(text)) is not None:
                process.threads[-1].frames.append(Frame(frame["function"].strip(), frame["file"], index))
            else:
                continue
            last = index
        yield from _finish(process, lines, last)


def _finish(process: _Process | None, lines: Sequence[str], last: int) -> Iterator[Row]:
    """Yield the row of a process that has a main thread with frames."""
    main = process.main() if process is not None else None
    if process is None or main is None or not main.frames:
        return
    where = busy(main.frames)
    decisive = where.frame or main.frames[0]
    local = _LOCAL_RANK.search(process.cmdline)
    fields: Mapping[str, Scalar] = {
        "pid": process.pid,
        "host": process.host,
        "where": where.where,
        "function": decisive.function,
        "file": decisive.file,
        "top": f"{main.frames[0].function} ({main.frames[0].file})",
        "state": main.state,
        "threads": len(process.threads),
        "loader_worker": "_worker_loop" in {frame.function for frame in main.frames},
        "local_rank": int(local[1]) if local else None,
        "cmdline": process.cmdline[:500],
    }
    known = {name: value for name, value in fields.items() if value is not None}
    end = min(last, main.frames[-1].line_index) if main.frames else last
    text = "\n".join(lines[main.line : end + 1])[:16_384]
    yield Row("process", decisive.line_index + 1, end + 1, known, text)


PYSPY: Final = PySpy()
