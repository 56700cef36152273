"""What shippers and launchers put in front of another program's line; taken off, and the rest is read again."""

from __future__ import annotations

from triage.sources._lines import HOST as _HOST
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import NUMBERED_HOST as _NUMBERED
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

# What a line behind a bare "host: " label looks like; without it the label may be anything ("nvme0: ", "GPU0: ").
_BEHIND_HOST = (
    r"(?= ?\[?\d{4}-\d\d-\d\d[ T]| ?\[(?:rank|default|[VIWEF] |[VIWEF]\d{3,4} |INFO|WARNING|ERROR)|  ?iteration |  ?> "
    r"| ?Traceback | ?  File \"| ?[\w.%-]+:\d+:\d+ \[| ?"
    r"(?:slurmstepd|srun|Epoch|step|NCCL)\b| ?\[[\w ,.-]{3,100}\] datetime"
    r"| ?[\w./-]+: (?:line \d+|command not found)| ?\{'loss'| ?[VIWEF]\d{4} \d\d:\d\d:\d\d)"
)

WRAPPERS = _Lines(
    "wrapper",
    (
        _Layout(
            "docker-json",
            r'(?P<json>\{"log":)',
            wrapper=True,
            examples=(
                (
                    r'{"log":"step 7 \"ok\"\n","stream":"stderr","time":"2030-05-06T07:08:09.123456789Z"}',
                    {"time": "2030-05-06T07:08:09.123456+00:00", "body": 'step 7 "ok"', "stream": "stderr"},
                ),
            ),
        ),
        _Layout(
            "containerd",
            rf"(?P<stamp>{_ISO}) (?P<stream>stdout|stderr) (?P<partial>[FP])(?::\w)* ?",
            stamp="iso",
            wrapper=True,
            examples=(
                (
                    "2030-05-06T07:08:09.123456789Z stderr F [rank3]: ValueError",
                    {"time": "2030-05-06T07:08:09.123456+00:00", "rank": 3, "body": "ValueError", "stream": "stderr"},
                ),
            ),
        ),
        _Layout(
            "compose",
            r"(?P<container>[a-z][\w.-]{0,80}[_-]\d{1,4}) {1,40}\| ",
            wrapper=True,
            examples=(("trainer-1   | loss 2.5", {"body": "loss 2.5", "container": "trainer-1"}),),
        ),
        _Layout(
            "kubectl-prefix",
            r"\[pod/(?P<pod>[^/\]]{1,253})/(?P<container>[^\]]{1,63})\] ",
            wrapper=True,
            examples=(("[pod/train-0/worker] loss 2.5", {"body": "loss 2.5", "pod": "train-0"}),),
        ),
        _Layout(
            "srun-label",
            r" {0,6}(?P<task>\d{1,6}): (?!\w+[\w.@-]*: <)",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(
                (" 13: [rank13]:     main()", {"task": 13, "rank": 13, "body": "    main()", "origin": "training"}),
                ("0: slurmstepd: error: x", {"task": 0, "origin": "slurm", "body": "x"}),
                (" 3: 1: not a second label", {"task": 3}),
            ),
        ),
        _Layout(
            "srun-label-bare",
            r" {0,6}(?P<task>\d{1,6}):$",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=((" 3:", {"task": 3, "body": ""}),),
        ),
        _Layout(
            "torchrun-label",
            r"\[(?!(?i:rank|step|epoch|iter|stage|layer|gpu|cuda|node|host)\d)(?P<role>[A-Za-z][A-Za-z_-]{0,30}?)(?P<local_rank>\d{1,4})\]:",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(
                (
                    "[default7]: iteration  12/ 100 | lm loss: 2.0",
                    {"local_rank": 7, "rank": None, "body": " iteration  12/ 100 | lm loss: 2.0"},
                ),
                ("[trainer0]:[rank8]: KeyError: 'x'", {"local_rank": 0, "rank": 8, "body": "KeyError: 'x'"}),
            ),
        ),
        _Layout(
            "torch-rank",
            r"\[rank(?:: )?(?P<rank>\d{1,6})\](?:: ?|(?= ))",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(
                ("[rank3]: Traceback (most recent call last):", {"rank": 3, "origin": "training"}),
                ("[rank: 2] Seed set to 1", {"rank": 2, "body": " Seed set to 1"}),
                ("[rank0] step 1 | loss 2", {"rank": 0, "body": " step 1 | loss 2"}),
            ),
        ),
        _Layout(
            "mpirun-tag",
            r"\[\d{1,6},(?P<task>\d{1,6})\]<(?P<stream>stdout|stderr|stddiag)>: ?",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(("[1,5]<stdout>:loss 2", {"task": 5, "stream": "stdout", "body": "loss 2"}),),
        ),
        _Layout(
            "mpirun-time",
            r"(?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4})(?:\[\d{1,6},"
            r"(?P<task>\d{1,6})\])?"
            r"<(?P<stream>stdout|stderr|stddiag)>: ?",
            stamp="bsd",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(
                (
                    "Tue Mar  5 12:00:00 2030[1,4]<stdout>:loss 2",
                    {"task": 4, "time": "2030-03-05T12:00:00", "body": "loss 2"},
                ),
            ),
        ),
        _Layout(
            "mpirun-tag-host",
            rf"\[(?P<host>{_HOST}),(?P<task>\d{{1,6}})\]<(?P<stream>stdout|stderr)>: ?",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(("[node4,5]<stderr>:loss 2", {"host": "node4", "task": 5, "body": "loss 2"}),),
        ),
        _Layout(
            "ray-tag",
            r"\((?P<program>[A-Za-z_][^()]{0,80}?) pid=(?P<pid>\d{1,10})(?:, ip=(?P<host>[\w.:-]{1,60}))?\) ?",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(
                (
                    "(TrainWorker pid=3490, ip=10.9.0.5) OOM",
                    {"program": "TrainWorker", "pid": 3490, "host": "10.9.0.5", "body": "OOM"},
                ),
                ("(Worker TP1 pid=12) loss", {"program": "Worker TP1", "pid": 12, "body": "loss"}),
            ),
        ),
        _Layout(
            "ray-system",
            r"\((?P<program>raylet|autoscaler|gcs_server|scheduler)(?:, ip=(?P<host>[\w.:-]{1,60}))?"
            r"(?: \+\w{1,20})?\) ?",
            origin=_Origin.TRAINING,
            wrapper=True,
            examples=(("(autoscaler +1m2s) Resized", {"program": "autoscaler", "body": "Resized"}),),
        ),
        _Layout(
            "host-label",
            rf"(?P<host>{_NUMBERED}): {_BEHIND_HOST}",
            wrapper=True,
            examples=(
                ("vm-07-5: [2030-11-29 08:50:48,288] [INFO] [x.py:1:f] hi", {"host": "vm-07-5", "body": "hi"}),
                ("cn12:  iteration 5/ 10 | lm loss", {"host": "cn12", "body": " iteration 5/ 10 | lm loss"}),
            ),
        ),
        _Layout(
            "ssh-label",
            rf"\[(?P<host>{_NUMBERED})\] (?=\[?\d{{4}}-|\[?[A-Z][a-z]{{2}} [ \d]\d )",
            wrapper=True,
            examples=(("[cn12] 2030-05-06 07:08:09,1 - x - INFO - hi", {"host": "cn12", "body": "hi"}),),
        ),
    ),
    priority=10,
)
