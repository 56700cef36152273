"""Python tracebacks inside logs: one row each; plain, tagged per rank (``[rank3]: ``), behind a logger prefix, nested.

The field ``kind`` sorts exceptions by who can explain them: ``launcher`` (torchrun's report of its children),
``interrupt`` (somebody stopped the process), ``pipe`` (the other end of a multiprocessing pipe went away),
``library`` (a build that does not fit),
``distributed``, ``device``, ``memory``, ``storage``, ``loader``, ``numeric`` (other lines say more about these), else
``own``: the program's own error. A traceback that is chained to one of a more telling kind is of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Scalar
from triage.sources._frames import TAG, Frame, busy, is_library, rank_of
from triage.sources.base import Row
from triage.vocabulary import Origin

_HEADER: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'\s{0,8}File "([^"]{1,1000})", line (\d{1,9})(?:, in (.{1,300}))?')
_EXCEPTION: Final = re.compile(r"((?:[A-Za-z_]\w*\.){0,12})([A-Za-z_]\w{0,100})(\([\w.]{1,100}\))?(?::(?: (.*))?|\s*)$")
_LOWER_CLASSES: Final = frozenset({"error", "timeout", "gaierror", "herror", "exception"})
_CHAIN: Final = (
    ("handling", "During handling of the above exception, another exception occurred"),
    ("cause", "The above exception was the direct cause of the following exception"),
)
_TAIL_RANK: Final = re.compile(r"\(RANK (\d{1,6})\)")
_SUMMARY: Final = re.compile(r"(\s*)traceback\s*: $")
_GROUP: Final = re.compile(r"\s*\+ Exception Group $")
_IGNORED: Final = ("Exception ignored in", "Exception ignored on", "--- Logging error ---", "Error in sys.excepthook")
_THREAD: Final = re.compile(r"Exception in thread (\S{1,100})")
_REMOTE: Final = re.compile(r"RemoteTraceback|terminated with the following error|Process \S{1,60}-\d+:|^\s*\"\"\"\s*$")
_OUTERMOST: Final = frozenset(
    {
        "<module>",
        "_run_module_as_main",
        "_run_code",
        "_bootstrap",
        "_bootstrap_inner",
        "_wrap",
        "_worker_loop",
        "spawn_main",
    }
)
_TEARDOWN: Final = frozenset(
    {"_run_finalizers", "_exit_function", "__del__", "_cleanup", "_python_exit", "_remove_temp_dir"}
)
_LOUD: Final = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|E\d{3,4}|[Ee]rror|[Ee]xception|[Cc]rash(?:ed)?)\b|\b[EF]\d{3,4} \d\d:"
)
_QUIET: Final = re.compile(r"\b(?:WARN(?:ING)?|INFO|DEBUG|NOTICE)\b|\b[WIV]\d{3,4} \d\d:|\[NeMo [WID] ")
_STORAGE_ERRNO: Final = r"\[Errno (?:5|11|16|23|24|28|30|37|38|61|71|107|108|112|116|121|122)\]"
_KINDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "launcher",
            r"^(?:\S*\.)?(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|WorkerGroupFailureError): ",
        ),
        ("interrupt", r"^(?:\S*\.)?(?:KeyboardInterrupt|SystemExit|SignalException|GeneratorExit|SIGTERMException): "),
        (
            "library",
            r"^(?:\S*\.)?(?:ImportError|OSError|ModuleNotFoundError): .{0,400}"
            r"(?:undefined symbol: |version .[A-Z]{3,12}_[\d.]{1,12}. not found|"
            r"lib\S{1,80}\.so\S{0,20}: cannot open shared object file)",
        ),
        (
            "device",
            r"^(?:\S*\.)?(?:OutOfMemoryError|AcceleratorError|XlaRuntimeError): |CUDA|[Cc]uda ?[Ee]rror|cudaError|"
            r"cuDNN|CUDNN_|CUBLAS|cublas|HIP (?:error|out of memory)|NVML|NVIDIA driver|device-side assert",
        ),
        (
            "distributed",
            r"^(?:\S*\.)?(?:Dist(?:Backend|Network|Store)?Error|Rendezvous\w*Error): |NCCL|c10d|[Gg]loo|ProcessGroup|"
            r"store based barrier|client socket has (?:timed out|failed)|server socket has failed|: Socket Timeout|"
            r"monitoredBarrier|: Address already in use|nccl\w{3,40} failed|Horovod has been shut down|"
            r"Connection closed by peer|mismatch between collectives|wait timeout after \d+ms|"
            r"clients joined|: (?:Connection reset by peer|Broken pipe)$|[Ff]ailed to recv, got 0",
        ),
        (
            "loader",
            r"DataLoader worker \(pid|DataLoader timed out|Pin memory thread exited|received 0 items of ancdata|"
            r"BrokenProcessPool",
        ),
        (
            "memory",
            r"^(?:\S*\.)?_?(?:Array)?MemoryError: |Cannot allocate memory|can't allocate memory|shared memory object|"
            r"unable to (?:mmap|resize file|write to file) ",
        ),
        (
            "storage",
            rf"{_STORAGE_ERRNO}|^(?:\S*\.)?(?:UnpicklingError|SafetensorError|BadZipFile|CheckpointException|ReadError|"
            r"CheckpointingException|LockException|LockError|Timeout: The file lock|BlockingIOError): ?|PytorchStream|"
            r"unable to lock file|truncated file: eof|file signature not found|database is locked|Ran out of input|"
            r"pickle data was truncated|unexpected EOF|inline_container|database disk image|disk I/O error",
        ),
        (
            "numeric",
            r"^(?:\S*\.)?FloatingPointError: |\b[Nn]a[Nn]\b.{0,60}(?:loss|grad)|(?:loss|grad).{0,60}\b[Nn]a[Nn]\b|"
            r"non-finite",
        ),
    )
)
_PIPE: Final = frozenset({"BrokenPipeError", "ConnectionResetError", "EOFError", "ConnectionRefusedError"})
_MAX_LINES: Final = 500
_MAX_FOREIGN: Final = 200
_MAX_TEXT: Final = 16_384


@dataclass
class _Block:
    """A traceback while it is read."""

    start: int
    prefix: str
    tag: str
    tail: str
    remote: bool
    frames: list[Frame] = field(default_factory=list)
    end: int = -1
    found: re.Match[str] | None = None


class Tracebacks:
    """Reads every complete traceback of the window; one whose exception line lies outside gives no row."""

    name = "traceback"
    origin = Origin.TRAINING
    triggers: Sequence[str] = (r"Traceback \(most recent call last\):",)

    def sniff(self, path: str, head: str) -> bool:
        """A triggered source never takes whole files."""
        return False

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield a row per traceback; its line is the exception line."""
        before: dict[str, str] = {}  # tag -> kind of a traceback that the next one of this tag follows from
        for number, line in enumerate(lines):
            at = line.find(_HEADER)
            if at < 0:
                continue
            block = _open(lines, number, at)
            _read(lines, block)
            if block.found is None:
                continue
            chain = _chained(lines, block)
            inherited = before.pop(block.tag, None)
            kind = _kind(block)
            if kind == "own" and inherited is not None:
                kind = inherited
            if chain is not None:
                before[block.tag] = kind
            yield _row(lines, block, {"kind": kind, "chain": chain, "follows": inherited is not None})


def _open(lines: Sequence[str], number: int, at: int) -> _Block:
    """Find out which mark the other lines of the traceback carry."""
    prefix, tail = lines[number][:at], lines[number][at + len(_HEADER) :]
    remote = prefix.endswith("Original ")
    prefix = prefix.removesuffix("Original ")
    if (summary := _SUMMARY.search(prefix)) is not None:
        return _Block(number, prefix, prefix[: summary.end(1)], tail, remote=True)
    if _GROUP.search(prefix):
        return _Block(number, prefix, prefix.replace("+ Exception Group ", "| "), tail, remote)
    candidates = [prefix]
    if (marked := TAG.match(prefix)) is not None:
        candidates.append(marked[0])
    for candidate in candidates:
        if candidate and any(
            other.startswith(candidate) and other[len(candidate) :].startswith("  ")
            for other in lines[number + 1 : number + 9]
        ):
            return _Block(number, prefix, candidate, tail, remote)
    return _Block(number, prefix, "", tail, remote)


def _contents(lines: Sequence[str], start: int, tag: str) -> Iterator[tuple[int, str]]:
    """Yield (index, text without tag) of the lines from ``start`` that belong to ``tag``."""
    foreign = 0
    for index in range(start, min(len(lines), start + _MAX_LINES)):
        text = lines[index]
        if tag and text.startswith(tag):
            yield index, text[len(tag) :]
        elif tag and text.strip() in ("", tag.strip()):
            yield index, ""
        elif tag or (TAG.match(text) and not text.startswith(" ")):
            foreign += 1
            if foreign > _MAX_FOREIGN:
                return
        else:
            yield index, text


def _read(lines: Sequence[str], block: _Block) -> None:
    """Collect frames until the exception line; leave ``found`` None when there is none."""
    strange = 0
    for index, text in _contents(lines, block.start + 1, block.tag):
        if (frame := _FRAME.match(text)) is not None:
            block.frames.append(Frame(frame[3] or "<module>", frame[1], index))
        elif _HEADER in text:
            return
        elif text.startswith((" ", "\t", "| ")):
            continue
        elif (found := _exception(text)) is not None and not _frame_ahead(lines, index, block.tag):
            block.found, block.end = found, index
            return
        else:
            strange += 1
            if strange > 5:
                return


def _exception(text: str) -> re.Match[str] | None:
    found = _EXCEPTION.match(text.rstrip())
    if found is None:
        return None
    name = found[2]
    return found if name.lstrip("_")[:1].isupper() or (found[1] and name in _LOWER_CLASSES) else None


def _frame_ahead(lines: Sequence[str], index: int, tag: str) -> bool:
    """Say whether frames go on right after a line: then somebody else printed it in between."""
    for _, text in _contents(lines, index + 1, tag):
        return _FRAME.match(text) is not None
    return False


def _chained(lines: Sequence[str], block: _Block) -> str | None:
    """Return how the next traceback follows from this one, None if none does."""
    for index, text in _contents(lines, block.end + 1, block.tag):
        if _HEADER in text or index > block.end + 40:
            return None
        for kind, words in _CHAIN:
            if words in text:
                return kind
    return None


def _above(lines: Sequence[str], block: _Block) -> Sequence[str]:
    return lines[max(0, block.start - 3) : block.start]


def _kind(block: _Block) -> str:
    found = block.found
    assert found is not None  # noqa: S101 - the caller checked it
    if found[2] in _PIPE and any("multiprocessing" in frame.file for frame in block.frames):
        return "pipe"
    line = f"{found[1]}{found[2]}: {found[4] or ''}".rstrip(" ") + (" " if not found[4] else "")
    return next((kind for kind, pattern in _KINDS if pattern.search(line)), "own")


def _logged(block: _Block) -> str | None:
    """Say how the text before the header introduces it: ``error``, ``info``, ``text``; None for a bare header."""
    words = block.prefix
    own_words = words if block.tag != block.prefix else ""
    if _QUIET.search(words):
        return "info"
    if _LOUD.search(words):
        return "error"
    return (
        "text"
        if TAG.sub("", own_words).strip(" ^C") and not _SUMMARY.search(words) and not _GROUP.search(words)
        else None
    )


def _row(lines: Sequence[str], block: _Block, more: Mapping[str, Scalar]) -> Row:
    found = block.found
    assert found is not None  # noqa: S101 - the caller checked it
    message = (found[4] or "").strip() or _next_text(lines, block)
    inner = list(reversed(block.frames))
    where = busy(inner)
    own = next((frame for frame in inner if not is_library(frame.file)), None)
    above = _above(lines, block)
    thread = next((m[1] for text in above if (m := _THREAD.search(text))), None)
    remote = block.remote or any(_REMOTE.search(text) for text in above)
    tail_rank = _TAIL_RANK.search(block.tail)
    fields: Mapping[str, Scalar] = {
        "exception": found[2] + (found[3] or ""),
        "exception_full": found[1] + found[2] + (found[3] or ""),
        "message": message[:1000],
        "file": inner[0].file if inner else None,
        "function": inner[0].function if inner else None,
        "user_file": own.file if own else None,
        "user_function": own.function if own else None,
        "where": where.where if inner else None,
        "frames": len(inner),
        "chained": more["chain"] is not None,
        "remote": remote,
        "uncaught": remote or thread is not None or bool(inner and inner[-1].function in _OUTERMOST),
        "teardown": any(frame.function in _TEARDOWN for frame in inner),
        "logged": _logged(block),
        "ignored": any(mark in text for text in above for mark in _IGNORED),
        "thread": thread,
        "rank": int(tail_rank[1]) if tail_rank else rank_of(block.prefix),
        **more,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    text = "\n".join(lines[block.start : block.end + 1])[-_MAX_TEXT:]
    return Row("traceback", block.end + 1, block.end + 1, known, text)


def _next_text(lines: Sequence[str], block: _Block) -> str:
    """Return the first line of a message that begins below the exception's name."""
    for index, text in _contents(lines, block.end + 1, block.tag):
        if index > block.end + 3 or _HEADER in text:
            break
        if text.strip() and not text.startswith(("=", "During", "The above")):
            return text.strip()
    return ""


TRACEBACKS: Final = Tracebacks()
