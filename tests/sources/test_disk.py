"""df, df -i and mount tables."""
# ruff: noqa: E501 - tables of lines as tools print them

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.disk import DF, DF_INODES, MOUNTS


def rows(source: Any, text: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in source.rows(text.split("\n"))]


HUMAN = "Filesystem      Size  Used Avail Use% Mounted on\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            HUMAN + "shm              64M     0   64M   0% /dev/shm",
            {"mount": "/dev/shm", "filesystem": "shm", "size_mib": 64, "used_mib": 0, "use_percent": 0},
        ),
        (HUMAN + "/dev/sda2       1,5T  512G  1,0T  34% /", {"size_mib": 1572864, "available_mib": 1048576}),
        (
            "Filesystem     1K-blocks    Used Available Use% Mounted on\n/dev/sda1  2048 1024 1024 50% /a b",
            {"mount": "/a b", "size_mib": 2},
        ),
        (
            "Filesystem     1024-blocks Used Available Capacity Mounted on\n/dev/sda1  2048 1024 1024 50% /a",
            {"size_mib": 2},
        ),
        (
            "Filesystem     1M-blocks  Used Available Use% Mounted on\n/dev/sda1  2048 1024 1024 50% /a",
            {"size_mib": 2048},
        ),
        (
            "Filesystem     1B-blocks  Used Available Use% Mounted on\n/dev/sda1  2097152 0 2097152 0% /a",
            {"size_mib": 2},
        ),
        (
            "Filesystem     Type  Size  Used Avail Use% Mounted on\n/dev/sda1 xfs 2G 1G 1G 50% /a",
            {"fstype": "xfs", "size_mib": 2048},
        ),
        ("$ df -m /a\n/dev/sda1  2048 1024 1024 50% /a", {"size_mib": 2048}),
        (
            "root@5e0c:~# df -h | grep shm\nshm     1.0G  883M  142M  87% /dev/shm",
            {"use_percent": 87, "size_mib": 1024},
        ),
        (
            HUMAN + "nas02.example.org:/vol/a/very/long/name\n                 40T   31T  9.1T  78% /mnt",
            {"filesystem": "nas02.example.org:/vol/a/very/long/name", "mount": "/mnt"},
        ),
        (HUMAN + "none            -     -     -    - /sys/x", {"mount": "/sys/x"}),
    ],
)
def test_df(text: str, wanted: dict[str, Any]) -> None:
    assert DF.sniff("df.txt", text)
    (got,) = rows(DF, text)
    assert wanted.items() <= got.items()
    assert rows(DF_INODES, text) == []


def test_df_inodes() -> None:
    text = "Filesystem       Inodes   IUsed    IFree IUse% Mounted on\n/dev/nvme0n1p1 65536   65536        0  100% /scratch\ntmpfs 33M 12 33M 1% /run"
    first, second = rows(DF_INODES, text)
    assert first == {
        "mount": "/scratch",
        "path": "/scratch",
        "filesystem": "/dev/nvme0n1p1",
        "use_percent": 100,
        "inodes": 65536,
        "inodes_used": 65536,
        "inodes_free": 0,
    }
    assert second["inodes"] == 33 * 1024 * 1024
    assert rows(DF, text) == []


def test_wrapped_row_has_both_lines() -> None:
    text = HUMAN + "nas02.example.org:/vol/long\n                 40T   31T  9.1T  78% /mnt"
    (row,) = DF.rows(text.split("\n"))
    assert (row.line, row.end_line) == (2, 3)


def test_hosts_of_a_collected_dump() -> None:
    text = "gpu-03: Filesystem Size Used Avail Use% Mounted on\ngpu-03: /dev/sda2 439G 102G 315G 25% /\ngpu-04: Filesystem Size Used Avail Use% Mounted on\ngpu-04: /dev/sda2 439G 439G 0 100% /"
    assert [(r["host"], r["use_percent"]) for r in rows(DF, text)] == [("gpu-03", 25), ("gpu-04", 100)]


@pytest.mark.parametrize("text", ["", "epoch 3  87% /data/x", "loss 1.2 3.4 5.6 78% done", "12% /a"])
def test_no_df(text: str) -> None:
    assert not DF.sniff("train.log", text)
    assert rows(DF, text) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "nas01:/export on /mnt/nas type nfs4 (rw,hard,vers=4.2)",
            {"source": "nas01:/export", "mount": "/mnt/nas", "fstype": "nfs4", "options": "rw,hard,vers=4.2"},
        ),
        ("192.0.2.5@o2ib:/s /scratch lustre rw,flock 0 0", {"fstype": "lustre", "options": "rw,flock"}),
        ("UUID=ab-12 / ext4 errors=remount-ro 0 1", {"source": "UUID=ab-12", "mount": "/"}),
        ("/dev/sdb1 /mnt/my\\040disk xfs rw 0 0", {"mount": "/mnt/my disk"}),
        (
            "36 35 98:0 / /data rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue",
            {"mount": "/data", "source": "/dev/sda1", "options": "rw,noatime,errors=continue"},
        ),
        ("├─/data  nas:/d nfs rw,relatime", {"mount": "/data", "source": "nas:/d"}),
    ],
)
def test_mounts(text: str, wanted: dict[str, Any]) -> None:
    (got,) = rows(MOUNTS, text)
    assert wanted.items() <= got.items()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# /dev/sda1 / ext4 rw 0 0",
        "GET /index html 200 0 0",
        "mounted on /x type something",
        "/dev/sda1 is mounted",
    ],
)
def test_no_mounts(text: str) -> None:
    assert rows(MOUNTS, text) == []


def test_mounts_sniff() -> None:
    assert MOUNTS.sniff("host/mounts.txt", "192.0.2.5@o2ib:/s /scratch lustre rw,flock 0 0")
    assert MOUNTS.sniff("x.txt", "TARGET SOURCE FSTYPE OPTIONS\n/ /dev/sda1 ext4 rw")
    assert not MOUNTS.sniff("train.log", "step 1\nstep 2")


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    for source in (DF, DF_INODES, MOUNTS):
        source.sniff("x", "\n".join(lines))
        list(source.rows(lines))
