"""The fast path of the bulk reader: rows that differ from a row read before in nothing but their digits.

No pattern of the table tells one digit from another, so such rows carry their values at the same byte offsets. They
are laid side by side as a matrix of bytes and their numbers computed column by column. What fits no frequent template
goes back to the regular expressions. Three times faster than those on Megatron lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from triage.metrics import layouts, plain

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Doubles = NDArray[np.float64]

LEAST_ROWS = 64  # below this a template does not pay
MOST_TEMPLATES = 24  # per line length
_NUMBER = re.compile(r"([-+]?)([0-9,]*)(?:\.([0-9]*))?(?:[eE]([-+]?)([0-9]+))?([kKM]?)$")
_DIGITS_ALIKE = bytes(ord("0") if chr(byte).isdecimal() else byte for byte in range(256))
_SUFFIX = {"": 0, "k": 3, "K": 3, "M": 6}


@dataclass(frozen=True, slots=True)
class Slot:
    """Bytes ``start`` to ``end`` of a row hold a number, times ``scale``; an empty slot is the constant 0."""

    start: int
    end: int
    scale: float


@dataclass(frozen=True, slots=True)
class Template:
    """Where the values of a row stand. ``exact`` is a byte range that must not even differ in digits (the host)."""

    slots: dict[str, Slot]
    exact: tuple[int, int] | None = None
    host: str | None = None


def induce(text: str) -> Template | None:
    """Read one row by the regular expressions; None if rows of its kind need them each."""
    if not text.isascii() or plain.contains(layouts.EVAL_HINT, text):
        return None
    if plain.contains(layouts.NOISE, text):
        return Template({})
    if layouts.MEGATRON_MARK not in text and plain.contains(layouts.OVERFLOW, text):
        return None
    found = plain.train_matches(text)
    slots = {name: Slot(*match.span(1), scale) for name, (match, scale) in found.items()}
    if layouts.MEGATRON_MARK in text and plain.vanished(found, text):
        slots["loss_missing"] = slots.get("skipped_iterations", Slot(0, 0, 1.0))
    common = plain.matches(layouts.COMMON, text)
    if "rank" in common:
        slots["rank"] = Slot(*common["rank"][0].span(1), 1.0)
    if any(_NUMBER.match(text[slot.start : slot.end]) is None and not _word(text, slot) for slot in slots.values()):
        return None
    if "host" in common:
        return Template(slots, common["host"][0].span(1), common["host"][0][1])
    return Template(slots)


def _word(text: str, slot: Slot) -> bool:
    """True for nan and inf, which hold no digits and are the same in all rows of a template."""
    return text[slot.start : slot.end].lstrip("+-").lower() in ("nan", "inf", "infinity")


def read(rows: pl.DataFrame) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Split rows (row, file, line, text, time) into frames with values and the rest that needs regular expressions."""
    import polars as pl

    done: list[pl.DataFrame] = []
    rest: list[pl.DataFrame] = []
    for same in rows.with_columns(_len=pl.col("text").str.len_bytes()).partition_by("_len", maintain_order=True):
        length, part = same["_len"][0], same.drop("_len")
        if part.height < LEAST_ROWS or length == 0:
            rest.append(part)
        else:
            _part(part, length, done, rest)
    return done, (pl.concat(rest).sort("row") if rest else rows.clear())


def _part(part: pl.DataFrame, length: int, done: list[pl.DataFrame], rest: list[pl.DataFrame]) -> None:
    """Rows of one length: peel off one template after the other."""
    import numpy as np

    joined = part["text"].str.join("").item().encode()
    matrix = np.frombuffer(joined, dtype=np.uint8).reshape(-1, length)
    # As strings of fixed width the rows compare with early exit, many times faster than a matrix does.
    shapes = np.frombuffer(joined.translate(_DIGITS_ALIKE), dtype=f"S{length}")
    left, place = np.arange(part.height), part.drop("text")
    for _ in range(MOST_TEMPLATES):
        if len(left) < LEAST_ROWS:
            break
        first = left[len(left) // 2]  # most likely one of the many
        template = induce(bytes(matrix[first]).decode("utf-8", "replace"))
        same = (shapes if len(left) == part.height else shapes[left]) == shapes[first]
        if template is not None and template.exact is not None:
            start, end = template.exact
            same &= (matrix[left, start:end] == matrix[first, start:end]).all(axis=1)
        hits, left = left[same], left[~same]
        if template is None or len(hits) < LEAST_ROWS:
            rest.append(part[hits])
        elif template.slots:
            done.append(_values(place if len(hits) == part.height else place[hits], matrix, hits, template))
    if len(left):
        rest.append(part[left])


def _values(place: pl.DataFrame, matrix: Bytes, hits: NDArray[np.int64], template: Template) -> pl.DataFrame:
    import polars as pl

    cells = {name: matrix[hits, slot.start : slot.end] for name, slot in template.slots.items()}
    columns = [pl.Series(name, _column(cells[name], slot)) for name, slot in template.slots.items()]
    named = place.with_columns(pl.lit(template.host, dtype=pl.String).alias("host"), *columns)
    rank = pl.col("rank") if "rank" in named.columns else pl.lit(None).alias("rank")
    return named.with_columns(rank.cast(pl.Int64))


def _column(cells: Bytes, slot: Slot) -> Doubles:
    """The numbers in one range of bytes, rounded as ``float`` rounds them."""
    import numpy as np

    if slot.start == slot.end:
        return np.zeros(len(cells))
    text = bytes(cells[0]).decode()
    form = _NUMBER.match(text)
    if form is None:
        return np.full(len(cells), float(text) * slot.scale)
    sign, whole, fraction, exponent_sign, exponent, suffix = form.groups("")
    digits = len(whole.replace(",", "")) + len(fraction)
    if digits > 15 or len(exponent) > 2:
        return _slow_column(cells, suffix) * slot.scale
    at = len(sign)
    mantissa = _integer(cells[:, at : at + len(whole)])
    at += len(whole) + ("." in text)
    mantissa = mantissa * 10 ** len(fraction) + _integer(cells[:, at : at + len(fraction)])
    power = np.full(len(cells), _SUFFIX[suffix] - len(fraction), dtype=np.int64)
    if exponent:
        at = len(text) - len(suffix) - len(exponent)
        power += _integer(cells[:, at : at + len(exponent)]) * (-1 if exponent_sign == "-" else 1)
    if np.abs(power).max() > 22:  # 10**23 is not exact in a double
        return _slow_column(cells, suffix) * slot.scale
    number = mantissa.astype(np.float64)
    scaled = np.where(power < 0, number / 10.0 ** np.abs(power), number * 10.0 ** np.abs(power))
    signed: Doubles = -scaled if sign == "-" else scaled
    return signed * slot.scale


def _integer(cells: Bytes) -> NDArray[np.int64]:
    """Digits of each row as an integer; commas are skipped."""
    import numpy as np

    total = np.zeros(len(cells), dtype=np.int64)
    for column in range(cells.shape[1]):
        if cells[0, column] != ord(","):
            total = total * 10 + (cells[:, column] - ord("0"))
    return total


def _slow_column(cells: Bytes, suffix: str) -> Doubles:
    import numpy as np

    width = cells.shape[1]
    texts = np.ascontiguousarray(cells).view(f"S{width}").ravel()
    if suffix or (cells[0] == ord(",")).any():
        return np.array([plain.value(text.decode()) for text in texts])
    return texts.astype(np.float64)
