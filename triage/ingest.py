"""Paths -> scans of every file below them, on all cores; what could not be read is a coverage row, never an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import local
from typing import BinaryIO

from triage.errors import UsageError
from triage.filescan import FileScan, FileScanner
from triage.plan import Plan
from triage.reading import HEAD_BYTES, Truncated, compression, looks_binary, open_stream, pieces

PARALLEL_BYTES = 4 << 20  # below this a thread pool costs more than it gains
THOROUGH_BYTES = 8 << 20  # every line of a smaller bundle is dated, larger ones are sampled
Progress = Callable[[int], None]


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
    missing: list[str] = []
    several = len(paths) > 1
    for text in paths:
        path = Path(text)
        if text == "-":
            found.append(Input("<stdin>", None))
        elif path.is_dir():
            prefix = f"{path.name}/" if several and path.name else ""
            found.extend(_walk(path, prefix))
        elif path.exists():
            found.append(_stat(path, path.name if not several else path.as_posix().lstrip("/")))
        else:
            missing.append(text)
    if missing and len(missing) == len(paths):
        raise UsageError(f"no such file or folder: {', '.join(missing)}")
    found.extend(Input(text, None, problem="no such file or folder") for text in missing)
    return found


def _walk(root: Path, prefix: str) -> Iterator[Input]:
    """Yield regular files; links that leave the bundle and special files are named, not read."""
    base = root.resolve()
    for folder, folders, files in os.walk(root, followlinks=False):
        folders.sort()
        for name in sorted(files):
            path = Path(folder) / name
            shown = prefix + path.relative_to(root).as_posix()
            if path.is_symlink() and not path.resolve().is_relative_to(base):
                yield Input(shown, None, problem="link out of the bundle")
            else:
                yield _stat(path, shown)


def _stat(path: Path, shown: str) -> Input:
    try:
        status = path.stat()
    except OSError as err:
        return Input(shown, None, problem=err.strerror or "cannot be read")
    if not path.is_file():
        return Input(shown, None, problem="not a regular file")
    return Input(shown, path, status.st_size, status.st_mtime)


def scan_inputs(inputs: Sequence[Input], plan: Plan, *, workers: int | None = None, progress: Progress | None = None) -> list[FileScan]:
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


def _scan_stream(scan: FileScan, stream: BinaryIO, scanner: FileScanner, item: Input) -> None:
    if item.path is not None and item.size:
        with item.path.open("rb") as probe:
            head = probe.read(HEAD_BYTES)
        if compression(head) is None and (reason := looks_binary(head)) is not None:
            scan.skipped = reason
            return
    scanner.scan(scan, pieces(stream))
    if not scan.lines:
        scan.skipped = "empty file"
