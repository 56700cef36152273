"""The command groups ``triage signatures`` and ``triage playbooks``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from triage.cli_options import more_signatures


@click.group()
def signatures() -> None:
    """List, show, test, lint and start signatures."""


@signatures.command("list")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "patterns"]),
    default="text",
    show_default=True,
    help="How to list them.",
)
@click.option("--class", "class_", help="Only this failure class.")
@more_signatures
def signatures_list(format_: str, class_: str | None, signature_dirs: tuple[Path, ...]) -> None:
    """List signatures; ``--format patterns`` prints ripgrep-compatible forms, one a line."""
    from triage.commands import list_signatures

    for line in list_signatures(signature_dirs, format_, class_):
        click.echo(line)


@signatures.command("show")
@click.argument("name")
@more_signatures
def signatures_show(name: str, signature_dirs: tuple[Path, ...]) -> None:
    """Show one signature: its file, or one row of its code table (gpu-xid/79)."""
    from triage.commands import show_signature

    click.echo(show_signature(name, signature_dirs))


@signatures.command("test")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
def signatures_test(paths: tuple[Path, ...]) -> None:
    """Run the examples of signature files (default: all of ours). Exit code 1 if one fails."""
    from triage.commands import test_signatures

    _problems(test_signatures(paths))


@signatures.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
def signatures_lint(paths: tuple[Path, ...]) -> None:
    """Check the manners of signature files: examples, overlaps, gaps, references. Exit code 1 if one has a problem."""
    from triage.commands import lint_signatures

    _problems(lint_signatures(paths))


def _problems(found: tuple[list[Any], str]) -> None:
    problems, summary = found
    for problem in problems:
        click.echo(str(problem))
    click.echo(summary)
    if problems:
        sys.exit(1)


@signatures.command("new")
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default=True,
    help="Where to write it.",
)
def signatures_new(name: str, folder: Path) -> None:
    """Write a template that loads as soon as its blanks are filled."""
    from triage.commands import new_signature

    click.echo(f"written: {new_signature(name, folder)}")


@signatures.command("schema")
def signature_schema() -> None:
    """Print the JSON Schema of signature files, for editors."""
    from triage.commands import schema_text

    click.echo(schema_text("signature"))


@click.group()
def playbooks() -> None:
    """List and show playbooks, one per failure class."""


@playbooks.command("list")
def playbooks_list() -> None:
    """List the failure classes."""
    from triage.commands import list_playbooks

    for line in list_playbooks():
        click.echo(line)


@playbooks.command("show")
@click.argument("class_", metavar="CLASS")
def playbooks_show(class_: str) -> None:
    """Show the playbook of a class."""
    from triage.commands import show_playbook

    click.echo(show_playbook(class_))
