"""Bytes come in whole lines, whatever the file is, and a broken file keeps what was read before the break."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.reading import Truncated, compression, looks_binary, open_stream, pieces

TEXT = b"".join(b"line %d\n" % n for n in range(5000))


@given(st.binary(max_size=400), st.integers(1, 50))
def test_pieces_lose_no_byte_and_cut_at_line_ends(data: bytes, block: int) -> None:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    got = list(pieces(io.BytesIO(data), block=block))
    if not any(p.partial for p in got):
        assert b"".join(bytes(p.data) for p in got) == data
        assert all(bytes(p.data).endswith(b"\n") for p in got[:-1])
    line = 1
    for piece in got:
        assert piece.first_line == line
        line += bytes(piece.data).count(b"\n")


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".txt", bytes)]
)
def test_compressed_files_read_like_plain_ones(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(pack(TEXT))  # type: ignore[operator]
    with open_stream(path) as stream:
        assert b"".join(bytes(p.data) for p in pieces(stream)) == TEXT


def test_the_content_decides_about_compression_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(gzip.compress(TEXT))
    with open_stream(path) as stream:
        assert sum(bytes(p.data).count(b"\n") for p in pieces(stream)) == 5000


def test_a_truncated_archive_yields_its_beginning_and_says_so(tmp_path: Path) -> None:
    import random

    text = b"".join(b"%d\n" % random.Random(n).getrandbits(64) for n in range(20_000))
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(text)[:-5000])
    lines = 0

    def read_all() -> None:
        nonlocal lines
        with open_stream(path) as stream:
            for piece in pieces(stream, block=4096):
                lines += bytes(piece.data).count(b"\n")

    with pytest.raises(Truncated):
        read_all()
    assert lines > 1000


def test_utf16_logs_are_decoded() -> None:
    data = b"\xff\xfe" + "CUDA out of memory\nnext\n".encode("utf-16-le")
    assert b"".join(bytes(p.data) for p in pieces(io.BytesIO(data))) == b"CUDA out of memory\nnext\n"


@pytest.mark.parametrize(
    ("head", "binary"),
    [
        (b"\xff\xd8\xff\xe0 picture", True),
        (bytes(range(9)) * 100, True),
        (b"ERROR: Unexpected bus error encountered in worker.\n\x00", False),
        (b"plain text\n", False),
        (b"", False),
    ],
)
def test_pictures_are_not_logs_but_a_stray_nul_is_fine(head: bytes, binary: bool) -> None:
    assert (looks_binary(head) is not None) == binary


def test_compression_is_told_by_magic() -> None:
    assert compression(b"\x28\xb5\x2f\xfd....") == "zstd"
    assert compression(b"[   1.0] kernel") is None
