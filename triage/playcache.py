"""Loaded playbooks on disk (see :mod:`triage.diskcache`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triage import diskcache
from triage.errors import Problem
from triage.playbooks import LoadedPlaybooks, Missing, Playbook, Step, Variant, load_playbooks
from triage.signature import Edge
from triage.vocabulary import Owner, Restart, Risk, Scope, StepKind, Strength

FORMAT = 1


def load(folder: Path, cache: Path | None) -> LoadedPlaybooks:
    """Return the playbooks of a folder, problems included, from the cache when none of the files changed."""
    if cache is None:
        return load_playbooks(folder)
    saved = cache / diskcache.key("playbooks", FORMAT, sorted(folder.glob("*.md")))
    document = diskcache.read(saved)
    try:
        if document is not None:
            books = {item["class_"]: _restore(item) for item in document["playbooks"]}
            return LoadedPlaybooks(books, tuple(Problem(*item) for item in document["problems"]))
    except (KeyError, TypeError, ValueError):
        pass  # an older format: read the files again
    loaded = load_playbooks(folder)
    problems = [dataclasses.astuple(problem) for problem in loaded.problems]
    diskcache.write(saved, {"playbooks": [_plain(book) for book in loaded.playbooks.values()], "problems": problems})
    return loaded


def _plain(book: Playbook) -> dict[str, Any]:
    out = {f.name: getattr(book, f.name) for f in dataclasses.fields(book)}
    out["explains"] = [dataclasses.astuple(edge) for edge in book.explains]
    out["variants"] = {name: dataclasses.astuple(variant) for name, variant in book.variants.items()}
    out["missing"] = [dataclasses.astuple(item) for item in book.missing]
    out["steps"] = [dataclasses.astuple(step) for step in book.steps]
    return out


def _restore(item: Mapping[str, Any]) -> Playbook:
    return Playbook(
        **{
            **item,
            "owner": Owner(item["owner"]),
            "restart": Restart(item["restart"]),
            "explains": tuple(
                Edge(t, Strength(s), (lag[0], lag[1]), Scope(scope)) for t, s, lag, scope in item["explains"]
            ),
            "variants": {name: Variant(*values) for name, values in item["variants"].items()},
            "missing": tuple(Missing(*values) for values in item["missing"]),
            "steps": tuple(Step(StepKind(kind), Risk(risk), *rest) for kind, risk, *rest in item["steps"]),
        }
    )
