"""Confirmation: does a peeled line, or a row, satisfy a signature in full, and what does it capture?"""

from __future__ import annotations

import re
from collections.abc import Mapping

from triage.model import Scalar
from triage.signature import Signature
from triage.sources.base import Parsed, Row

MATCH_TIMEOUT_S = 1.0
_INTEGERS = frozenset(
    """
    rank local_rank pg_rank task gpu pid errno signal exitcode seq last_enqueued last_completed last_started bytes
    xid dev nranks
    """.split()
)
_FLOATS = frozenset({"ran_for_ms", "ran_for_s", "seconds", "value"})
_PCI = re.compile(r"^(?:(?:0000)?([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?$")


class Unconfirmed(Exception):
    """The pattern ran out of time on this line: the hit is kept, marked unconfirmed."""


def normalise_pci(text: str) -> str:
    """Return ``dddd:bb:dd`` in lower case for any spelling of a PCI address (8-digit domain, function, bare bus id)."""
    text = text.strip().lower().removeprefix("pci:")
    if (found := _PCI.match(text)) is not None:
        return f"{found[1] or '0000'}:{found[2]}:{found[3]}"
    if re.fullmatch(r"[0-9a-f]{4,9}", text):  # NCCL busId: 9b000 = 0000:9b:00.0
        number = int(text, 16)
        return f"{number >> 20:04x}:{(number >> 12) & 0xFF:02x}:{(number >> 4) & 0xFF:02x}"
    return text


def convert(name: str, text: str) -> Scalar:
    """Give a capture its type: integers, floats and PCI addresses by name, text otherwise."""
    if name in _INTEGERS:
        try:
            return int(text)
        except ValueError:
            return None
    if name in _FLOATS:
        try:
            return float(text.replace(",", ""))
        except ValueError:
            return None
    return normalise_pci(text) if name == "pci" else text.strip()


def confirm(signature: Signature, line: str, parsed: Parsed) -> dict[str, Scalar] | None:
    """Return the captures if the line is the signature's, else None. ``line`` is decoded and free of ANSI.

    Raises :class:`Unconfirmed` when a pattern exceeds its time.
    """
    if not signature.accepts(parsed.origin, parsed.program):
        return None
    try:
        for pattern in signature.compiled_not:
            if pattern.search(line, timeout=MATCH_TIMEOUT_S):
                return None
        for pattern, text in zip(signature.compiled, signature.patterns, strict=True):
            subject = parsed.body if text.startswith("^") or text.endswith("$") else line
            if (found := pattern.search(subject, timeout=MATCH_TIMEOUT_S)) is not None:
                return {k: convert(k, v) for k, v in found.groupdict().items() if v is not None}
    except TimeoutError as err:
        raise Unconfirmed(signature.id) from err
    return None


def confirm_row(signature: Signature, source: str, row: Row) -> Mapping[str, Scalar] | None:
    """Return the row's fields (and the captures of ``patterns`` on its text) if it satisfies the signature, else None."""
    if not signature.where or source not in signature.sources:
        return None
    if not all(test.holds(row.fields) for test in signature.where):
        return None
    fields = dict(row.fields)
    if signature.patterns:
        found = next((m for p in signature.compiled if (m := p.search(row.text, timeout=MATCH_TIMEOUT_S))), None)
        if found is None:
            return None
        fields.update({k: convert(k, v) for k, v in found.groupdict().items() if v is not None})
    return fields
