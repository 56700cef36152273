"""Paths -> scans of every file below them, on all cores; what could not be read is a coverage row, never an error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from threading import local

from triage.errors import UsageError
from triage.filescan import FileScan, FileScanner
from triage.plan import Plan
from triage.reading import HEAD_BYTES, Stream, Truncated, compression, looks_binary, open_stream, pieces

PARALLEL_BYTES = 4 << 20  # below this a thread pool costs more than it gains
THOROUGH_BYTES = 8 << 20  # every line of a smaller bundle is dated, larger ones are sampled
Progress = Callable[[int], None]
_SPECIAL = "not a regular file"


@dataclass(frozen=True, slots=True)
class Input:
    """One file to read: ``name`` is its path in the report (posix, relative to the bundle)."""

    name: str
    path: Path | None  # None: standard input
    size: int = 0
    mtime: float | None = None
    problem: str | None = None


def find_inputs(paths: Sequence[str]) -> list[Input]:
    """List the files below ``paths`` in name order. ``-`` is standard input.

    Raises :class:`UsageError` when no path can be opened.
    """
    found: list[Input] = []
    missing: list[Input] = []
    folders = Counter(Path(text).name for text in paths if os.path.isdir(text))  # noqa: PTH112 - Path.is_dir raises on paths that cannot be asked
    for text in dict.fromkeys(paths):
        path = Path(text)
        if text == "-":
            found.append(Input("<stdin>", None))
        elif os.path.isdir(text):  # noqa: PTH112
            found.extend(_walk(path, _prefix(path, len(paths), folders)))
        elif (
            item := _stat(path, path.name if len(paths) == 1 else path.as_posix().lstrip("/"))
        ).path or item.problem == _SPECIAL:
            found.append(item)
        else:
            missing.append(Input(text, None, problem=item.problem))
    if missing and not found and len(missing) == len(set(paths)):
        reasons = {f"{item.problem}: {item.name[:200]}" for item in missing}
        raise UsageError("; ".join(sorted(reasons)))
    found.extend(missing)
    return list({item.name: item for item in reversed(found)}.values())[::-1]


def _prefix(folder: Path, paths: int, names: Mapping[str, int]) -> str:
    """Return what stands before the names of a folder's files: enough to tell the folders of one call apart."""
    if paths == 1 or not folder.name:
        return ""
    return f"{folder.name}/" if names[folder.name] == 1 else f"{folder.as_posix().lstrip('/')}/"


def _walk(root: Path, prefix: str) -> Iterator[Input]:
    """Yield regular files; links and special files are named, not read (what a link inside the bundle leads to is read once)."""
    base = os.path.realpath(root)
    closed: list[str] = []

    def note(err: OSError) -> None:
        closed.append(err.filename)

    for folder, folders, files in os.walk(root, followlinks=False, onerror=note):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118 - in a hot loop
        for name in sorted((*files, *links)):
            path = Path(folder) / name
            shown = prefix + path.relative_to(root).as_posix()
            problem = _link(path, base) if path.is_symlink() else None
            yield _stat(path, shown) if problem is None else Input(shown, None, problem=problem)
    for name in closed:
        yield Input(prefix + Path(name).relative_to(root).as_posix(), None, problem="folder cannot be opened")


def _link(path: Path, base: str) -> str | None:
    """Return why a link is not followed, None for a broken one (its error says more)."""
    target = os.path.realpath(path)
    if os.path.commonpath([target, base]) != base:
        return "link out of the bundle"
    return f"link to {Path(target).relative_to(base).as_posix()}" if os.path.exists(target) else None  # noqa: PTH110


def _stat(path: Path, shown: str) -> Input:
    try:
        status = path.stat()
    except FileNotFoundError:
        return Input(shown, None, problem="no such file or folder")
    except (OSError, ValueError) as err:
        return Input(shown, None, problem=getattr(err, "strerror", None) or "cannot be read")
    if not S_ISREG(status.st_mode):
        return Input(shown, None, problem=_SPECIAL)
    return Input(shown, path, status.st_size, status.st_mtime)


def scan_inputs(
    inputs: Sequence[Input], plan: Plan, *, workers: int | None = None, progress: Progress | None = None
) -> list[FileScan]:
    """Scan every input and return the scans in the order of ``inputs``."""
    threads = workers or os.cpu_count() or 1
    total = sum(item.size for item in inputs)
    if threads == 1 or total < PARALLEL_BYTES:
        scanner = FileScanner(plan, thorough=total < THOROUGH_BYTES)
        return [_reported(item, scanner, progress) for item in inputs]
    mine = local()

    def work(item: Input) -> FileScan:
        if not hasattr(mine, "scanner"):
            mine.scanner = FileScanner(plan, thorough=total < THOROUGH_BYTES)
        return _reported(item, mine.scanner, progress)

    order = sorted(range(len(inputs)), key=lambda i: -inputs[i].size)
    with ThreadPoolExecutor(threads) as pool:
        done = dict(zip(order, pool.map(work, [inputs[i] for i in order]), strict=True))
    return [done[i] for i in range(len(inputs))]


def _reported(item: Input, scanner: FileScanner, progress: Progress | None) -> FileScan:
    scan = scan_input(item, scanner)
    if progress is not None:
        progress(item.size)
    return scan


def scan_input(item: Input, scanner: FileScanner) -> FileScan:
    """Scan one input; a problem becomes ``skipped``."""
    scan = FileScan(item.name, item.size, item.mtime)
    if item.problem is not None:
        scan.skipped = item.problem
        return scan
    try:
        stream = sys.stdin.buffer if item.path is None else open_stream(item.path)
    except OSError as err:
        scan.skipped = err.strerror or "cannot be read"
        return scan
    try:
        _scan_stream(scan, stream, scanner, item)
    except Truncated as err:
        scan.skipped = f"truncated after {scan.lines} lines: {err}" if scan.lines else f"cannot be read: {err}"
    except OSError as err:
        scan.skipped = f"reading stopped after {scan.lines} lines: {err.strerror or err}"
    finally:
        if item.path is not None:
            stream.close()
    return scan


def _scan_stream(scan: FileScan, stream: Stream, scanner: FileScanner, item: Input) -> None:
    if item.path is not None and item.size:
        with item.path.open("rb") as probe:
            head = probe.read(HEAD_BYTES)
        if compression(head) is None and (reason := looks_binary(head)) is not None:
            scan.skipped = reason
            return
    scanner.scan(scan, pieces(stream))
    if not scan.lines:
        scan.skipped = "empty file"
