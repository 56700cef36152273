"""What the commands do, without the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from triage import catalog, knowledge
from triage.errors import Problem, UsageError
from triage.loader import load_files, suggestion
from triage.patterns import rg_form
from triage.pipeline import Options
from triage.pipeline import around as window_around
from triage.report import Report
from triage.signature import Signature

PROGRESS_DELAY_S = 1.0


def options_of(
    since: str | None,
    until: str | None,
    around: str | None,
    span: str,
    *rest: object,
) -> Options:
    """Read the options of a postmortem. Raises :class:`UsageError` for times, spans and zones that cannot be read."""
    from datetime import timedelta

    from triage.spans import seconds

    host, job, attempt, topology, year, tz, workers = rest
    zone = _zone(str(tz)) if tz else timezone.utc
    try:
        length = timedelta(seconds=seconds(span))
        if length <= timedelta(0):
            raise ValueError(f"{span!r} is not a time span such as 90s, 10m, 2h, 7d")
    except (ValueError, OverflowError) as err:
        raise UsageError(f"--span: {err}") from err
    start, end = (
        moment(text, zone, option) if text else None for text, option in ((since, "--since"), (until, "--until"))
    )
    if around:
        try:
            start, end = window_around(moment(around, zone, "--around"), length)
        except OverflowError as err:
            raise UsageError(
                f"--span: {span!r} around {around!r} leaves the calendar; spans look like 30m or 2h"
            ) from err
    if attempt not in ("last", "all") and not re.fullmatch(r"[1-9][0-9]{0,8}", str(attempt)):
        raise UsageError(f"--attempt: {attempt!r} is neither a number nor 'last' nor 'all'")
    return Options(
        year=year,  # type: ignore[arg-type]
        tz=tz,  # type: ignore[arg-type]
        since=start,
        until=end,
        host=host,  # type: ignore[arg-type]
        job=job,  # type: ignore[arg-type]
        attempt=str(attempt),
        topology=topology,  # type: ignore[arg-type]
        workers=workers,  # type: ignore[arg-type]
    )


def _zone(name: str) -> timezone:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)  # type: ignore[return-value]
    except (ZoneInfoNotFoundError, ValueError, OSError) as err:
        raise UsageError(f"--tz: no zone {name!r}; names look like Europe/Berlin or UTC") from err


def moment(text: str, zone: timezone, option: str) -> datetime:
    """Read an ISO time given to ``option``; without a zone it is in ``zone``. Raises :class:`UsageError`."""
    try:
        at = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(timezone.utc)
    except (ValueError, OverflowError) as err:
        raise UsageError(f"{option}: {text!r} is not a time such as 2026-03-01T02:17:00Z") from err


def write_report(
    report: Report, format_: str, out: Path | None, *, why: bool = False, decision_only: bool = False
) -> None:
    """Render and write a report to the screen, a file or into a folder."""
    import importlib

    from triage.outputs.base import Style
    from triage.outputs.safe import json_text

    if decision_only:
        text = json_text(report.as_dict()["decision"]) + "\n"
    else:
        color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        width = shutil.get_terminal_size((80, 24)).columns if out is None and sys.stdout.isatty() else 80
        module = importlib.import_module(f"triage.outputs.{format_}")
        text = module.render(report, Style(width=min(width, 120), color=color, why=why))
    if out is None:
        sys.stdout.write(text)
        return
    target = out / f"report.{'txt' if format_ == 'text' else format_}" if out.is_dir() else out
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as err:
        raise UsageError(f"cannot write {target}: {err.strerror}") from err


@contextmanager
def delayed_progress() -> Iterator[Callable[[int], None]]:
    """Yield a function that takes bytes read; a bar shows itself after a second."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("reading", total=None)
    began = time.monotonic()
    started = False

    def advance(size: int) -> None:
        nonlocal started
        if not started and time.monotonic() - began > PROGRESS_DELAY_S:
            bar.start()
            started = True
        bar.update(task, advance=size)

    try:
        yield advance
    finally:
        if started:
            bar.stop()


def list_signatures(dirs: Sequence[Path], format_: str, class_: str | None) -> Iterator[str]:
    """Yield the lines of ``signatures list``."""
    found, _ = knowledge.load_signatures(dirs, knowledge.cache_dir())
    for signature in found:
        if class_ and signature.class_ != class_:
            continue
        if format_ == "patterns":
            yield from (rg_form(p) for p in signature.patterns if not signature.where)
        elif format_ == "json":
            yield json.dumps(
                {"id": signature.id, "class": signature.class_, "role": signature.role.value, "title": signature.title}
            )
        else:
            yield f"{signature.id:<44} {signature.class_:<22} {signature.role.value:<13} {signature.title}"


def show_signature(name: str, dirs: Sequence[Path]) -> str:
    """Return a signature's file, or the row of its code table. Raises :class:`UsageError` for an unknown id."""
    import yaml

    found = {s.id: s for s in knowledge.load_signatures(dirs, knowledge.cache_dir())[0]}
    base, _, code = name.partition("/")
    if base not in found:
        raise UsageError(f"no signature {base!r}; {suggestion(base, found)}")
    text = Path(found[base].path).read_text(encoding="utf-8")
    if not code:
        return text
    if code not in found[base].table:
        raise UsageError(f"{base} has no row {code!r}")
    return yaml.safe_dump({code: dict(found[base].table[code])}, sort_keys=False, allow_unicode=True)


def _chosen(paths: Sequence[Path]) -> tuple[Sequence[Signature], list[Problem]]:
    if not paths:
        ours = load_files(catalog.signature_files([catalog.data_dir("signatures")]))
        return ours.signatures, list(ours.problems)
    known = {s.id: s for s in knowledge.load_signatures((), knowledge.cache_dir())[0]}
    theirs = load_files(catalog.signature_files(paths), known=known)
    return theirs.signatures, list(theirs.problems)


def _run_examples(chosen: Sequence[Signature]) -> Iterator[Problem]:
    from triage import selftest
    from triage.peel import Peeler

    lines, rows = knowledge.find_sources()
    peeler = Peeler(lines)
    for signature in chosen:
        yield from selftest.check(signature, peeler, rows)


def test_signatures(paths: Sequence[Path]) -> tuple[list[Problem], str]:
    """Run every example; return (problems, summary line)."""
    chosen, problems = _chosen(paths)
    problems.extend(_run_examples(chosen))
    count = sum(len(s.matches) + len(s.near_misses) for s in chosen)
    return problems, f"{len(chosen)} signatures, {count} examples, {len(problems)} problems"


def lint_signatures(paths: Sequence[Path]) -> tuple[list[Problem], str]:
    """Run the examples and every lint check; return (problems, summary line)."""
    from triage import lint

    chosen, problems = _chosen(paths)
    problems.extend(_run_examples(chosen))
    problems.extend(lint.check(chosen, knowledge.load_signatures((), knowledge.cache_dir())[0]))
    return problems, f"{len(chosen)} signatures linted, {len(problems)} problems"


TEMPLATE = """\
id: {name}
title: What was seen, not the cure
class: unknown            # a failure class (triage playbooks list), or none
role: symptom             # root | symptom | confirmation | context | advice | benign
level: medium
status: experimental
sources: [training]
scope: job
strength: moderate
noise: rare
patterns:
  - 'some fixed text (?P<rank>\\d{{1,6}})'
examples:
  match:
    - line: 'some fixed text 3'
      fields: {{rank: 3}}
  near_miss:
    - line: 'some other text 3'
      why: the fixed text is missing
"""


def new_signature(name: str, folder: Path) -> Path:
    """Write a template. Raises :class:`UsageError` if the name is no id or the file exists."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise UsageError(f"{name!r} is no id: lower-case words joined by '-'")
    target = folder / f"{name}.yml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=name))
    except FileExistsError as err:
        raise UsageError(f"{err.filename} exists") from err
    except OSError as err:
        raise UsageError(f"cannot write {target}: {err.strerror}") from err
    return target


def list_playbooks() -> Iterator[str]:
    """Yield one line per class."""
    from triage import playbooks

    for name, playbook in playbooks.load_playbooks(catalog.data_dir("playbooks")).playbooks.items():
        yield f"{name:<24} {playbook.title}"


def show_playbook(name: str) -> str:
    """Return a playbook's text. Raises :class:`UsageError` for an unknown class."""
    from triage.vocabulary import CLASSES

    path = catalog.data_dir("playbooks") / f"{name}.md"
    if name not in CLASSES or not path.is_file():
        raise UsageError(f"no playbook {name!r}; {suggestion(name, CLASSES)}")
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Case:
    """A sample: a composed bundle with what it should give."""

    name: str
    title: str
    bundle: Path
    year: int | None = None

    def command(self) -> str:
        """Return the command line that does the same."""
        shown = os.path.relpath(self.bundle)
        year = f" --year {self.year}" if self.year else ""
        return f"triage postmortem {self.bundle if shown.startswith('..') else shown}{year}"

    def options(self) -> Options:
        """Return the options the sample is run with."""
        return Options(year=self.year)


def demo_cases(name: str | None) -> list[Case]:
    """Return the samples, or the one named. Raises :class:`UsageError` for an unknown name."""
    import yaml

    root = catalog.data_dir("samples")
    found = []
    for path in sorted(root.glob("*/case.yml")):
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
        found.append(Case(path.parent.name, about["title"], path.parent / "bundle", about.get("year")))
    if name is None:
        return found
    chosen = [case for case in found if case.name == name]
    if not chosen:
        raise UsageError(f"no sample {name!r}; {suggestion(name, [c.name for c in found])}")
    return chosen


def schema_text(name: str) -> str:
    """Return a JSON Schema by name: report or signature."""
    if name == "report":
        return (catalog.PACKAGE / "schemas" / "report-1.schema.json").read_text(encoding="utf-8")
    from triage.schemas.signature import SignatureFile

    return json.dumps(SignatureFile.model_json_schema(by_alias=True), indent=1)
