"""Which files of a bundle are scripts that a schedule may run."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

SCRIPT: Final = re.compile(r"\.(?:sh|bash|zsh|ksh|py|pl|rb)(?:\.txt)?$")
_FOLDERS: Final = re.compile(
    r"(?:^|/)(?:opt|usr/local|s?bin|scripts?|cron\.(?:hourly|daily|weekly|monthly)|etc/cron\.(?:hourly|daily|weekly|monthly))/"
)


def wants_text(path: str) -> bool:
    """Say whether a file of a bundle (posix path) may be a script or table part that a schedule runs."""
    pure = PurePosixPath(path)
    if SCRIPT.search(pure.name):
        return True
    return pure.suffix in {"", ".txt"} and _FOLDERS.search(f"{pure.parent.as_posix()}/") is not None
