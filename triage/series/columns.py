"""Whole-column questions: in C loops for short columns, by numpy for long ones, with the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from math import isfinite, log
from operator import gt

LONG = 4096  # points from which numpy pays for its import


def all_finite(values: Sequence[float]) -> bool:
    """True if no value is NaN or infinite."""
    if len(values) < LONG:
        return all(map(isfinite, values))
    import numpy as np

    return bool(np.isfinite(np.asarray(values)).all())


def falls(values: Sequence[float]) -> list[int]:
    """Indexes whose value is below the one before."""
    if len(values) < LONG:
        return [i for i, fallen in enumerate(map(gt, values, islice(values, 1, None)), 1) if fallen]
    import numpy as np

    column = np.asarray(values)
    return [int(i) + 1 for i in np.flatnonzero(column[1:] < column[:-1])]


def fresh(steps: Sequence[float], values: Sequence[float]) -> Sequence[int]:
    """Indexes with a finite value and another step than the point before; an unknown step is always another one."""
    if len(values) < LONG:
        rows = enumerate(zip(steps, chain((float("nan"),), steps), values, strict=False))
        return [i for i, (step, before, value) in rows if step != before and isfinite(value)]
    import numpy as np

    column = np.asarray(steps)
    changed = np.concatenate(([True], column[1:] != column[:-1]))
    kept: list[int] = np.flatnonzero(changed & np.isfinite(np.asarray(values))).tolist()
    return kept


def positive(values: Sequence[float]) -> Sequence[int]:
    """Indexes of positive values, infinite ones included."""
    if len(values) < LONG:
        return [i for i, value in enumerate(values) if value > 0]
    import numpy as np

    found: list[int] = np.flatnonzero(np.asarray(values) > 0).tolist()
    return found


def logs(values: Sequence[float]) -> list[float]:
    """Natural logarithms of positive values."""
    if len(values) < LONG:
        return [log(value) for value in values]
    import numpy as np

    found: list[float] = np.log(np.asarray(values)).tolist()
    return found


def negated(values: Sequence[float]) -> Sequence[float]:
    """The values with their sign turned."""
    if len(values) < LONG:
        return [-value for value in values]
    import numpy as np

    found: list[float] = (-np.asarray(values)).tolist()
    return found


def share_rising(values: Sequence[float]) -> float:
    """Share of points that are not below the one before."""
    return 1 - len(falls(values)) / max(len(values) - 1, 1)
