"""Loaded signatures on disk (see :mod:`triage.diskcache`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triage import diskcache
from triage.errors import Problem
from triage.loader import Loaded, load_files
from triage.signature import Condition, Edge, FieldTest, Signature
from triage.vocabulary import Level, Noise, Role, Scope, Status, Strength

FORMAT = 7


def load(files: Sequence[Path], cache: Path | None) -> Loaded:
    """Return what the files hold, problems included, from the cache when none of them changed."""
    if cache is None:
        return load_files(files)
    tables = sorted(table for folder in {f.parent for f in files} for table in folder.glob("*.table.yml"))
    saved = cache / diskcache.key("signatures", FORMAT, (*files, *tables))
    document = diskcache.read(saved)
    try:
        if document is not None:
            problems = tuple(Problem(*item) for item in document["problems"])
            return Loaded(tuple(_restore(item) for item in document["signatures"]), problems)
    except (KeyError, TypeError, ValueError):
        pass  # an older format: read the files again
    loaded = load_files(files)
    found = [dataclasses.astuple(problem) for problem in loaded.problems]
    diskcache.write(saved, {"signatures": [_plain(s) for s in loaded.signatures], "problems": found})
    return loaded


def _plain(signature: Signature) -> dict[str, Any]:
    """Return the fields as JSON values; examples, which only lint and test read, stay in the files."""
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
