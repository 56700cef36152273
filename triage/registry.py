"""The only discovery code: every public object of a kind in the modules of a package, and in entry points."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Import and yield the public modules of ``package`` in name order."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if not info.name.startswith("_") and info.name != "base":
            yield importlib.import_module(f"{package.__name__}.{info.name}")


def discover(package: ModuleType, wanted: Callable[[object], bool], group: str | None = None) -> list[Any]:
    """Return the module-level objects of ``package`` that satisfy ``wanted``, defined there, in (module, name) order.

    ``group`` names an entry-point group (``triage.sources``, ``triage.outputs`` ...) whose objects are appended.
    """
    found: list[Any] = []
    for module in modules(package):
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and wanted(value) and value not in found:
                found.append(value)
    if group:
        found.extend(_third_party(group))
    return found


def _third_party(group: str) -> Iterator[Any]:
    """Yield what installed packages offer; their metadata is only parsed when one of them names the group."""
    wanted = f"[{group}]".encode()
    files = (f for folder in sys.path for f in Path(folder or ".").glob("*.dist-info/entry_points.txt"))
    if not any(wanted in f.read_bytes() for f in files):
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=group), key=lambda p: p.name):
        yield point.load()
