"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

more_signatures = click.option(
    "--signatures",
    "signature_dirs",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="More signatures (file or folder).",
)
