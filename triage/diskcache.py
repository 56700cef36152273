"""Parsed author files on disk as private JSON, keyed by the files' stats, so that a small bundle does not wait for YAML."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from triage import __version__

KEPT = 4


def key(name: str, version: int, files: Iterable[Path]) -> str:
    """Return the cache file's name for the present state of ``files``. Raises ``OSError`` when one has gone."""
    parts = [f"{name} {version} {__version__}"]
    for path in files:
        status = path.stat()
        parts.append(f"{path} {status.st_mtime_ns} {status.st_size}")
    return f"{name}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:32]}.json"


def read(path: Path) -> Any:
    """Return the document, or None when there is none that is ours and readable."""
    try:
        if path.stat().st_uid != os.getuid():
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def write(path: Path, document: Any) -> None:
    """Write atomically and privately, and drop the oldest of its kind; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as temporary:
            json.dump(document, temporary)
        Path(temporary.name).replace(path)
        kind = path.name.split("-")[0]
        for old in sorted(path.parent.glob(f"{kind}-*.json"), key=lambda p: p.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return
