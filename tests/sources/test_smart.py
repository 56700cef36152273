"""smartctl and nvme smart-log."""
# ruff: noqa: E501 - tables of lines as tools print them

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.smart import SMART

TEXT = """[ops@gpu-12 ~]$ smartctl -a /dev/nvme2n1
smartctl 7.4 2023-08-01 r5530 [x86_64-linux-5.15.0] (local build)

=== START OF INFORMATION SECTION ===
Model Number:                       EXAMPLE SSD 3.84T
Firmware Version:                   EX1A
=== START OF SMART DATA SECTION ===
SMART overall-health self-assessment test result: FAILED!
- NVM subsystem reliability has been degraded
SMART/Health Information (NVMe Log 0x02, NSID 0xffffffff)
Critical Warning:                   0x04
Temperature:                        35 Celsius
Available Spare:                    9%
Available Spare Threshold:          10%
Percentage Used:                    181%
Data Units Read:                    1,234,567 [632 GB]
Media and Data Integrity Errors:    1,234
Error Information Log Entries:      63"""


def rows(text: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in SMART.rows(text.split("\n"))]


def test_smartctl_text() -> None:
    assert SMART.sniff("x", TEXT)
    (row,) = SMART.rows(TEXT.split("\n"))
    assert row.fields == {
        "nvme": "nvme2",
        "host": "gpu-12",
        "model": "EXAMPLE SSD 3.84T",
        "firmware": "EX1A",
        "passed": False,
        "critical_warning": 4,
        "temperature_c": 35,
        "available_spare": 9,
        "spare_threshold": 10,
        "spare_margin": -1,
        "percentage_used": 181,
        "media_errors": 1234,
        "error_log_entries": 63,
    }
    assert row.line == 8  # the verdict decides


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "Smart Log for NVME device:nvme0 namespace-id:ffffffff\ncritical_warning\t\t\t: 0\ntemperature\t\t\t: 35 °C (308 K, 95 °F)\n"
            "available_spare\t\t\t: 100%\navailable_spare_threshold : 10%\npercentage_used\t\t\t: 3%\nmedia_errors : 7\nnum_err_log_entries : 63",
            {"nvme": "nvme0", "temperature_c": 35, "percentage_used": 3, "media_errors": 7, "spare_margin": 90},
        ),
        (
            "Smart Log for NVME device:nvme1n1\nCritical Warning : 0\ntemperature : 308 Kelvin\nPercentage Used : 3%",
            {"nvme": "nvme1", "temperature_c": 35},
        ),
        (
            "$ smartctl -a /dev/sda\nSMART overall-health self-assessment test result: PASSED\n  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       17\n197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       8",
            {"device": "sda", "passed": True, "reallocated_sectors": 17, "pending_sectors": 8},
        ),
        ("Critical Warning: 0x00\nPercentage Used: 1%\nMedia and Data Integrity Errors: 1.234", {"media_errors": 1234}),
        (
            json.dumps(
                {
                    "device": {"name": "/dev/nvme3"},
                    "smart_status": {"passed": True},
                    "nvme_smart_health_information_log": {"critical_warning": 0, "media_errors": 2, "temperature": 40},
                }
            ),
            {"nvme": "nvme3", "passed": True, "media_errors": 2, "temperature_c": 40},
        ),
        (
            '{"critical_warning":{"value":4},"temperature":311,"avail_spare":100,"spare_thresh":10,"percent_used":92}',
            {"critical_warning": 4, "temperature_c": 38, "percentage_used": 92},
        ),
        ('[{"device": {"name": "/dev/sda"}, "smart_status": {"passed": false}}]', {"device": "sda", "passed": False}),
    ],
)
def test_forms(text: str, wanted: dict[str, Any]) -> None:
    (got,) = rows(text)
    assert wanted.items() <= got.items()


def test_two_drives_in_one_file() -> None:
    text = TEXT.replace("nvme2n1", "nvme4") + "\n" + TEXT.replace("1,234\n", "0\n").replace("0x04", "0x00")
    assert [(r["nvme"], r["media_errors"]) for r in rows(text)] == [("nvme4", 1234), ("nvme2", 0)]


def test_json_line_is_the_decisive_one() -> None:
    text = '{\n "smart_status": {"passed": true},\n "nvme_smart_health_information_log": {\n  "critical_warning": 0,\n  "media_errors": 2\n }\n}'
    assert [row.line for row in SMART.rows(text.split("\n"))] == [5]


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '{"loss": 1.0}', "Temperature: 35", "smartctl: command not found", '{"a": ' * 50]
)
def test_nothing(text: str) -> None:
    assert rows(text) == []


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    SMART.sniff("x", "\n".join(lines))
    list(SMART.rows(lines))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "device",
                        "temperature",
                        "smart_status",
                        "passed",
                        "name",
                        "ata_smart_attributes",
                        "table",
                        "raw",
                        "id",
                        "value",
                        "media_errors",
                        "nvme_smart_health_information_log",
                    ]
                ),
                c,
                max_size=4,
            )
        ),
    )
)
def test_any_json(document: Any) -> None:
    list(
        SMART.rows(
            [json.dumps({"percent_used": 3, **(document if isinstance(document, dict) else {"device": document})})]
        )
    )
