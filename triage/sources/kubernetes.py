"""Kubernetes and container runtimes: klog headers without code path brackets of torch, logfmt, events (section 9.2)."""

from __future__ import annotations

from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_K8S = _Origin.KUBERNETES

KUBERNETES = _Lines(
    "kubernetes",
    (
        _Layout(
            "klog",
            r"(?P<severity>[IWEF])(?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<pid>\d{1,10}) "
            r"(?P<code>[a-z_0-9]{1,60}\.go:\d{1,6})\] ?",
            stamp="glog",
            origin=_K8S,
            examples=(
                (
                    'I1225 13:16:07.782390     794 eviction_manager.go:351] "Eviction manager"',
                    {
                        "time": "--12-25T13:16:07.782390",
                        "pid": 794,
                        "origin": "kubernetes",
                        "body": '"Eviction manager"',
                    },
                ),
            ),
        ),
        _Layout(
            "logfmt",
            rf'(?:(?:logger|source|caller)=\S{{1,80}} )?(?:time|ts|t)="?(?P<stamp>{_ISO})"? (?:'
            rf"(?:caller|source|component|logger)=(?P<code>\S{{1,120}}) )?"
            rf'level="?(?P<severity>{_LEVEL})"? (?:(?:caller|source|component|logger)=(?P<code2>\S{{1,120}}) )?'
            r'(?:msg="?(?P<body>(?=.)))?',
            stamp="iso",
            examples=(
                (
                    'time="2030-08-13T05:10:12Z" level=info msg="DCGM ready"',
                    {"time": "2030-08-13T05:10:12+00:00", "severity": "info", "body": 'DCGM ready"'},
                ),
                ("ts=2030-08-13T05:10:12.5Z caller=node.go:181 level=error msg=bad", {"body": "bad"}),
            ),
        ),
    ),
    priority=34,
)
