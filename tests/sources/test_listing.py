"""ls -l, find -ls and stat."""
# ruff: noqa: E501 - tables of lines as tools print them

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.listing import LISTING


def rows(text: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in LISTING.rows(text.split("\n"))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "-rw-r--r-- 1 ada ml 246 2027-03-04 02:17:05.661569117 +0100 a.pt",
            {"path": "a.pt", "size": 246, "mtime": "2027-03-04T02:17:05.661569+01:00", "entry": "file", "owner": "ada"},
        ),
        ("-rw-r--r--. 1 ada ml 0 Nov 12 02:05 a.pt", {"size": 0, "mtime_text": "Nov 12 02:05"}),
        ("-rw-r--r-- 1 ada ml 12 2027-03-04 02:17 a.pt", {"mtime": "2027-03-04T02:17"}),
        ("-rw-r--r-- 1 ada ml 12 03-04 02:17 a.pt", {"mtime_text": "03-04 02:17"}),
        ("-rw-r--r-- 1 ada ml 2.3G Nov 12  2026 a.pt", {"size": 2469606195, "rounded": True}),
        ("drwxrwxr-x 2 ada ml 4096 Nov 12 02:05 step_10", {"entry": "directory"}),
        ("lrwxrwxrwx 1 ada ml 7 Nov 12 02:05 latest -> step_10", {"path": "latest", "entry": "link"}),
        (
            "   131075   2048 -rw-r--r--   1 ada ml  2097152 Mar  4 02:17 /ckpt/a.pt",
            {"path": "/ckpt/a.pt", "size": 2097152},
        ),
        ("/ckpt/step_10:\ntotal 8\n-rw-r--r-- 1 ada ml 1 Nov 12 02:05 a.pt", {"path": "/ckpt/step_10/a.pt"}),
        ("$ ls -l /ckpt/step_10\n-rw-r--r-- 1 ada ml 1 Nov 12 02:05 a.pt", {"path": "/ckpt/step_10/a.pt"}),
        (
            "  File: /ckpt/a.pt\n  Size: 0         \tBlocks: 0          IO Block: 4096   regular empty file\nModify: 2027-03-04 02:17:05.123456789 +0000",
            {"path": "/ckpt/a.pt", "size": 0, "entry": "file", "mtime": "2027-03-04T02:17:05.123456+00:00"},
        ),
    ],
)
def test_forms(text: str, wanted: dict[str, Any]) -> None:
    assert LISTING.sniff("ls.txt", text)
    (got,) = rows(text)
    assert wanted.items() <= got.items()


def test_recursive_listing() -> None:
    text = "/c/step_1:\ntotal 4\n-rw-r--r-- 1 a m 5 Nov 12 02:05 x\n\n/c/step_2:\ntotal 4\n-rw-r--r-- 1 a m 6 Nov 12 02:05 x"
    assert [(r["path"], r["size"]) for r in rows(text)] == [("/c/step_1/x", 5), ("/c/step_2/x", 6)]


@pytest.mark.parametrize(
    "text", ["", "total 12", "drwx loading", "crw-rw---- 1 root video 195, 0 Nov 12 02:05 nvidia0", "epoch 1: loss 2"]
)
def test_nothing(text: str) -> None:
    assert rows(text) == []


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    LISTING.sniff("x", "\n".join(lines))
    list(LISTING.rows(lines))
