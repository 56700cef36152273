"""The reader for small inputs: Python's ``re``, so that a small bundle never pays for importing polars."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from triage.metrics import layouts
from triage.metrics.points import Key, Line, Points, Series, order

_LETTER = re.compile(r"[A-Za-z]")
_NAN = float("nan")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def contains(pattern: str, text: str) -> bool:
    """True if the pattern occurs in the text."""
    return _compiled(pattern).search(text) is not None


def value(text: str) -> float:
    """Convert a matched number: thousands commas, k and M suffixes, nan and inf."""
    return float(text.replace(",", "").replace("k", "e3").replace("K", "e3").replace("M", "e6"))


def matches(fields: Iterable[layouts.Field], text: str) -> dict[str, tuple[re.Match[str], float]]:
    """For each metric the first field that matches, and its scale."""
    out: dict[str, tuple[re.Match[str], float]] = {}
    for item in fields:
        if item.metric not in out and (found := _compiled(item.pattern).search(text)) and found[1] is not None:
            out[item.metric] = found, item.scale
    return out


def _numbers(fields: Iterable[layouts.Field], text: str) -> dict[str, float]:
    return {metric: value(found[1]) * scale for metric, (found, scale) in matches(fields, text).items()}


def _frames(lines: Iterable[Line]) -> Iterator[Line]:
    """Strip ANSI and give each carriage-return frame of a progress bar its own row."""
    for file, number, text, time in lines:
        clean = _compiled(layouts.ANSI).sub("", text) if "\x1b" in text else text
        for part in clean.replace("\n", "\r").split("\r"):
            yield file, number, part, time


def _joined(rows: Iterable[Line]) -> Iterator[Line]:
    """Put back together Megatron lines that a terminal wrapped over consecutive physical lines."""
    head: Line | None = None
    last = 0
    for row in rows:
        file, number, text, _ = row
        is_head = contains(layouts.WRAP_HEAD, text)
        if head is not None and not is_head and file == head[0] and number == last + 1:
            head = (file, head[1], _glue(head[2], text), head[3])
            last = number
            if contains(layouts.WRAP_END, head[2]):
                yield head
                head = None
            continue
        if head is not None:
            yield head
            head = None
        if is_head and not contains(layouts.WRAP_END, text):
            head, last = row, number
        else:
            yield row
    if head is not None:
        yield head


def _glue(left: str, right: str) -> str:
    """A wrap between two letters swallowed the blank; anywhere else the pieces belong together as they are."""
    gap = " " if left and right and _LETTER.match(left[-1]) and _LETTER.match(right[0]) else ""
    return left + gap + right


def _train(text: str) -> dict[str, float]:
    if layouts.MEGATRON_MARK not in text and contains(layouts.OVERFLOW, text):
        return {"overflow": _numbers(layouts.OVERFLOW_SCALES, text).get("overflow", _NAN)}
    out = {name: value(found[1]) * scale for name, (found, scale) in train_matches(text).items()}
    if layouts.MEGATRON_MARK in text and vanished(out, text):
        out["loss_missing"] = out.get("skipped_iterations", 0.0)
    return out


def train_matches(text: str) -> dict[str, tuple[re.Match[str], float]]:
    """Where the values of a metric line stand; what is not a point of the training series is left out."""
    if layouts.MEGATRON_MARK in text:
        return matches(layouts.MEGATRON, text)
    out = matches(layouts.GENERIC, text)
    counters: dict[str, tuple[re.Match[str], float]] = {name: out[name] for name in ("step", "epoch") if name in out}
    if contains(layouts.EVAL_LINE, text):
        return counters | ({"eval:loss": out["loss"]} if "loss" in out else {})
    measured = "step" in out and any(name in out for name in layouts.MEASURED)
    return out if "loss" in out or measured else counters


def vanished(values: Collection[str], text: str) -> bool:
    """True if a complete Megatron line carries no loss field."""
    return "loss" not in values and "loss:" not in text and "nan_iterations" in values


def _evals(text: str, has_loss: bool) -> dict[str, float]:
    out: dict[str, float] = {}
    if not contains(layouts.EVAL_HINT, text):
        return out
    for name, number in _compiled(layouts.EVAL_PAIR).findall(text):
        if contains(layouts.EVAL_NOT, name) or (has_loss and not contains(layouts.EVAL_PREFIX, name)):
            continue
        out.setdefault(f"eval:{name.strip()}", value(number))
    return out


def parse(lines: Iterable[Line]) -> Points:
    """Read points from metric lines; the same answer as :func:`triage.metrics.bulk.parse`."""
    series: dict[Key, Series] = {}
    for file, number, text, time in _joined(_frames(lines)):
        if contains(layouts.NOISE, text):
            continue
        values = _train(text)
        values.update(_evals(text, "loss" in values))
        step, epoch = values.pop("step", _NAN), values.pop("epoch", _NAN)
        if not values:
            continue
        place = {name: found[1] for name, (found, _) in matches(layouts.COMMON, text).items()}
        rank = int(place["rank"]) if "rank" in place else None
        for metric, number_ in values.items():
            key = Key(file, metric, rank, place.get("host"))
            into = series.setdefault(key, Series(key))
            into.epochs.append(epoch)
            into.steps.append(step)
            into.times.append(_NAN if time is None else time)
            into.values.append(number_)
            into.lines.append(number)
    return tuple(series[key] for key in sorted(series, key=order))
