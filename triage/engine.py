"""Which patterns occur in a block of bytes, and where: Hyperscan, or a plain matcher where it is not installed.

Both engines report candidates (pattern number, end offset); confirmation with the full pattern settles each of them, so
the two agree on every input (tests/test_engine.py proves it on arbitrary bytes and block cuts).
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

Block = bytes | bytearray | memoryview


class Engine(Protocol):
    """Finds candidates; one instance per thread."""

    def candidates(self, block: Block) -> list[tuple[int, int]]:
        """Return (pattern number, end offset) pairs; a pair may be reported more than once and in any order."""
        ...

    def clone(self) -> Engine:
        """Return an engine for another thread that shares the compiled patterns."""
        ...


class ReferenceEngine:
    """Line by line, pattern by pattern: slow, obvious, and the yardstick for the fast one."""

    def __init__(self, forms: Sequence[str]) -> None:
        self._patterns = [re.compile(form.encode()) for form in forms]

    def candidates(self, block: Block) -> list[tuple[int, int]]:
        """See :class:`Engine`."""
        found: list[tuple[int, int]] = []
        data = bytes(block)
        start = 0
        for line in data.split(b"\n"):
            for number, pattern in enumerate(self._patterns):
                found.extend((number, start + hit.end()) for hit in pattern.finditer(line))
            start += len(line) + 1
        return found

    def clone(self) -> ReferenceEngine:
        """See :class:`Engine`."""
        return self


class HyperscanEngine:
    """Flags MULTILINE | PREFILTER; the callback only appends, because it decides the speed."""

    def __init__(self, database: Any) -> None:
        import hyperscan

        self._database = database
        self._scratch = hyperscan.Scratch(database)

    def candidates(self, block: Block) -> list[tuple[int, int]]:
        """See :class:`Engine`. A block must be smaller than 2 GiB (Hyperscan's lengths are 32 bits)."""
        found: list[tuple[int, int]] = []
        keep = found.append

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            keep((number, end))

        self._database.scan(block, match_event_handler=on_match, scratch=self._scratch)
        return found

    def clone(self) -> HyperscanEngine:
        """See :class:`Engine`: the database is shared, the scratch is not."""
        return HyperscanEngine(self._database)


def build(forms: Sequence[str], cache: Path | None = None) -> Engine:
    """Compile scan forms. ``cache`` is a folder for the compiled database (0600), keyed by patterns and library version."""
    try:
        import hyperscan
    except ImportError:
        return ReferenceEngine(forms)
    name = hashlib.sha256("\0".join([str(getattr(hyperscan, "__version__", "")), _cpu(), *forms]).encode()).hexdigest()[
        :32
    ]
    saved = cache / f"{name}.hsdb" if cache else None
    if saved is not None and (data := _read(saved)) is not None:
        try:
            return HyperscanEngine(hyperscan.loadb(data, hyperscan.HS_MODE_BLOCK))
        except hyperscan.error:
            saved.unlink(missing_ok=True)
    database = hyperscan.Database()
    flags = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER
    expressions = [form.encode() for form in forms]
    database.compile(expressions=expressions, ids=list(range(len(forms))), flags=[flags] * len(forms))
    if saved is not None:
        _write(saved, hyperscan.dumpb(database))
    return HyperscanEngine(database)


def compile_mistake(form: str) -> str | None:
    """Return why Hyperscan refuses a scan form, or None (also where Hyperscan is not installed)."""
    try:
        import hyperscan
    except ImportError:
        return None
    flags = hyperscan.HS_FLAG_MULTILINE | hyperscan.HS_FLAG_PREFILTER
    try:
        hyperscan.Database().compile(expressions=[form.encode()], flags=[flags])
    except hyperscan.error as err:
        return f"the scanner cannot compile it: {err}"
    return None


def _cpu() -> str:
    """Return what identifies this processor's features, so that a shared home does not serve a foreign database."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_uid == os.getuid() else None
    except OSError:
        return None


def _write(path: Path, data: bytes) -> None:
    """Write atomically and privately; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
            temporary.write(data)
        Path(temporary.name).replace(path)
    except OSError:
        return
