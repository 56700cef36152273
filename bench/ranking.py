"""How long 10,000 events take from evidence to diagnoses: part of `make bench`. Nothing here is a test.

    python bench/ranking.py [--events 10000] [--runs 5]

The events are made, not read, so that only correlation and ranking are measured. Shapes: ``incidents`` (several jobs with
faults of several classes, each with the symptoms that its playbook names), ``cascade`` (one fault, all others follow
it) and ``places`` (one class at as many hosts as there are events: nothing can be merged), ``fleet`` (an outage of the fabric: a
thousand links at 128 hosts, each of which may have crashed each of 128 ranks). Figures are medians of user
CPU time and of wall time in milliseconds; the bar is 200 ms for all stages together.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

from triage import diagnosis
from triage.causes import Item
from triage.hypotheses import make_items
from triage.knowledge import chance
from triage.model import Event, Evidence, Place, When
from triage.playbooks import Playbook, load_playbooks
from triage.ranking import Incident, rank
from triage.topology import Topology
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Strength, TimeBasis

BOOKS = Path(__file__).resolve().parent.parent / "playbooks"
START = datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)
FAULTS = (
    "gpu-ecc",
    "ib-link",
    "host-oom",
    "nvme-failure",
    "gpu-fallen-off-bus",
    "storage-stall",
    "disk-full",
    "gpu-nvlink",
)
RANKS_A_HOST = 8
BAR_MS = 200.0


def event(number: int, class_: str, seconds: float, place: Place, *, root: bool) -> Event:
    """Return one event of a class; roots are conclusive and local, the others symptoms of the job."""
    when = When(START + timedelta(seconds=seconds), 0.0, TimeBasis.STAMP)
    line = Evidence(f"{place.host or place.job}.log", number + 1, f"{class_} line", when, place.host)
    return Event(
        id=f"b{number}", signature=f"{class_}-line", title=f"{class_} seen", class_=class_, role=Role.ROOT if root else Role.SYMPTOM,
        level=Level.HIGH, strength=Strength.CONCLUSIVE, noise=Noise.NEVER if root else Noise.RARE, scope=Scope.HOST if root else Scope.JOB,
        place=place, first=when, last=when, effective=when, count=1, lines=(line,),
        order=number, origin=Origin.KERNEL if root else Origin.TRAINING,
    )  # fmt: skip


def places(count: int, _books: Mapping[str, Playbook]) -> Iterator[Event]:
    """Yield one class at ``count`` hosts."""
    for n in range(count):
        yield event(n, "gpu-ecc", n * 0.5, Place(host=f"gpu-{n:05d}"), root=True)


def cascade(count: int, books: Mapping[str, Playbook]) -> Iterator[Event]:
    """Yield one fault and the complaints of all ranks about it."""
    targets = [edge.target for edge in books["gpu-fallen-off-bus"].explains]
    yield event(0, "gpu-fallen-off-bus", 0, Place(job="j1", host="gpu-00000"), root=True)
    for n in range(1, count):
        place = Place(job="j1", host=f"gpu-{n // RANKS_A_HOST % 1024:05d}", rank=n % (1024 * RANKS_A_HOST))
        yield event(n, targets[n % len(targets)], 30 + n * 0.01, place, root=False)


def several(count: int, books: Mapping[str, Playbook]) -> Iterator[Event]:
    """Yield 100 jobs, an hour apart, with a fault at one host each and the symptoms that its playbook names."""
    each = count // 100
    for n in range(count):
        job, position = divmod(n, each)
        fault = FAULTS[job % len(FAULTS)]
        host = f"gpu-{job:03d}-{position // RANKS_A_HOST:02d}"
        if position % 25 == 0:
            place = Place(job=f"j{job}", host=f"gpu-{job:03d}-00" if position == 0 else host)
            yield event(n, fault, job * 3600 + position * 0.01, place, root=True)
        else:
            targets = [edge.target for edge in books[fault].explains]
            place = Place(f"j{job}", host, position)
            yield event(n, targets[position % len(targets)], job * 3600 + 60 + position, place, root=False)


def fleet(count: int, _books: Mapping[str, Playbook]) -> Iterator[Event]:
    """Yield an outage of the fabric: at half of 256 hosts eight links flap, at the others ranks crash, within an hour."""
    for n in range(count):
        host, device = n % 256, n // 256 % RANKS_A_HOST
        if host % 2:
            place = Place(host=f"gpu-{host:03d}", device=f"mlx5_{device}", kind="nic")
            yield replace(event(n, "ib-link", n * 3600.0 / count, place, root=True), scope=Scope.DEVICE)
        else:
            yield event(n, "rank-crash", n * 3600.0 / count, Place(host=f"gpu-{host:03d}"), root=True)


SHAPES: Final[Mapping[str, Callable[[int, Mapping[str, Playbook]], Iterator[Event]]]] = {
    "incidents": several,
    "cascade": cascade,
    "places": places,
    "fleet": fleet,
}


def stages(events: Sequence[Event], books: Mapping[str, Playbook]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the stages in order; each is an action whose last result the next one uses."""
    edges = {name: list(book.explains) for name, book in books.items()}
    priors = {name: chance(name, book.prior) for name, book in books.items()}
    around = diagnosis.Surroundings(Topology(), (), ())
    items: list[Item] = []
    incidents: list[Incident] = []

    def evidence() -> None:
        items[:] = make_items(events, lambda _path, _line: False)

    def ranking() -> None:
        incidents[:] = rank(items, edges, priors, {})

    def diagnoses() -> None:
        for number, incident in enumerate(incidents, 1):
            diagnosis.diagnose(incident, number, books.get(incident.class_), around, incident.probability)

    yield "events to evidence", evidence
    yield "hypotheses, causes, ranking", ranking
    yield "diagnosis", diagnoses


def measured(action: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the medians of (user CPU, wall) milliseconds."""
    user, wall = [], []
    for _ in range(runs):
        began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        action()
        user.append(1000 * (resource.getrusage(resource.RUSAGE_SELF).ru_utime - used))
        wall.append(1000 * (time.perf_counter() - began))
    return statistics.median(user), statistics.median(wall)


def main() -> None:
    """Print a table: a line for every shape and stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    given = parser.parse_args()
    books = load_playbooks(BOOKS).playbooks
    print(f"{'shape, stage':<46} {'user ms':>9} {'wall ms':>9}")
    for name in given.shape or SHAPES:
        events = list(SHAPES[name](given.events, books))
        figures = [(stage, *measured(action, given.runs)) for stage, action in stages(events, books)]
        total = ("total", sum(f[1] for f in figures), sum(f[2] for f in figures))
        for stage, user, wall in (*figures, total):
            mark = f"   above the bar of {BAR_MS:.0f}" if stage == "total" and user > BAR_MS else ""
            print(f"{name}, {stage:<{44 - len(name)}} {user:>9.0f} {wall:>9.0f}{mark}")


if __name__ == "__main__":
    main()
