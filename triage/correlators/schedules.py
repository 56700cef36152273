"""Ghosts: harm to training that a forgotten scheduled job explains (the work is done in :mod:`._ghost`)."""

from __future__ import annotations

from triage.correlators._scripts import wants_text
from triage.correlators.base import Context, Correlation
from triage.vocabulary import Origin

__all__ = ["correlate", "wants_text"]

_TABLES = frozenset({"crontab", "timers", "anacrontab"})


def correlate(context: Context) -> Correlation:
    """Return one event per harmful start of every culprit; bundles without any schedule are not looked at."""
    has_table = any(source in _TABLES for scan in context.scans for source, _, _ in scan.rows)
    if not has_table and not any(e.origin is Origin.CRON or e.signature.startswith("cron-") for e in context.events):
        return Correlation()
    from triage.correlators import _ghost

    return _ghost.correlate(context)
