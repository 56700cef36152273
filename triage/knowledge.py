"""Everything a run knows before it reads a log: signatures, playbooks, sources, the compiled plan."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage import loader, registry, sigcache, sources
from triage.catalog import data_dir, signature_files
from triage.errors import Problem
from triage.plan import Plan, make_plan
from triage.signature import Edge, Signature
from triage.sources.base import LineSource, RowSource
from triage.vocabulary import UNKNOWN_CLASS


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Loaded once, shared by all threads. ``problems`` are authors' mistakes; what is sound still works."""

    signatures: tuple[Signature, ...]
    plan: Plan
    playbooks: Mapping[str, Any]
    problems: tuple[Problem, ...]
    digest: str

    @property
    def edges(self) -> dict[str, list[Edge]]:
        """The causal graph of the playbooks."""
        return {name: list(playbook.explains) for name, playbook in self.playbooks.items()}

    @property
    def priors(self) -> dict[str, float]:
        """Chance of each class for the bundle at hand: somebody collected it because something failed."""
        return {name: chance(name, playbook.prior) for name, playbook in self.playbooks.items()}


COLLECTED_FOR_A_REASON = 3.0
"""How much likelier each named class is in a collected bundle than in a random one (fitted on labelled cases)."""

UNKNOWN_CHANCE = 0.025


def chance(class_: str, weight: float) -> float:
    """Return a prior chance from a playbook's weight per 100 interruptions."""
    if class_ == UNKNOWN_CLASS:
        return UNKNOWN_CHANCE
    return min(0.5, max(1e-4, COLLECTED_FOR_A_REASON * weight / 100.0))


def user_dirs(extra: Sequence[Path]) -> list[Path]:
    """Return the folders of third-party signatures: XDG first, then ``--signatures``; later ones override."""
    import platformdirs

    xdg = Path(platformdirs.user_config_dir("triage")) / "signatures"
    return [folder for folder in (xdg, *extra) if folder.exists()]


def find_sources() -> tuple[list[LineSource], list[RowSource]]:
    """Return the line sources and the row sources of the package and of entry points."""
    found = registry.discover(
        sources,
        lambda o: not isinstance(o, type) and hasattr(o, "name") and (hasattr(o, "layouts") or hasattr(o, "rows")),
        "triage.sources",
    )
    lines = [o for o in found if hasattr(o, "layouts")]
    rows = [o for o in found if hasattr(o, "rows")]
    return lines, rows


def load_signatures(
    extra: Sequence[Path] = (), cache: Path | None = None
) -> tuple[tuple[Signature, ...], tuple[Problem, ...]]:
    """Return our signatures, overridden and completed by the user's, and all problems."""
    ours = sigcache.load(signature_files([data_dir("signatures")]), cache)
    by_id = {s.id: s for s in ours.signatures}
    problems = list(ours.problems)
    for folder in user_dirs(extra):
        theirs = loader.load_files(signature_files([folder]), known=by_id)
        problems.extend(theirs.problems)
        by_id.update({s.id: s for s in theirs.signatures})
        unknown = [name for name in _disabled(folder, problems) if by_id.pop(name, None) is None]
        where = str(folder / "disabled.yml")
        problems.extend(Problem(where, 1, 1, f"no signature {n!r}", loader.suggestion(n, by_id)) for n in unknown)
    return tuple(by_id[name] for name in sorted(by_id)), tuple(problems)


def _disabled(folder: Path, problems: list[Problem]) -> list[str]:
    path = folder / "disabled.yml" if folder.is_dir() else folder.with_name("disabled.yml")
    if not path.is_file():
        return []
    try:
        document, _ = loader.read_yaml(path)
        return [str(name) for name in document["disable"]]
    except Exception as err:  # an author's file: any shape may be wrong
        problems.append(loader.yaml_problem(path, err))
        return []


def load(extra: Sequence[Path] = (), *, cache: Path | None = None) -> Knowledge:
    """Load everything. Never raises for an author's mistake."""
    from triage import metrics, playcache

    signatures, problems = load_signatures(extra, cache)
    lines, rows = find_sources()
    books = playcache.load(data_dir("playbooks"), cache)
    plan = make_plan(signatures, lines, rows, metrics.TRIGGERS, cache)
    return Knowledge(signatures, plan, books.playbooks, (*problems, *books.problems), digest(signatures))


def digest(signatures: Sequence[Signature]) -> str:
    """Return a hash of what decides matches and meaning."""
    text = json.dumps(
        [[s.id, s.class_, s.role.value, list(s.patterns), list(s.not_patterns), sorted(s.table)] for s in signatures]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cache_dir() -> Path | None:
    """Return the folder for compiled patterns; None when caching is switched off (``TRIAGE_CACHE=off``)."""
    import platformdirs

    if os.environ.get("TRIAGE_CACHE", "").lower() in ("off", "0", "no"):
        return None
    return Path(os.environ.get("TRIAGE_CACHE") or platformdirs.user_cache_dir("triage"))
