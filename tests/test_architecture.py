"""The walls of the house: who may import whom, how long things may be, what start-up may load, no state in modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "triage"

# Left to right, top to bottom: a module imports only what stands before it. ``x.*`` stands for the modules of a package
# where new ones are discovered; there they may use each other's private modules, never each other.
LAYERS = """
    triage triage.errors triage.vocabulary triage.spans triage.model triage.patterns triage.signature triage.catalog
    triage.registry triage.diskcache triage.sources.base triage.sources triage.sources.*
    triage.stamps triage.firstchars triage.jsonline triage.layout_table triage.peel
    triage.engine triage.schemas triage.schemas.* triage.loader triage.sigcache
    triage.matching triage.facts triage.lint triage.selftest
    triage.plan triage.reading triage.block triage.filescan triage.ingest
    triage.naming triage.topology
    triage.boottime triage.years triage.zones triage.clock triage.inspection
    triage.causes triage.events triage.conditions triage.attempts
    triage.metrics.* triage.metrics triage.series.* triage.series triage.seriesevents
    triage.schedules.* triage.schedules
    triage.correlators triage.correlators.base triage.correlators.*
    triage.gates triage.hypotheses triage.network triage.report triage.ranking triage.calibration
    triage.playbooks triage.playcache triage.templates triage.diagnosis
    triage.outputs triage.outputs.base triage.outputs.safe triage.outputs.*
    triage.knowledge triage.pipeline triage.codes
    triage.explain triage.nearest triage.explaintext triage.reference triage.commands triage.cli_options triage.cli_catalog
    triage.cli triage.__main__
"""
ORDER = LAYERS.split()
DISCOVERED = {"triage.sources.*", "triage.correlators.*", "triage.outputs.*"}
EXCEPTIONS = {
    ("triage.playbooks", "triage.templates"): "the parser of a playbook calls its renderer when a step is asked for",
    ("triage.commands", "triage.outputs.*"): "an output is chosen by name",
    ("triage.explain", "triage.nearest"): "scikit-learn is loaded only for a line that no signature knows",
    ("triage.explain", "triage.explaintext"): "the answer is put into words at the very end",
    (
        "triage.correlators.schedules",
        "triage.correlators._ghost",
    ): "the work is loaded only for bundles with a schedule",
}
HEAVY = {"polars", "sklearn", "numpy", "scipy", "pydantic", "jinja2", "ClusterShell", "watchdog"}
MAY_IMPORT_HEAVY = {
    "triage.nearest": "is imported by triage.explain inside a function",
    "triage.schemas.playbook": "is a pydantic schema; imported inside functions",
    "triage.schemas.signature": "is a pydantic schema; imported inside functions",
}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name: str) -> Iterator[str]:
    """Yield every module of ours that ``name`` imports, anywhere: at the top, in functions, for type checking."""
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "triage":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "triage")


def place(name: str) -> tuple[int, str]:
    """Return (position, entry) of a module in ``ORDER``."""
    if name in ORDER:
        return ORDER.index(name), name
    entry = name.rpartition(".")[0] + ".*"
    return (ORDER.index(entry), entry) if entry in ORDER else (-1, "")


def allowed(importer: str, imported: str) -> bool:
    (here, entry), (there, other) = place(importer), place(imported)
    if there < here or (importer, imported) in EXCEPTIONS or (importer, other) in EXCEPTIONS:
        return True
    return entry == other and (entry not in DISCOVERED or imported.rpartition(".")[2].startswith("_"))


def test_every_module_has_a_place_and_every_place_a_module() -> None:
    assert [name for name in MODULES if place(name)[0] < 0] == []
    assert [entry for entry in ORDER if not any(place(name)[1] == entry for name in MODULES)] == []
    assert len(set(ORDER)) == len(ORDER)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_stands_before_it(name: str) -> None:
    assert (
        sorted({f"{name} imports {other}" for other in imports(name) if other != name and not allowed(name, other)})
        == []
    )


def test_imports_have_no_cycle_but_the_listed_ones() -> None:
    graph = {
        name: {o for o in imports(name) if o not in (name, "triage") and (name, o) not in EXCEPTIONS}
        for name in MODULES
    }
    assert list(TopologicalSorter(graph).static_order())


def test_every_exception_is_still_needed() -> None:
    used = {(name, entry) for name in MODULES for other in imports(name) for entry in (other, place(other)[1])}
    assert set(EXCEPTIONS) - used - {("triage.commands", "triage.outputs.*")} == set()


@pytest.mark.parametrize("name", MODULES)
def test_files_stay_under_400_lines_and_functions_under_61(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) < 400
    functions = [
        node for node in ast.walk(tree(MODULES[name])) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert [f.name for f in functions if (f.end_lineno or 0) - f.lineno + 1 > 60] == []


MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MAKERS = {"list", "dict", "set", "defaultdict", "Counter", "deque", "OrderedDict", "bytearray"}
MUTATORS = {
    "append",
    "add",
    "update",
    "pop",
    "clear",
    "extend",
    "setdefault",
    "insert",
    "remove",
    "discard",
    "popitem",
    "appendleft",
}


def containers(module: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield (name, is Final) of the mutable containers that a module makes at its top level."""
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets, value, final = node.targets, node.value, False
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value, final = [node.target], node.value, "Final" in ast.unparse(node.annotation)
        else:
            continue
        if isinstance(value, MUTABLE) or (isinstance(value, ast.Call) and getattr(value.func, "id", "") in MAKERS):
            yield from ((t.id, final) for t in targets if isinstance(t, ast.Name) and t.id != "__all__")


def mutated(module: ast.Module) -> Iterator[str]:
    """Yield the names that are stored into, deleted from, or told to change."""
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, (ast.Store, ast.Del))
            and isinstance(node.value, ast.Name)
        ):
            yield node.value.id
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            if node.func.attr in MUTATORS:
                yield node.func.value.id
        elif isinstance(node, ast.Global):
            yield from node.names


@pytest.mark.parametrize("name", MODULES)
def test_modules_hold_no_state(name: str) -> None:
    """A container at the top level is a constant: Final, or in capitals, and nothing in the module changes it."""
    module = tree(MODULES[name])
    made = dict(containers(module))
    assert [n for n, final in made.items() if not final and n.strip("_") != n.strip("_").upper()] == []
    assert sorted(set(made) & set(mutated(module))) == []
    assert not [node for node in ast.walk(module) if isinstance(node, ast.Global)]


@pytest.mark.parametrize("name", MODULES)
def test_heavy_libraries_are_imported_inside_functions(name: str) -> None:
    top = [node for node in tree(MODULES[name]).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    found = {alias.name.split(".")[0] for node in top if isinstance(node, ast.Import) for alias in node.names}
    found |= {(node.module or "").split(".")[0] for node in top if isinstance(node, ast.ImportFrom)}
    assert not found & HEAVY or name in MAY_IMPORT_HEAVY


def loaded(code: str) -> set[str]:
    """Return the top-level names in ``sys.modules`` after running ``code`` in a fresh interpreter."""
    tail = "\nimport sys\nprint('\\x00' + ' '.join({name.split('.')[0] for name in sys.modules}))"
    out = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    return set(out.stdout.rpartition("\x00")[2].split())


RUN = """
from click.testing import CliRunner
from triage.cli import main
result = CliRunner().invoke(main, {!r})
assert result.exit_code == 0, result.output
"""


def test_help_loads_no_heavy_library() -> None:
    assert loaded(RUN.format(["postmortem", "--help"])) & (HEAVY | {"hyperscan", "yaml", "regex"}) == set()


def test_a_small_postmortem_loads_no_heavy_library(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("2026-03-01 02:17:00,000 INFO nothing special\n")
    run = RUN.format(["postmortem", str(tmp_path), "--quiet"])
    loaded(run)  # fills the cache where nobody has yet
    assert loaded(run) & (HEAVY - {"ClusterShell"}) == set()
