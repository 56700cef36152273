"""Slurm: lines in a job's own output (slurmstepd, srun) and daemon logs with any LogTimeFormat (section 9.1)."""

from __future__ import annotations

from triage.sources._lines import BSD as _BSD
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_SLURM = _Origin.SLURM
_LEVEL = r"(?:(?P<severity>fatal|error|warning|info|verbose|debug[1-5]?): {1,2})"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"

SLURM = _Lines(
    "slurm",
    (
        _Layout(
            "slurmstepd-verdict",
            rf"(?P<program>slurmstepd)(?:-[\w.-]{{1,60}})?: {_LEVEL}?(?P<body>\*\*\* [^\n]{{1,120}}? ON "
            rf"(?P<host>[\w.-]{{1,80}}) "
            rf"(?:CANCELLED )?AT (?P<stamp>{_TIME}(?:[+-]\d\d:?\d\d)?))",
            stamp="iso",
            origin=_SLURM,
            examples=(
                (
                    "slurmstepd: error: *** STEP 77.0 ON cn-12 CANCELLED AT 2030-05-27T21:42:11 DUE TO TIME LIMIT ***",
                    {
                        "time": "2030-05-27T21:42:11",
                        "host": "cn-12",
                        "program": "slurmstepd",
                        "severity": "error",
                        "body": "*** STEP 77.0 ON cn-12 CANCELLED AT 2030-05-27T21:42:11 DUE TO TIME LIMIT ***",
                    },
                ),
                (
                    "slurmstepd-cn-12: error: *** STEP 7.0 STEPD TERMINATED ON cn-12 AT 2030-05-27T21:42:11 DUE TO "
                    "JOB NOT ENDING WITH SIGNALS ***",
                    {"host": "cn-12", "time": "2030-05-27T21:42:11"},
                ),
            ),
        ),
        _Layout(
            "slurmstepd",
            rf"(?P<program>slurmstepd)(?:-(?P<host>[\w.-]{{1,60}}))?: {_LEVEL}?",
            origin=_SLURM,
            examples=(
                (
                    "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0.",
                    {"severity": "error", "body": "Detected 1 oom_kill event in StepId=9.0.", "time": None},
                ),
            ),
        ),
        _Layout(
            "srun",
            rf"(?P<program>srun|salloc|sbatch|scancel|sinfo|squeue|scontrol|sacct): {_LEVEL}?"
            r"(?=(?:(?P<host>[\w.-]{1,80}): tasks? \d)?)",
            origin=_SLURM,
            examples=(
                (
                    "srun: error: cn-12: task 3: Exited with exit code 1",
                    {
                        "host": "cn-12",
                        "program": "srun",
                        "body": "cn-12: task 3: Exited with exit code 1",
                        "task": None,
                    },
                ),
                ("srun: error: cn-[1-3]: tasks 0-7: Killed", {"host": None, "severity": "error"}),
                ("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", {"host": None}),
            ),
        ),
        _Layout(
            "slurm-daemon",
            rf"\[(?P<stamp>{_ISO})\] (?:\[(?P<step>\d{{1,10}}[\d_+]*\.[\w.]{{1,20}})\] )?"
            r"(?:(?P<severity>fatal|error|warning|debug[1-5]?|info|verbose): {1,2}|sched: |(?=slurm(?:ctld|d|dbd) ))",
            stamp="iso",
            origin=_SLURM,
            examples=(
                (
                    "[2030-01-02T00:00:00.123] [4242.batch] error: Unable to contact slurm controller",
                    {
                        "time": "2030-01-02T00:00:00.123",
                        "step": "4242.batch",
                        "severity": "error",
                        "body": "Unable to contact slurm controller",
                    },
                ),
                ("[2030-01-02T00:00:00.123] debug:  x", {"severity": "debug", "body": "x"}),
                ("[2030-01-02T00:00:00] slurmd version 99.05 started", {"body": "slurmd version 99.05 started"}),
            ),
        ),
        _Layout(
            "slurm-daemon-step",
            rf"\[(?P<stamp>{_ISO}|{_BSD})\] \[(?P<step>\d{{1,10}}[\d_+]*\.[\w.]{{1,20}})\] {_LEVEL}?",
            stamp="slurm",
            origin=_SLURM,
            examples=(("[Jan 02 00:00:00] [4242.0] done with job", {"time": "--01-02T00:00:00", "step": "4242.0"}),),
        ),
        _Layout(
            "slurm-daemon-plain",
            r"\[(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (?!\[)",
            stamp="iso",
            origin=_SLURM,
            examples=(("[2030-01-02T00:00:00.123] Allocate JobId=7", {"body": "Allocate JobId=7", "origin": "slurm"}),),
        ),
        _Layout(
            "slurm-daemon-short",
            rf"\[(?P<stamp>{_BSD})\] {_LEVEL}",
            stamp="bsd",
            origin=_SLURM,
            examples=(("[Jan 02 00:00:00] error: Nodes a[1-2] not responding", {"time": "--01-02T00:00:00"}),),
        ),
    ),
    priority=38,
)
