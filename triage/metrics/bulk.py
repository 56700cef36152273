"""The reader for large inputs: polars expressions only, no Python per line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from triage.metrics import layouts, templates
from triage.metrics.points import Key, Line, Points, Series, order

if TYPE_CHECKING:
    import polars as pl

CHUNK_LINES = 250_000
_PLACE = ("file", "line", "time", "rank", "host", "step", "epoch")


def frame(lines: Iterable[Line] | pl.DataFrame) -> pl.DataFrame:
    """Return the lines as a frame with the columns file, line, text, time (epoch seconds)."""
    import polars as pl

    if isinstance(lines, pl.DataFrame):
        named = lines.rename(dict(zip(lines.columns, ("file", "line", "text", "time"), strict=True)))
    else:
        schema = {"file": pl.String, "line": pl.Int64, "text": pl.String, "time": pl.Float64}
        named = pl.DataFrame(list(lines), schema=schema, orient="row")
    return named.with_columns(pl.col("line").cast(pl.Int64), pl.col("time").cast(pl.Float64))


def parse(lines: Iterable[Line] | pl.DataFrame) -> Points:
    """Read points from metric lines; the same answer as :func:`triage.metrics.plain.parse`."""
    rows = _joined(_frames(frame(lines))).with_row_index("row")
    series: dict[Key, Series] = {}
    chunks = (rows.slice(start, CHUNK_LINES) for start in range(0, rows.height, CHUNK_LINES))
    with ThreadPoolExecutor(max_workers=2) as pool:
        for parts in pool.map(_wide, chunks):
            _store(parts, series)
    return tuple(series[key] for key in sorted(series, key=order))


def _frames(rows: pl.DataFrame) -> pl.DataFrame:
    """Strip ANSI and give each carriage-return frame of a progress bar its own row."""
    import polars as pl

    text = pl.col("text")
    if rows.select(text.str.contains("\x1b", literal=True).any()).item():
        rows = rows.with_columns(text.str.replace_all(layouts.ANSI, ""))
    if rows.select(text.str.contains("[\r\n]").any()).item():
        rows = rows.with_columns(text.str.replace_all("\n", "\r", literal=True).str.split("\r")).explode("text")
    return rows


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Put back together Megatron lines that a terminal wrapped over consecutive physical lines."""
    import polars as pl

    text = pl.col("text")
    marked = rows.filter(text.str.contains(layouts.WRAP_MARK, literal=True)).select(
        text.str.contains(layouts.WRAP_END).all()
    )
    if marked.item():
        return rows
    rows = rows.with_columns(head=text.str.contains(layouts.WRAP_HEAD))
    open_head = pl.col("head") & ~text.str.contains(layouts.WRAP_END)
    rows = rows.with_columns(open=open_head, end=text.str.contains(layouts.WRAP_END), at=pl.int_range(pl.len()))
    follows = (
        (pl.col("line") == pl.col("line").shift(1) + 1) & (pl.col("file") == pl.col("file").shift(1)) & ~pl.col("head")
    )
    # A run is a row and the rows that follow it without a break; what lies between an open head and its end is glued.
    rows = rows.with_columns(run=(~follows.fill_null(False)).cum_sum(), gap=_gap().fill_null(""))
    inside = pl.col("open").first().over("run") & (
        pl.col("end").cast(pl.Int32).cum_sum().over("run") - pl.col("end").cast(pl.Int32) == 0
    )
    rows = rows.with_columns(
        group=pl.when(inside).then(-pl.col("run").cast(pl.Int64)).otherwise(pl.col("at").cast(pl.Int64))
    )
    first = pl.int_range(pl.len()).over("group") == 0
    rows = rows.with_columns(text=pl.when(first).then(text).otherwise(pl.col("gap") + text))
    return (
        rows.group_by("group", maintain_order=True)
        .agg(pl.col("file", "line").first(), text.str.join(""), pl.col("time").first())
        .drop("group")
    )


def _gap() -> pl.Expr:
    import polars as pl

    text = pl.col("text")
    letters = text.shift(1).str.contains("[A-Za-z]$") & text.str.contains("^[A-Za-z]")
    return pl.when(letters).then(pl.lit(" ")).otherwise(pl.lit(""))


def _number(text: pl.Expr) -> pl.Expr:
    import polars as pl

    plain = (
        text.str.replace_all(",", "", literal=True)
        .str.replace_all("[kK]", "e3")
        .str.replace_all("M", "e6", literal=True)
    )
    return plain.cast(pl.Float64, strict=False)


def _columns(fields: Sequence[layouts.Field], *, numeric: bool = True) -> list[pl.Expr]:
    import polars as pl

    out: list[pl.Expr] = []
    for metric in dict.fromkeys(item.metric for item in fields):
        found = [(pl.col("text").str.extract(item.pattern, 1), item.scale) for item in fields if item.metric == metric]
        values = [_number(text) * scale if numeric else text for text, scale in found]
        out.append(pl.coalesce(values).alias(metric))
    return out


def _wide(rows: pl.DataFrame) -> list[pl.DataFrame]:
    quick, rest = templates.read(rows)
    return [*quick, *(_slow(rest) if rest.height else [])]


def _slow(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Read rows by regular expressions: one wide frame per kind of line."""
    import polars as pl

    text = pl.col("text")
    rows = rows.filter(~text.str.contains(layouts.NOISE))
    megatron, overflow = text.str.contains(layouts.MEGATRON_MARK, literal=True), text.str.contains(layouts.OVERFLOW)
    rows = rows.with_columns(kind=pl.when(megatron).then(1).when(overflow).then(2).otherwise(3))
    readers = {1: _megatron, 2: _overflow, 3: _generic}
    parts = [readers[kind](rows.filter(pl.col("kind") == kind)) for kind in rows["kind"].unique().sort()]
    wide = [part.drop("kind").with_columns(_columns(layouts.COMMON, numeric=False)) for part in parts]
    wide = [part.with_columns(pl.col("rank").cast(pl.Int64)) for part in wide]
    return [*wide, *(found for part in wide for found in _evals(part.with_columns(_or_null(part, "loss"))))]


def _store(parts: list[pl.DataFrame], series: dict[Key, Series]) -> None:
    """Append the points of one piece of the input, in line order, to ``series``."""
    import polars as pl

    by_place: dict[tuple[str, int | None, str | None], list[pl.DataFrame]] = {}
    for part in parts:
        place = part.select("file", "rank", "host")
        single = all(place[name].n_unique() == 1 for name in place.columns)
        for piece in [part] if single else part.partition_by("file", "rank", "host", maintain_order=True):
            if piece.height:
                by_place.setdefault(piece.select("file", "rank", "host").row(0), []).append(piece)
    for (file, rank, host), pieces in by_place.items():
        metrics = dict.fromkeys(
            name for piece in pieces for name in piece.columns if name not in (*_PLACE, "row", "text")
        )
        for metric in metrics:
            found = [_points(piece, metric) for piece in pieces if metric in piece.columns]
            points = pl.concat(found).sort("row") if len(found) > 1 else found[0]
            if points.height:
                _append(points, series.setdefault(key := Key(file, metric, rank, host), Series(key)))


def _points(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    import polars as pl

    chosen = rows if rows[metric].null_count() == 0 else rows.filter(pl.col(metric).is_not_null())
    return chosen.select("row", "line", "time", _or_null(rows, "step"), _or_null(rows, "epoch"), value=metric)


def _append(points: pl.DataFrame, into: Series) -> None:
    columns = ((into.epochs, "epoch"), (into.steps, "step"), (into.times, "time"), (into.values, "value"))
    for column, name in columns:
        column.frombytes(points[name].fill_null(float("nan")).to_numpy().tobytes())
    into.lines.frombytes(points["line"].to_numpy().tobytes())


def _or_null(rows: pl.DataFrame, name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name) if name in rows.columns else pl.lit(None, dtype=pl.Float64).alias(name)


def _megatron(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    rows = rows.with_columns(_columns(layouts.MEGATRON))
    named = pl.col("text").str.contains("loss:", literal=True)
    vanished = pl.col("loss").is_null() & ~named & pl.col("nan_iterations").is_not_null()
    return rows.with_columns(loss_missing=pl.when(vanished).then(pl.col("skipped_iterations").fill_null(0.0)))


def _overflow(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return rows.with_columns(_columns(layouts.OVERFLOW_SCALES)).with_columns(pl.col("overflow").fill_null(float("nan")))


def _generic(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    rows = rows.with_columns(_columns(layouts.GENERIC))
    metrics = [n for n in dict.fromkeys(item.metric for item in layouts.GENERIC) if n not in ("step", "epoch")]
    measured = pl.any_horizontal(pl.col(layouts.MEASURED).is_not_null())
    keep = pl.col("loss").is_not_null() | (pl.col("step").is_not_null() & measured)
    evaluated = pl.col("text").str.contains(layouts.EVAL_LINE)
    return rows.with_columns(
        pl.when(evaluated).then(pl.col("loss")).alias("eval:loss"),
        *(pl.when(keep & ~evaluated).then(pl.col(name)).alias(name) for name in metrics),
    )


def _evals(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Return evaluation metrics, one frame with one metric column each; such lines are few and their names are free."""
    import polars as pl

    rows = rows.filter(pl.col("text").str.contains(layouts.EVAL_HINT))
    pair, name = pl.col("pair"), pl.col("name")
    pairs = (
        rows.with_columns(pair=pl.col("text").str.extract_all(layouts.EVAL_PAIR))
        .explode("pair")
        .filter(pair.is_not_null())
    )
    pairs = pairs.with_columns(
        name=pair.str.extract(layouts.EVAL_PAIR, 1), value=_number(pair.str.extract(layouts.EVAL_PAIR, 2))
    )
    prefixed = pl.col("loss").is_null() | name.str.contains(layouts.EVAL_PREFIX)
    pairs = pairs.filter(name.is_not_null() & ~name.str.contains(layouts.EVAL_NOT) & prefixed)
    pairs = pairs.unique(["row", "name"], keep="first", maintain_order=True)
    place = ["row", *_PLACE[:5], *(n for n in _PLACE[5:] if n in pairs.columns)]
    return [
        part.select(*place, pl.col("value").alias(f"eval:{part['name'][0]}"))
        for part in pairs.partition_by("name", maintain_order=True)
    ]
