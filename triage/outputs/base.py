"""What an output is: a module of this package with a ``render`` function; its module name is the ``--format`` name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triage.report import Report


@dataclass(frozen=True, slots=True)
class Style:
    """How to write for the reader's screen. ``width`` in columns; ``why`` prints the arithmetic."""

    width: int = 80
    color: bool = False
    why: bool = False


Render = Callable[[Report, Style], str]
