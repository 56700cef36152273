"""Manners of signature files beyond loading; each check is one small function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.errors import Problem
from triage.patterns import unbounded_gaps
from triage.signature import Signature
from triage.vocabulary import CLASSES, Role, Status

_PRIVATE = re.compile(
    r"\b(?:192\.0\.2|198\.51\.100|203\.0\.113|127\.0\.0|0\.0\.0|169\.254|10|192\.168|172\.(?:1[6-9]|2\d|3[01])|255\.255|224\.0)\."
)
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_CHAT = re.compile(r"as an ai|certainly!|here is|i cannot|chatgpt|claude", re.I)
_LITERAL = re.compile(r"[A-Za-z0-9_ :./-]{4,}")
_SILENT = frozenset({Role.CONTEXT, Role.BENIGN, Role.ADVICE})


def check(signatures: Sequence[Signature], every: Iterable[Signature] = ()) -> list[Problem]:
    """Return the problems of ``signatures``; ``every`` are all loaded ones, for checks that look at the whole."""
    del every
    return sorted(problem for signature in signatures for one in CHECKS for problem in one(signature))


def _problem(signature: Signature, message: str, hint: str = "", line: int = 1) -> Problem:
    return Problem(signature.path, line, 1, f"{signature.id}: {message}", hint)


def silent_roles_speak_for_nothing(signature: Signature) -> Iterator[Problem]:
    """Benign and advice lines belong to no class, evidence belongs to one."""
    if signature.role in (Role.BENIGN, Role.ADVICE) and signature.class_ != "none":
        yield _problem(signature, f"role {signature.role.value} with class {signature.class_}", "use class: none")
    if signature.role not in _SILENT and signature.class_ not in CLASSES:
        yield _problem(signature, f"role {signature.role.value} without a class", "name the failure it speaks for")


def gaps_are_bounded(signature: Signature) -> Iterator[Problem]:
    """An unbounded dot runs over a megabyte line."""
    for pattern in signature.patterns:
        for gap in unbounded_gaps(pattern):
            yield _problem(signature, f"unbounded gap {gap!r}", "write .{0,400}")


def patterns_hold_fixed_text(signature: Signature) -> Iterator[Problem]:
    """The scanner lives on literals."""
    for pattern in signature.patterns:
        if not signature.where and not _LITERAL.search(
            re.sub(r"\(\?P<\w+>|\\[a-zA-Z]|[()|?*+{}\[\]]", "\x00", pattern).replace("\\", "")
        ):
            yield _problem(
                signature, f"no fixed text of four characters in {pattern!r}", "add words the emitter always prints"
            )


def stable_means_proven(signature: Signature) -> Iterator[Problem]:
    """Stable signatures show three lines."""
    if signature.status is Status.STABLE and len(signature.matches) < 3 and signature.condition is None:
        yield _problem(signature, "status stable with fewer than three examples", "use status: test")


def references_are_bare(signature: Signature) -> Iterator[Problem]:
    """A reference names a project and a file; it is no prose and no transcript."""
    for reference in signature.references:
        if len(reference) > 240 or _CHAT.search(reference):
            yield _problem(signature, f"reference is not a bare source: {reference[:60]!r}", "project, file, versions")
    if len(set(signature.references)) < len(signature.references):
        yield _problem(signature, "a reference is listed twice")


def examples_use_invented_addresses(signature: Signature) -> Iterator[Problem]:
    """Examples carry documentation or private addresses only."""
    for example in (*signature.matches, *signature.near_misses):
        for address in _IP.findall(example.text):
            if not _PRIVATE.match(address) and not re.search(
                r"(?:version|v|driver|fw|rev)[ .:]*" + re.escape(address), example.text, re.I
            ):
                octets = [int(o) for o in address.split(".")]
                if all(o < 256 for o in octets) and octets[0] > 20:
                    yield _problem(
                        signature, f"example names a public address {address}", "use 192.0.2.x", example.line
                    )


CHECKS: tuple[Callable[[Signature], Iterator[Problem]], ...] = (
    silent_roles_speak_for_nothing,
    gaps_are_bounded,
    patterns_hold_fixed_text,
    stable_means_proven,
    references_are_bare,
    examples_use_invented_addresses,
)
