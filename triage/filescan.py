"""One file -> what it says: confirmed hits, rows, metric lines, samples for the clock, and what was read of it.

Pure with respect to other files, so that files (and later byte ranges) can be scanned anywhere and reduced afterwards.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from triage.block import SMALL_BYTES, TEXT_LIMIT, Block
from triage.engine import Engine
from triage.facts import LIMIT as FACT_LIMIT
from triage.matching import MATCH_TIMEOUT_S, Unconfirmed, confirm, confirm_row
from triage.model import Scalar
from triage.peel import Peeler, strip_ansi
from triage.plan import FACT, METRIC, SIGNATURE, TRIGGER, Plan
from triage.reading import Piece, line_at
from triage.signature import Signature
from triage.sources.base import Parsed, Row, RowSource
from triage.vocabulary import Origin

CONFIRM_LIMIT = 10_000  # confirmations per signature and file
KEEP_FIRST, KEEP_LAST = 200, 50
SAMPLE_LINES = 40
SPAN = 4096
SNIFF_CHARS = 8192
LOG_LINES = 2000  # a longer file whose lines carry times is a log, no dump
METRIC_TARGET, FACT_TARGET = (METRIC, 0), (FACT, 0)
_END = itemgetter(1)
METRIC_LIMIT = 2_000_000
PLACE_CAPTURES = (
    "host",
    "rank",
    "pg_rank",
    "local_rank",
    "task",
    "gpu",
    "pci",
    "nic",
    "nvme",
    "dimm",
    "path",
    "server",
    "peer",
    "command",
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One confirmed line of a signature. ``near`` is the last stamped line at or above it (its own when it has one)."""

    signature: Signature
    line: int
    text: str
    parsed: Parsed
    fields: Mapping[str, Scalar]
    near: tuple[int, Parsed] | None = None
    unconfirmed: bool = False
    index: int = -1


@dataclass(slots=True)
class Tally:
    """Hits of one signature at one place of a file: an exact count, the first 200 and the last 50."""

    count: int = 0
    first: list[Hit] = field(default_factory=list)
    last: deque[Hit] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    lower_bound: bool = False

    def add(self, hit: Hit) -> None:
        """Count a hit and keep it if it is among the first or, so far, the last."""
        self.count += 1
        (self.first if len(self.first) < KEEP_FIRST else self.last).append(hit)

    def hits(self) -> Iterator[Hit]:
        """Yield the kept hits in file order."""
        yield from self.first
        yield from self.last


@dataclass(slots=True)
class FileScan:
    """What one file says. ``samples`` are (line number, peeled line) pairs in line order; ``lines`` is a line count.

    ``metrics`` are (line number, text) of metric lines; ``anchors`` the stamped ones among a sample of them.
    """

    path: str
    size: int = 0
    mtime: float | None = None
    lines: int = 0
    undated: int = 0
    skipped: str | None = None
    samples: list[tuple[int, Parsed]] = field(default_factory=list)
    tallies: dict[tuple[str, tuple[Scalar, ...]], Tally] = field(default_factory=dict)
    rows: list[tuple[str, Row, tuple[int, Parsed] | None]] = field(default_factory=list)
    metrics: list[tuple[int, str]] = field(default_factory=list)
    anchors: list[tuple[int, Parsed]] = field(default_factory=list)
    facts: list[tuple[int, str]] = field(default_factory=list)
    benign: int = 0
    unconfirmed: int = 0

    def majority(self, name: str) -> str | None:
        """Return the commonest value of a :class:`Parsed` attribute among the samples."""
        found = Counter(value for _, parsed in self.samples if (value := getattr(parsed, name)) not in (None, ""))
        return str(found.most_common(1)[0][0]) if found else None


class FileScanner:
    """Scans the pieces of one file. Not shared between threads: it holds a scratch and a peeler.

    ``thorough`` peels every line of small files; else 40 lines at each end of a piece are sampled.
    """

    def __init__(self, plan: Plan, peeler: Peeler | None = None, *, thorough: bool = True) -> None:
        self._plan = plan
        self._thorough = thorough
        self._engine = plan.engine.clone()
        self._peeler = peeler or Peeler(plan.lines, plan.heads)

    def scan(self, scan: FileScan, pieces: Iterable[Piece]) -> FileScan:
        """Fill ``scan`` from ``pieces``. Whatever the bytes are, nothing is raised but what reading raises."""
        state = _State(scan, self._plan, self._peeler, thorough=self._thorough)
        try:
            for piece in pieces:
                state.block(piece, self._engine)
        finally:
            state.finish()
        return scan


class _State:
    """The running part of one file's scan."""

    def __init__(self, scan: FileScan, plan: Plan, peeler: Peeler, *, thorough: bool) -> None:
        self.out = scan
        self.thorough = thorough
        self.plan = plan
        self.peeler = peeler
        self.confirmed: Counter[int] = Counter()
        self.accepted: Counter[int] = Counter()
        self.long_line = 0  # the line that a partial piece began, and what was found on it so far
        self.on_long_line: set[tuple[int, int]] = set()
        self.near: tuple[int, Parsed] | None = None
        self.stamped = self.sampled = 0
        self.latest: dict[int, Tally] = {}
        self.dump_text: list[bytes] | None = []

    def block(self, piece: Piece, engine: Engine) -> None:
        raw = piece.data if isinstance(piece.data, bytes) else bytes(piece.data)
        if piece.first_line != self.long_line:
            self.long_line = piece.first_line if piece.partial else 0
            self.on_long_line.clear()
        data = Block(raw, piece.first_line, self.peeler)
        lines = raw.count(b"\n") + (0 if raw.endswith(b"\n") or piece.partial else 1)
        self.out.lines = piece.first_line - 1 + max(lines, 1)
        self._sample(data, lines)
        if self.dump_text is not None:
            self.dump_text.append(raw)
            if sum(map(len, self.dump_text)) > 32 * SMALL_BYTES:
                self.dump_text = None
        self._candidates(data, sorted(engine.candidates(data.scanned), key=_END))

    def _sample(self, data: Block, lines: int) -> None:
        """Peel every line of a small block of a small bundle, else its first and last ones."""
        numbers: Iterable[int] = range(lines)
        whole = self.thorough and len(data.raw) <= SMALL_BYTES
        if not whole:
            numbers = [*range(min(SAMPLE_LINES, lines)), *range(max(SAMPLE_LINES, lines - SAMPLE_LINES), lines)]
        texts = data.raw.split(b"\n") if whole else None
        for number in numbers:
            parsed = data.parsed_line(number) if texts is None else data.keep(number, texts[number])
            self.out.samples.append((data.first_line + number, parsed))
            self.sampled += 1
            self.stamped += parsed.stamp is not None or parsed.uptime_s is not None

    def _candidates(self, data: Block, found: Sequence[tuple[int, int]]) -> None:
        """Confirm candidates line by line: all targets of one line together, so that benign look-alikes can veto."""
        line_stop = -1
        targets: dict[tuple[int, int], int] = {}
        start = 0
        for number, end in found:
            if end - 1 > line_stop and targets:
                self._line(data, start, line_stop, targets)
                targets = {}
            if end - 1 > line_stop:
                start, line_stop = line_at(data.scanned, end)
            targets.setdefault(self.plan.targets[number], end)
        if targets:
            self._line(data, start, line_stop, targets)

    def _line(self, data: Block, start: int, stop: int, targets: dict[tuple[int, int], int]) -> None:
        number = data.number_at(start)
        long_line = data.first_line + number == self.long_line
        if long_line:  # pieces of one line overlap, and a pattern counts once a line
            targets = {target: end for target, end in targets.items() if target not in self.on_long_line}
            self.on_long_line.update(target for target in targets if target[0] != SIGNATURE)
        self._note(data, number, start, stop, targets)
        if not targets:
            return
        wanted = sorted(targets)
        line = strip_ansi(_window(data.scanned, start, stop, targets[wanted[0]]))
        wanted = [w for w in wanted if w[0] != SIGNATURE or self.plan.signatures[w[1]].may_match(line)]
        if all(kind == SIGNATURE and self.accepted[index] >= CONFIRM_LIMIT for kind, index in wanted):
            for _, index in wanted:
                self._count_only(index, line)
            return
        if all(kind == SIGNATURE and index in self.plan.benign for kind, index in wanted):
            self.out.benign += len(wanted)
            return
        self._judge(data, number, line, wanted)

    def _note(self, data: Block, number: int, start: int, stop: int, targets: dict[tuple[int, int], int]) -> None:
        """Keep metric lines and facts as text, and take them off the targets."""
        if targets.pop(METRIC_TARGET, None) is not None:
            self._metric(data, number, start, stop)
        end = targets.pop(FACT_TARGET, None)
        if end is not None and len(self.out.facts) < FACT_LIMIT:
            self.out.facts.append((data.first_line + number, _window(data.scanned, start, stop, end)))

    def _judge(self, data: Block, number: int, line: str, wanted: Sequence[tuple[int, int]]) -> None:
        """Confirm what may match a line, now with its prefixes, and read the rows it triggers."""
        parsed = data.parsed_line(number)
        if parsed.body.startswith("    ") and number and _is_frame(data.parsed_line(number - 1).body):
            return  # a line of source code that a traceback shows
        near = data.stamped_above(number) or self.near
        self.near = near
        indices = [index for kind, index in wanted if kind == SIGNATURE]
        hits = [hit for index in indices if (hit := self._confirm(index, line, parsed, data, number, near))]
        if data.first_line + number == self.long_line:
            self.on_long_line.update((SIGNATURE, hit.index) for hit in hits)
        self._keep(hits)
        for kind, index in wanted:
            if kind == TRIGGER:
                self._rows(self.plan.triggered[index], data, number, near)

    def _metric(self, data: Block, number: int, start: int, stop: int) -> None:
        """Note a metric line; peel every one of the first thousand, then every 32nd, to date the others between."""
        count = len(self.out.metrics)
        if count >= METRIC_LIMIT:
            return
        text = bytes(data.scanned[start : min(stop, start + TEXT_LIMIT)]).decode("utf-8", "replace")
        self.out.metrics.append((data.first_line + number, text))
        if count < 1000 or count % 32 == 0:
            parsed = data.parsed_line(number)
            if parsed.stamp is not None:
                self.out.anchors.append((data.first_line + number, parsed))

    def _confirm(
        self, index: int, line: str, parsed: Parsed, data: Block, number: int, near: tuple[int, Parsed] | None
    ) -> Hit | None:
        signature = self.plan.signatures[index]
        if self.accepted[index] >= CONFIRM_LIMIT:  # refusals do not count: near misses must not hide the hit after them
            self._count_only(index, line)
            return None
        self.confirmed[index] += 1
        unconfirmed = False
        try:
            fields = confirm(signature, line, parsed)
        except Unconfirmed:
            fields, unconfirmed = {}, True
            self.out.unconfirmed += 1
        if fields is None:
            return None
        self.accepted[index] += 1
        if signature.table_key and signature.table_key in fields:
            signature = signature.resolve(fields[signature.table_key])
        return Hit(signature, data.first_line + number, data.text(number), parsed, fields, near, unconfirmed, index)

    def _keep(self, hits: Sequence[Hit]) -> None:
        """Store the hits of one line; a benign signature silences those that it, or they, name under ``overlaps``."""
        silenced: set[str] = set()
        for hit in hits:
            if hit.signature.role.value == "benign":
                silenced.update(hit.signature.overlaps)
                silenced.update(h.signature.id for h in hits if base_id(hit.signature.id) in h.signature.overlaps)
        for hit in hits:
            if base_id(hit.signature.id) in silenced:
                self.out.benign += 1
                continue
            self._tally(hit)

    def _tally(self, hit: Hit) -> None:
        place = tuple(hit.fields.get(name) for name in PLACE_CAPTURES)
        key = (hit.signature.id, (*place, hit.parsed.rank, hit.parsed.host))
        if key not in self.out.tallies and len(self.out.tallies) > CONFIRM_LIMIT:
            key = (hit.signature.id, ())
        tally = self.out.tallies.setdefault(key, Tally())
        tally.add(hit)
        if hit.index >= 0:
            self.latest[hit.index] = tally

    def _count_only(self, index: int, line: str) -> None:
        """Count a line beyond the limit by its pattern alone: no captures, no prefix (a lower bound, for it reads less)."""
        tally, signature = self.latest.get(index), self.plan.signatures[index]
        if tally is None:
            return
        tally.lower_bound = True
        vetoes = () if self.accepted[index] == self.confirmed[index] else signature.compiled_not
        try:
            if any(p.search(line, timeout=MATCH_TIMEOUT_S) for p in signature.compiled):
                tally.count += not any(p.search(line, timeout=MATCH_TIMEOUT_S) for p in vetoes)
        except TimeoutError:
            return

    def _rows(self, source: RowSource, data: Block, number: int, near: tuple[int, Parsed] | None) -> None:
        window, numbers, position = data.window(number)
        for row in source.rows(window):
            if row.line - 1 < len(numbers) and row.line - 1 >= position - 1 and row.end_line >= position + 1:
                line = data.first_line + numbers[row.line - 1]
                end = data.first_line + numbers[min(row.end_line, len(numbers)) - 1]
                tags = {
                    k: v
                    for k in ("rank", "local_rank", "task", "host", "pid")
                    if (v := getattr(data.parsed_line(number), k)) is not None
                }
                text = data.text(numbers[row.line - 1])
                self._row(
                    source.name, Row(row.kind, line, end, {**tags, **row.fields}, text), near, data.parsed_line(number)
                )
                return

    def _row(self, source: str, row: Row, near: tuple[int, Parsed] | None, parsed: Parsed | None = None) -> None:
        self.out.rows.append((source, row, near))
        for index in self.plan.row_signatures.get(source, ()):
            signature = self.plan.signatures[index]
            fields = confirm_row(signature, source, row)
            if fields is None:
                continue
            if signature.table_key and signature.table_key in fields:
                signature = signature.resolve(fields[signature.table_key])
            base = parsed or Parsed(None, source, _origin(self.plan, source), row.text)
            self._tally(Hit(signature, row.line, row.text, base, fields, near))

    def finish(self) -> None:
        """Read whole-file row sources and settle the counts."""
        if self.sampled:
            share = 1 - self.stamped / self.sampled
            self.out.undated = (
                round(share * self.out.lines) if self.sampled < self.out.lines else self.sampled - self.stamped
            )
        if not self.dump_text or (self.out.lines > LOG_LINES and 2 * self.stamped > self.sampled):
            return
        text = b"".join(self.dump_text).decode("utf-8", "replace")
        head = strip_ansi(text[:SNIFF_CHARS])
        physical: list[str] = []
        lines: list[str] = []
        for source in self.plan.dumps:
            if not source.sniff(self.out.path, head):
                continue
            if not physical:
                physical = text.split("\n")
                lines = [strip_ansi(line).rstrip("\r") for line in physical]
            for row in source.rows(lines):
                original = physical[row.line - 1][:TEXT_LIMIT] if row.line <= len(physical) else row.text
                near = next(
                    (s for s in reversed(self.out.samples) if s[0] <= row.line and s[1].stamp is not None), None
                )
                parsed = replace(self.peeler.peel(original), source=source.name, origin=source.origin)
                self._row(source.name, Row(row.kind, row.line, row.end_line, row.fields, original), near, parsed)


def _is_frame(body: str) -> bool:
    return body.lstrip().startswith('File "')


def _window(data: bytes, start: int, stop: int, end: int) -> str:
    if stop - start > 2 * SPAN:
        start, stop = max(start, end - SPAN), min(stop, end + SPAN)
    return data[start:stop].decode("utf-8", "replace").rstrip("\r")


def _origin(plan: Plan, source: str) -> Origin:
    return next((s.origin for s in (*plan.dumps, *plan.triggered) if s.name == source), Origin.DUMP)


def base_id(signature: str) -> str:
    """Return the id without the code of a table row."""
    return signature.partition("/")[0]
