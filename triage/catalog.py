"""Where signatures, playbooks and samples lie: in the wheel, beside an editable install, in user directories."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def data_dir(kind: str) -> Path:
    """Return the folder of ``signatures``, ``playbooks`` or ``samples``: ``triage/data`` in a wheel, else the checkout's."""
    packed = PACKAGE / "data" / kind
    return packed if packed.is_dir() else PACKAGE.parent / kind


def signature_files(roots: Iterable[Path]) -> list[Path]:
    """Return the signature files below ``roots`` in name order (code tables and hidden files left out)."""
    found: list[Path] = []
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*.yml"))
        found.extend(
            f
            for f in files
            if not f.name.endswith(".table.yml") and f.name != "disabled.yml" and not f.name.startswith(".")
        )
    return found
