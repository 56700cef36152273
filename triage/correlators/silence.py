"""Who says nothing: hosts of the job without any log here, host logs that end before the failure, ranks that never got ready."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from triage.correlators.base import EARLIEST, Context, Correlation, Suspect
from triage.model import Place
from triage.vocabulary import Origin, Role

ENDS_EARLY = timedelta(minutes=10)
NAMED = 5
HOST_LOGS = frozenset({Origin.KERNEL, Origin.SYSLOG, Origin.CRON})
CLASSES = frozenset({"nccl-timeout", "unknown", "rank-crash", "network-bootstrap", "nccl-init-failure"})


def correlate(context: Context) -> Correlation:
    """Return warnings about missing and short logs, and the silent ones as suspects."""
    suspects = [*_ended(context), *_never_ready(context)]
    warnings = [*_without_log(context), *(s.reason for s in suspects[:NAMED])]
    return Correlation(suspects=tuple(suspects), warnings=tuple(warnings))


def _without_log(context: Context) -> Iterator[str]:
    """Hosts that run ranks of a job and have no file of their own."""
    told = {facts.host for facts in context.topology.files.values() if facts.host}
    missing = sorted({host for host in context.topology.rank_host.values() if host not in told})
    if missing and told:
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        yield f"no log of their own here from hosts of the job: {', '.join(missing[:NAMED])}{more}"


def _ended(context: Context) -> Iterator[Suspect]:
    """Host logs that stop before the first failure while other hosts' logs go on."""
    failure = min(
        (at for e in context.events if e.role in (Role.ROOT, Role.SYMPTOM) and (at := e.first.at) is not None),
        default=None,
    )
    lasts = _last_lines(context)
    if failure is None or len(lasts) < 2:
        return
    for host, last in sorted(lasts.items()):
        others = [at for name, at in lasts.items() if name != host]
        if failure - last > ENDS_EARLY and sum(at >= failure for at in others) >= max(1, len(others) // 2):
            minutes = (failure - last).total_seconds() / 60
            yield Suspect(
                Place(host=host),
                EARLIEST,
                f"the log of {host} ends {minutes:.0f} min before the first failure",
                (),
                CLASSES,
            )


def _last_lines(context: Context) -> dict[str, datetime]:
    lasts: dict[str, datetime] = {}
    for scan in context.scans:
        host = context.topology.files[scan.path].host
        if host is None or not any(parsed.origin in HOST_LOGS for _, parsed in scan.samples[-40:]):
            continue
        at = context.when(scan, scan.lines)
        if at is not None and (host not in lasts or at > lasts[host]):
            lasts[host] = at
    return lasts


def _never_ready(context: Context) -> Iterator[Suspect]:
    """Ranks that began to initialise and never reported to be done, when most others did."""
    topology = context.topology
    for job, ready in topology.ready.items():
        stuck = sorted(topology.begun.get(job, set()) - ready)
        if stuck and len(stuck) <= max(1, len(ready) // 4):
            for rank in stuck[:NAMED]:
                reason = f"rank {rank} began to initialise and never reported to be ready"
                yield Suspect(
                    Place(job=job, rank=rank),
                    EARLIEST,
                    reason,
                    (),
                    frozenset({"nccl-init-failure", "network-bootstrap", "unknown"}),
                )
