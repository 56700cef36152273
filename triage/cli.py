"""The command line: options in, exit code out; no logic.

Exit codes: 0 report written (also when nothing was found); 1 only with ``--fail-on``; 2 bad usage, or no PATH could be opened.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from triage import __version__
from triage.cli_catalog import playbooks, signatures
from triage.cli_options import more_signatures
from triage.errors import TriageError

if TYPE_CHECKING:
    from triage.knowledge import Knowledge
    from triage.pipeline import Options
    from triage.report import Report

LEVELS = ("low", "medium", "high", "critical")
FORMATS = ("text", "json")
CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


class _Group(click.Group):
    """Turns errors a user can act on into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        _print_anything()
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except TriageError as err:
            click.echo(f"triage: {err}", err=True)
            ctx.exit(2)
        except BrokenPipeError:
            _forget_reader()
            ctx.exit(0)
        return result


def _print_anything() -> None:
    """Characters that the terminal's encoding lacks come as escapes that JSON understands too."""
    import codecs

    def escaped(err: UnicodeError) -> tuple[str, int]:
        if not isinstance(err, UnicodeEncodeError):
            raise err
        units = err.object[err.start : err.end].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2)), err.end

    codecs.register_error("triage-escape", escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="triage-escape")


def _forget_reader() -> None:
    """The reader of the pipe has gone: nothing more can be said, not even by the interpreter on its way out."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


@click.group(cls=_Group, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="triage")
def main() -> None:
    """Say what failed first in a GPU training cluster, why, how sure that is, and what to do: from the logs alone.

    Start with:  triage postmortem PATH_TO_LOGS    or:  triage demo
    """


main.add_command(signatures)
main.add_command(playbooks)


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to write the report.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write to this file (or into this folder) instead of the screen."
)
@click.option("--since", help="Only what happened from this time on (ISO 8601).")
@click.option("--until", help="Only what happened up to this time (ISO 8601).")
@click.option("--around", help="Only what happened around this time (ISO 8601).")
@click.option("--span", default="30m", show_default=True, help="With --around: how far to each side (90s, 30m, 2h).")
@click.option("--host", help="Only this host (short name).")
@click.option("--job", help="Only this job.")
@click.option("--attempt", default="last", show_default=True, help="Which start of the job: a number, last or all.")
@click.option(
    "--topology",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rack file: YAML, JSON, CSV or Slurm topology.conf.",
)
@click.option("--year", type=click.IntRange(1970, 9999), help="Year of stamps that name none.")
@click.option("--tz", help="Zone of stamps that name none (Europe/Berlin, UTC).")
@click.option("--why", is_flag=True, help="Print the arithmetic behind each diagnosis.")
@click.option(
    "--decision", "decision_only", is_flag=True, help="Print only the decision, as one JSON line (for launch scripts)."
)
@click.option("--fail-on", type=click.Choice(LEVELS), help="Exit with 1 if a diagnosis has at least this level.")
@more_signatures
@click.option("--workers", type=click.IntRange(1, 256), help="Scanner threads (default: one per core).")
@click.option("--quiet", "-q", is_flag=True, help="No progress bar, no notes.")
def postmortem(
    paths: tuple[str, ...],
    format_: str,
    out: Path | None,
    since: str | None,
    until: str | None,
    around: str | None,
    span: str,
    host: str | None,
    job: str | None,
    attempt: str,
    topology: Path | None,
    year: int | None,
    tz: str | None,
    why: bool,
    decision_only: bool,
    fail_on: str | None,
    signature_dirs: tuple[Path, ...],
    workers: int | None,
    quiet: bool,
) -> None:
    """Diagnose a bundle of logs: files, folders, .gz files, or - for standard input.

    Example:  triage postmortem /var/log/bundle --around 2026-03-01T02:17:00Z --why
    """
    from triage.commands import options_of, write_report

    options = options_of(since, until, around, span, host, job, attempt, topology, year, tz, workers)
    knowledge = _knowledge(signature_dirs, quiet=quiet)
    report = _run(paths, knowledge, options, quiet=quiet)
    write_report(report, format_, out, why=why, decision_only=decision_only)
    if fail_on and any(d.level.order >= _order(fail_on) for d in report.diagnoses):
        sys.exit(1)


def _order(level: str) -> int:
    from triage.vocabulary import Level

    return Level(level).order


def _knowledge(extra: Sequence[Path], *, quiet: bool) -> Knowledge:
    from triage import knowledge

    loaded = knowledge.load(extra, cache=knowledge.cache_dir())
    if not quiet:
        for problem in loaded.problems:
            click.echo(f"{problem}", err=True)
    return loaded


def _run(paths: Sequence[str], knowledge: Knowledge, options: Options, *, quiet: bool) -> Report:
    from datetime import datetime, timezone

    from triage import pipeline

    with _progress(quiet) as progress:
        return pipeline.postmortem(paths, knowledge, options, now=datetime.now(timezone.utc), progress=progress)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal once the work takes over a second; never on pipes."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from triage.commands import delayed_progress

    with delayed_progress() as advance:
        yield advance


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--line", "lines", multiple=True, type=click.IntRange(1), help="Only this line (may be given several times)."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl"]),
    default="jsonl",
    show_default=True,
    help="One JSON object per line.",
)
@click.option("--year", type=click.IntRange(1970, 9999), help="Year of stamps that name none.")
@click.option("--tz", help="Zone of stamps that name none.")
def inspect(file: Path, lines: tuple[int, ...], format_: str, year: int | None, tz: str | None) -> None:
    """Show how a file is read: source, layout, time, host, rank and message of each line, as JSON lines."""
    from triage.inspection import inspect as inspect_file
    from triage.outputs.safe import escaped_json

    del format_
    for row in inspect_file(file, lines, year=year, tz=tz):
        click.echo(escaped_json(row))


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="LINE|CODE|CLASS|-")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to write the answer.",
)
@more_signatures
def explain(words: tuple[str, ...], format_: str, signature_dirs: tuple[Path, ...]) -> None:
    """Say what a line, a code or a class means.

    And what it does not prove; - reads standard input.

    Examples:  triage explain xid 79    triage explain exit -9    dmesg | tail -5 | triage explain -
    """
    from triage.explain import command

    click.echo(command(words, format_, _knowledge(signature_dirs, quiet=False), sys.stdin), nl=False)


@main.command()
@click.argument("name", required=False)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to write the reports.",
)
def demo(name: str | None, format_: str) -> None:
    """Run postmortem on the samples that come along.

    On all of them, or on the one that is named.
    """
    from triage.commands import demo_cases, write_report

    loaded = None
    for case in demo_cases(name):
        loaded = loaded or _knowledge((), quiet=False)
        if format_ == "text":
            click.echo(f"==> {case.name}: {case.title}\n    $ {case.command()}\n")
        report = _run([str(case.bundle)], loaded, case.options(), quiet=True)
        write_report(report, format_, None)
        click.echo()


@main.command("report-schema")
def report_schema() -> None:
    """Print the JSON Schema of the report (triage.report/1)."""
    from triage.commands import schema_text

    click.echo(schema_text("report"), nl=False)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for the shell's completion.

    Use it with:  eval "$(triage completion bash)"
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        _stop(f"no completion for {shell}")
    click.echo(found(main, {}, "triage", "_TRIAGE_COMPLETE").source())


def _stop(message: str) -> NoReturn:
    raise TriageError(message)


def _name_variables(command: click.Command, prefix: str) -> None:
    """Every option can come from the environment: ``TRIAGE_POSTMORTEM_FAIL_ON`` for ``--fail-on``."""
    for param in command.params:
        if isinstance(param, click.Option) and param.name != "version":
            param.envvar = "_".join([prefix, *max(param.opts, key=len).strip("-").split("-")]).upper()
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            _name_variables(inner, f"{prefix}_{name}".replace("-", "_"))


_name_variables(main, "triage")
