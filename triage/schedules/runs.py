"""One start of a scheduled job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from triage.model import Evidence
from triage.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """A start of ``schedule``; ``proof`` is the log line that shows it, None when it was computed.

    ``end`` is known where the daemon logs it (CMDEND, the PAM session's end).
    """

    schedule: Schedule
    at: datetime
    proof: Evidence | None = None
    end: datetime | None = None
