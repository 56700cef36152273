"""Bytes of a file in blocks that end at a line end; compressed input is streamed. Nothing here ever raises on content."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

Stream = BinaryIO | IO[bytes] | io.BufferedIOBase
BLOCK_BYTES = 4 << 20
OVERLAP_BYTES = 4096
HEAD_BYTES = 64 << 10
MAX_EXPANSION = 200 << 30  # bytes out of one compressed file
MAX_RATIO = 10_000
_FINE, _COARSE, _FINE_UNTIL = 4096, 128 << 10, 1 << 20  # what a broken archive may lose before its break

_MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BINARY_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"%PDF", b"\x7fELF", b"PK\x03\x04", b"SQLite format 3")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of whole lines, or (``partial``) a piece of one line that is longer than a block.

    ``first_line`` is the 1-based number of the first line in it; ``data`` is only valid until the next piece is read.
    """

    data: bytes | bytearray | memoryview
    first_line: int
    partial: bool = False


class Truncated(Exception):
    """The input ended early (cut archive, file that shrank); what was read before stays."""


def compression(head: bytes) -> str | None:
    """Return the compression that the first bytes tell, whatever the file is called."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def looks_binary(head: bytes) -> str | None:
    """Return why a file is not a log (a reason for the coverage row), or None."""
    for magic in _BINARY_MAGIC:
        if head.startswith(magic):
            return "binary file"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or not head:
        return None
    control = sum(head.count(bytes([c])) for c in range(9))
    return "binary file" if control > max(64, len(head) // 10) else None


def open_stream(path: Path) -> Stream:
    """Open a plain or compressed file for reading. Raises ``OSError``."""
    with path.open("rb") as probe:
        kind = compression(probe.read(8))
    if kind is None:
        return path.open("rb", buffering=0)
    return _Salvaged(_decompressor(kind)(path))


class _Salvaged(io.BufferedIOBase):
    """A decompressor that hands out what it read before an error, and the error with the read after that."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._error: Exception | None = None
        self._total = 0

    def read(self, size: int | None = -1, /) -> bytes:
        parts: list[bytes] = []
        left = MAX_EXPANSION if size is None or size < 0 else size
        while left > 0 and self._error is None:
            try:
                data = self._stream.read1(min(left, _FINE if self._total < _FINE_UNTIL else _COARSE))
            except Exception as err:  # each decompressor has errors of its own
                self._error = err
                break
            if not data:
                break
            parts.append(data)
            left -= len(data)
            self._total += len(data)
        if self._error is not None and not parts:
            raise self._error
        return b"".join(parts)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _decompressor(kind: str) -> Callable[[Path], Any]:
    if kind == "gzip":
        try:
            from isal import igzip
        except ImportError:
            return lambda path: gzip.open(path, "rb")
        fast: Any = igzip.open
        return lambda path: fast(path, "rb")
    if kind == "zstd":
        return lambda path: io.BufferedReader(_zstd().open(path, "rb"))
    return (lambda path: bz2.open(path, "rb")) if kind == "bzip2" else (lambda path: lzma.open(path, "rb"))


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from backports import zstd
    return zstd


def pieces(stream: Stream, *, block: int = BLOCK_BYTES) -> Iterator[Piece]:
    """Yield the stream in pieces that end at a line end.

    UTF-16 with a byte-order mark is decoded to UTF-8 on the way. Raises :class:`Truncated` at the end when the stream
    broke off, after everything before the break has been yielded.
    """
    line = 1
    rest = b""
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    broken: Exception | None = None
    while True:
        try:
            data = stream.read(block)
        except Exception as err:  # each decompressor has errors of its own; all of them mean that the input is broken
            data, broken = b"", err
        if first and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        first = False
        ended = not data
        if decoder is not None:
            data = decoder.decode(data, final=ended).encode("utf-8", "replace")
        if ended and not data:
            break
        data = rest + data if rest else data
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = data[:cut] if cut < len(data) else data
            yield Piece(whole, line)
            line += whole.count(b"\n")
            rest = data[cut:]
        elif len(data) >= block:
            yield Piece(data, line, partial=True)
            rest = data[-OVERLAP_BYTES:]
        else:
            rest = data
    if rest:
        yield Piece(rest, line)
    if broken is not None:
        raise Truncated(str(broken) or type(broken).__name__)


def line_at(data: bytes | bytearray | memoryview, end: int) -> tuple[int, int]:
    """Return (start, stop) of the line that holds the byte before ``end``; ``stop`` excludes the line end."""
    view = data if isinstance(data, (bytes, bytearray)) else bytes(data)
    start = view.rfind(b"\n", 0, max(end - 1, 0)) + 1
    stop = view.find(b"\n", max(end - 1, 0))
    return start, len(view) if stop < 0 else stop
