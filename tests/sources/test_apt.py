"""Histories of package managers."""

from __future__ import annotations

import pytest

from triage.sources.apt import APT_HISTORY, DNF_LOG, DPKG_LOG

APT = """\

Start-Date: 2026-03-02  06:51:02
Commandline: /usr/bin/unattended-upgrade
Requested-By: mo (1004)
Install: linux-image-5.15.0-100-generic:amd64 (5.15.0-100.110, automatic)
Upgrade: libnvidia-compute-535:amd64 (535.154.05-0ubuntu1, 535.161.08-0ubuntu1), tzdata (2023c, 2024a)
Remove: nvidia-utils-525:amd64 (525.147.05-0ubuntu1)
End-Date: 2026-03-02  06:51:09
"""


def test_apt_stanza() -> None:
    assert APT_HISTORY.sniff("history.log", APT)
    rows = list(APT_HISTORY.rows(APT.splitlines()))
    got = [(r.line, r.fields["action"], r.fields["package"], r.fields.get("old"), r.fields.get("new")) for r in rows]
    assert got == [
        (5, "install", "linux-image-5.15.0-100-generic", None, "5.15.0-100.110"),
        (6, "upgrade", "libnvidia-compute-535", "535.154.05-0ubuntu1", "535.161.08-0ubuntu1"),
        (6, "upgrade", "tzdata", "2023c", "2024a"),
        (7, "remove", "nvidia-utils-525", "525.147.05-0ubuntu1", None),
    ]
    assert rows[0].fields["at"] == "2026-03-02 06:51:02"
    assert rows[0].fields["by"] == "mo (1004)"


def test_dpkg_log_keeps_only_actions() -> None:
    lines = [
        "2026-03-02 06:51:05 startup archives unpack",
        "2026-03-02 06:51:05 upgrade nvidia-utils-535:amd64 535.154.05-0ubuntu1 535.161.08-0ubuntu1",
        "2026-03-02 06:51:05 status half-configured nvidia-utils-535:amd64 535.154.05-0ubuntu1",
        "2026-03-02 06:51:06 install foo:all <none> 1.0",
    ]
    assert DPKG_LOG.sniff("dpkg.log", lines[0])
    upgrade, install = DPKG_LOG.rows(lines)
    assert (upgrade.line, upgrade.fields["old"], upgrade.fields["new"]) == (
        2,
        "535.154.05-0ubuntu1",
        "535.161.08-0ubuntu1",
    )
    assert "old" not in install.fields


def test_dnf_pairs_new_and_old() -> None:
    lines = [
        "2026-03-02T06:51:05+0000 INFO --- logging initialized ---",
        "2026-03-02T06:51:05+0000 SUBDEBUG Upgrade: nvidia-driver-libs-3:550.54.15-1.el9.x86_64",
        "2026-03-02T06:51:06+0000 SUBDEBUG Upgraded: nvidia-driver-libs-3:535.161.08-1.el9.x86_64",
        "2026-03-02T06:51:07+0000 SUBDEBUG Upgraded: glibc-2.34-60.el9.x86_64",
        "Mar 02 06:51:08 Updated: kernel-core-5.14.0-362.el9.x86_64",
    ]
    assert DNF_LOG.sniff("dnf.rpm.log", "\n".join(lines))
    driver, glibc, kernel = DNF_LOG.rows(lines)
    assert (driver.fields["package"], driver.fields["old"], driver.fields["new"]) == (
        "nvidia-driver-libs", "3:535.161.08-1.el9", "3:550.54.15-1.el9",
    )  # fmt: skip
    assert (glibc.fields["action"], glibc.fields["old"]) == ("upgrade", "2.34-60.el9")
    assert kernel.fields["new"] == "5.14.0-362.el9"


@pytest.mark.parametrize("text", ["Upgrade: the manual (1, 2)", "2026-03-02 06:51:05 INFO started", "Started: apt"])
def test_other_files(text: str) -> None:
    assert not any(s.sniff("x.log", text) for s in (APT_HISTORY, DPKG_LOG, DNF_LOG))


@pytest.mark.parametrize(
    "text",
    [
        "Start-Date: ",
        "Upgrade: (",
        "Upgrade: a (,), b ()",
        "Remove: a (automatic)",
        "2026-03-02T06:51:06 Upgraded: x",
        "",
    ],
)
def test_broken_input_never_raises(text: str) -> None:
    for source in (APT_HISTORY, DPKG_LOG, DNF_LOG):
        list(source.rows(text.split("\n")))
