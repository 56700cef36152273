"""Tables of Slurm commands."""

from __future__ import annotations

import pytest

from triage.sources.slurm_tables import SACCT, SCONTROL_NODE, SINFO, SQUEUE

PADDED = """\
$ sacct -j 88123
       JobID    JobName  Partition      State ExitCode
------------ ---------- ---------- ---------- --------
88123             train        gpu    TIMEOUT      0:0
88123.batch       batch             CANCELLED     0:15
88123.0          python              CANCELL+      0:9
"""

NODE = """\
NodeName=gpu-12 Arch=x86_64 CoresPerSocket=48
   CPUAlloc=0 CPUTot=192 CPULoad=0.12
   Gres=gpu:h100:8(S:0-1)
   OS=Linux 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023
   RealMemory=2060000 AllocMem=0 FreeMem=2011222
   State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1
   BootTime=2026-02-01T00:00:00 SlurmdStartTime=2026-02-01T00:01:00
   Reason=xid 79 on GPU 2, ticket 77 [root@2026-03-02T03:05:00]

NodeName=gpu-13 State=IDLE
"""


def test_padded_accounting() -> None:
    assert SACCT.sniff("sacct.txt", PADDED)
    rows = list(SACCT.rows(PADDED.splitlines()))
    assert [(r.line, r.fields["job"], r.fields.get("step"), r.fields["state"]) for r in rows] == [
        (4, "88123", None, "TIMEOUT"),
        (5, "88123", "batch", "CANCELLED"),
        (6, "88123", "0", "CANCELL"),
    ]
    assert rows[1].fields["signal"] == 15
    assert rows[0].fields["jobs"] == 1


@pytest.mark.parametrize("sep", ["|", "|#", ","])
def test_parsable_accounting(sep: str) -> None:
    lines = [
        sep.join(cells)
        for cells in (["JobID", "State", "ExitCode", "NodeList"], ["7_3", "CANCELLED by 1004", "0:0", "gpu-12"])
    ]
    assert SACCT.sniff("sacct.txt", lines[0])
    (row,) = SACCT.rows(lines)
    assert (row.fields["state"], row.fields["by"], row.fields["host"]) == ("CANCELLED", "1004", "gpu-12")


def test_job_block() -> None:
    lines = [
        "JobId=88125 JobName=train",
        "   UserId=mo(1004) GroupId=mo(1004)",
        "   JobState=NODE_FAIL Reason=NodeDown",
        "   ExitCode=0:0",
    ]
    (row,) = SACCT.rows(lines)
    assert (row.line, row.fields["state"], row.fields["user"], row.fields["reason"]) == (
        3,
        "NODE_FAIL",
        "mo",
        "NodeDown",
    )


def test_node_block_and_one_line_form() -> None:
    assert SCONTROL_NODE.sniff("nodes.txt", NODE)
    first, second = SCONTROL_NODE.rows(NODE.splitlines())
    assert first.line == 8
    assert first.fields["reason"] == "xid 79 on GPU 2, ticket 77"
    assert (first.fields["by"], first.fields["at"], first.fields["state"]) == (
        "root",
        "2026-03-02T03:05:00",
        "IDLE+DRAIN",
    )
    assert (second.line, second.fields["host"]) == (10, "gpu-13")
    assert "reason" not in second.fields


def test_sinfo_reasons_hold_blanks() -> None:
    lines = [
        "REASON               USER      TIMESTAMP           NODELIST",
        "Kill task failed     root      2026-03-02T03:05:00 gpu-[12,15]",
        "Not responding       slurm     2026-03-02T03:05:00 gpu-20",
    ]
    assert SINFO.sniff("sinfo.txt", lines[0])
    rows = list(SINFO.rows(lines))
    assert [(r.fields["reason"], r.fields["host"]) for r in rows] == [
        ("Kill task failed", "gpu-[12,15]"),
        ("Not responding", "gpu-20"),
    ]


def test_sinfo_states_and_flags() -> None:
    lines = [
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST",
        "gpu*         up 3-00:00:00      2  down* gpu-[12-13]",
        "gpu*         up 3-00:00:00      1   idle gpu-14",
    ]
    rows = list(SINFO.rows(lines))
    assert [(r.fields["partition"], r.fields["state"], r.fields.get("flag")) for r in rows] == [
        ("gpu", "down", "*"),
        ("gpu", "idle", None),
    ]


def test_squeue_host_or_reason() -> None:
    lines = [
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)",
        "           88123       gpu    train       mo PD       0:00      4 (launch failed requeued held)",
        "         88124_7       gpu    train       mo CG      10:00      4 gpu-[12-15]",
    ]
    assert SQUEUE.sniff("squeue.txt", lines[0])
    pending, completing = SQUEUE.rows(lines)
    assert pending.fields["reason"] == "launch failed requeued held"
    assert "host" not in pending.fields
    assert (completing.fields["state"], completing.fields["host"]) == ("COMPLETING", "gpu-[12-15]")


@pytest.mark.parametrize(
    "text", ["JobID is 7 and the State is fine?", "NODELIST of the day", "Name=x State=y", "JOBID 7", ""]
)
def test_other_lines_are_no_tables(text: str) -> None:
    lines = [text, "12 34 56", "88123 train"]
    assert not any(list(source.rows(lines)) for source in (SACCT, SINFO, SCONTROL_NODE, SQUEUE))


@pytest.mark.parametrize(
    "text",
    [
        "JobID|State|\n||\n|",
        "JobID State\n---\n",
        "JobId=\nJobState=",
        "NodeName=",
        "NodeName=a\nReason=[x@]",
        "PARTITION STATE NODELIST\n|||||",
        "JOBID NODELIST(REASON)\n7",
    ],
)
def test_broken_tables_never_raise(text: str) -> None:
    for source in (SACCT, SINFO, SCONTROL_NODE, SQUEUE):
        list(source.rows(text.split("\n")))
