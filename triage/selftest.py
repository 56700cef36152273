"""Signatures tested by their own examples: on our machines and on the author's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from triage.errors import Problem
from triage.matching import Unconfirmed, confirm, confirm_row
from triage.model import Scalar
from triage.peel import Peeler, strip_ansi
from triage.signature import Example, Signature
from triage.sources.base import Parsed, RowSource


def captures(
    signature: Signature, example: Example, peeler: Peeler, rows: Sequence[RowSource]
) -> Mapping[str, Scalar] | None:
    """Return what the signature captures from an example, or None if it does not match it."""
    if signature.where:
        for source in rows:
            if source.name in signature.sources and example.source in (None, source.name):
                for row in source.rows(example.text.splitlines()):
                    if (fields := confirm_row(signature, source.name, row)) is not None:
                        return fields
        return None
    for physical in example.text.split("\n"):
        line = strip_ansi(physical)
        parsed = peeler.peel(line)
        if example.origin is not None:
            parsed = Parsed(parsed.layout, parsed.source, example.origin, parsed.body, program=parsed.program)
        try:
            if (fields := confirm(signature, line, parsed)) is not None:
                return fields
        except Unconfirmed:
            return None
    return None


def check(signature: Signature, peeler: Peeler, rows: Sequence[RowSource]) -> Iterator[Problem]:
    """Yield a problem for every example that the signature treats wrongly."""
    for example in signature.matches:
        got = captures(signature, example, peeler, rows)
        if got is None:
            yield Problem(
                signature.path, example.line, 1, f"example is not matched by {signature.id}", example.text[:120]
            )
            continue
        for name, want in example.fields.items():
            if str(got.get(name)) != str(want):
                yield Problem(
                    signature.path, example.line, 1, f"example gives {name}={got.get(name)!r}, wanted {want!r}"
                )
    for example in signature.near_misses:
        if captures(signature, example, peeler, rows) is not None:
            yield Problem(signature.path, example.line, 1, f"near miss is matched by {signature.id}", example.why)


def overlaps(signatures: Iterable[Signature], peeler: Peeler, rows: Sequence[RowSource]) -> Iterator[Problem]:
    """Yield a problem for every example that another signature matches too, unless one of the two lists the overlap."""
    pool = list(signatures)
    for signature in pool:
        for example in signature.matches:
            for other in pool:
                if other is signature or other.id in signature.overlaps or signature.id in other.overlaps:
                    continue
                if captures(other, example, peeler, rows) is not None:
                    message = f"example of {signature.id} is matched by {other.id} too"
                    yield Problem(
                        signature.path,
                        example.line,
                        1,
                        message,
                        "narrow one of them, or list the other under 'overlaps'",
                    )
