"""Time spans as people write them: ``90s``, ``10m``, ``2h``, ``7d``."""

from __future__ import annotations

import re
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds(value: Any) -> float:
    """Read a span such as ``90s``, ``10m``, ``2h``, ``7d`` (or plain seconds) into seconds. Raises ``ValueError``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)\s*", str(value))
    if not found:
        raise ValueError(f"{value!r} is not a time span such as 90s, 10m, 2h, 7d")
    return float(found[1]) * _UNITS[found[2]]
