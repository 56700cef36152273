"""Loaded signatures on disk, so that a small bundle does not wait for YAML: JSON, private, keyed by the files' stats."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triage import __version__
from triage.errors import Problem
from triage.loader import Loaded, load_files
from triage.signature import Condition, Edge, FieldTest, Signature
from triage.vocabulary import Level, Noise, Role, Scope, Status, Strength

FORMAT = 4


def load(files: Sequence[Path], cache: Path | None) -> Loaded:
    """Return what the files hold, problems included, from the cache when none of them changed."""
    if cache is None:
        return load_files(files)
    saved = cache / f"signatures-{_key(files)}.json"
    try:
        if saved.stat().st_uid == os.getuid():
            document = json.loads(saved.read_bytes())
            problems = tuple(Problem(*item) for item in document["problems"])
            return Loaded(tuple(_restore(item) for item in document["signatures"]), problems)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    loaded = load_files(files)
    problems = [dataclasses.astuple(problem) for problem in loaded.problems]
    _save(saved, json.dumps({"signatures": [_plain(s) for s in loaded.signatures], "problems": problems}))
    return loaded


def _key(files: Sequence[Path]) -> str:
    folders = {f.parent for f in files}
    tables = sorted(t for folder in folders for t in folder.glob("*.table.yml"))
    parts = [f"{FORMAT} {__version__}"]
    for path in (*files, *tables):
        status = path.stat()
        parts.append(f"{path} {status.st_mtime_ns} {status.st_size}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _plain(signature: Signature) -> dict[str, Any]:
    """Return the fields as JSON values; examples stay in the files."""
    out = {f.name: getattr(signature, f.name) for f in dataclasses.fields(signature)}
    out["matches"] = out["near_misses"] = ()
    out["sources"] = sorted(signature.sources)
    out["where"] = [dataclasses.astuple(test) for test in signature.where]
    out["explains"] = [dataclasses.astuple(edge) for edge in signature.explains]
    out["condition"] = dataclasses.astuple(signature.condition) if signature.condition else None
    return out


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _restore(item: dict[str, Any]) -> Signature:
    values = {name: _tuple(value) for name, value in item.items()}
    condition = values["condition"]
    values.update(
        role=Role(item["role"]),
        level=Level(item["level"]),
        status=Status(item["status"]),
        scope=Scope(item["scope"]),
        strength=Strength(item["strength"]),
        noise=Noise(item["noise"]),
        sources=frozenset(item["sources"]),
        where=tuple(FieldTest(name, operator, _tuple(value)) for name, operator, value in item["where"]),
        explains=tuple(Edge(t, Strength(s), (lag[0], lag[1]), Scope(scope)) for t, s, lag, scope in item["explains"]),
        condition=Condition(*map(_tuple, condition)) if condition else None,
    )
    return Signature(**values)


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as temporary:
            temporary.write(text)
        Path(temporary.name).replace(path)
        for old in sorted(path.parent.glob("signatures-*.json"), key=lambda p: p.stat().st_mtime)[:-4]:
            old.unlink(missing_ok=True)
    except OSError:
        return
