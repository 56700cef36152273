"""What is scheduled, when it starts, and what it does to files. Pure: texts, scripts and mount tables are passed in."""

from triage.schedules.build import LoggedCommand, match_runs, schedules_from_records
from triage.schedules.effect import DESTRUCTIVE, Effect, Kind
from triage.schedules.effects import effects, find_script
from triage.schedules.mounts import Mount, covers, locate, normalise, overlaps, read_mounts, same_tree, short
from triage.schedules.rsync import deleted_path, is_readers_complaint
from triage.schedules.runs import ScheduleRun
from triage.schedules.schedule import Schedule, cron_fields, occurrences, zone_of

__all__ = [
    "DESTRUCTIVE",
    "Effect",
    "Kind",
    "LoggedCommand",
    "Mount",
    "Schedule",
    "ScheduleRun",
    "covers",
    "cron_fields",
    "deleted_path",
    "effects",
    "find_script",
    "is_readers_complaint",
    "locate",
    "match_runs",
    "normalise",
    "occurrences",
    "overlaps",
    "read_mounts",
    "same_tree",
    "schedules_from_records",
    "short",
    "zone_of",
]
