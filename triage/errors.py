"""Errors that a user can act on: always a place, what is wrong, and a hint.

Three kinds of failure, three treatments. An author's mistake (signature, playbook) is a :class:`Problem`; all of
them are collected and shown. Bad input is never raised: it is counted in the coverage of the report. A bug is a
traceback.
"""

from __future__ import annotations

from dataclasses import dataclass


class TriageError(Exception):
    """Base of every error the command line shows without a traceback."""


class UsageError(TriageError):
    """The call cannot be carried out as it stands (exit code 2)."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in an author's file.

    ``line`` and ``column`` count from 1; 0 means the file as a whole.
    """

    path: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        return f"{place}: {self.message}" + (f"\n    hint: {self.hint}" if self.hint else "")
