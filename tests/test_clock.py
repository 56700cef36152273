"""Missing years, zones, dates; seconds since boot."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from triage.clock import Clock, FileSample
from triage.errors import UsageError
from triage.inspection import line_sources
from triage.model import When
from triage.peel import Peeler
from triage.vocabulary import TimeBasis

PEELER = Peeler(line_sources())
NOW = datetime(2031, 6, 15, 12, 0, 0, tzinfo=timezone.utc)


def sample(path: str, *lines: str, host: str | None = None, mtime: datetime | None = None) -> FileSample:
    parsed = [(number, PEELER.peel(line)) for number, line in enumerate(lines, 1)]
    return FileSample(path, host, mtime.timestamp() if mtime else None, parsed)


def times(files: list[FileSample], path: str, **options: object) -> list[When]:
    clock = Clock.build(files, now=NOW, **options)  # type: ignore[arg-type]
    file = next(file for file in files if file.path == path)
    return [clock.when(path, parsed.host or file.host, parsed, number) for number, parsed in file.lines]


def texts(found: list[When]) -> list[str | None]:
    return [when.at.strftime("%Y-%m-%d %H:%M:%S") if when.at else None for when in found]


class TestYear:
    def test_nearest_to_the_dated_lines_of_the_file(self) -> None:
        file = sample(
            "a", "[2029-12-31 23:50:00] start", "W1231 23:55:00.000000 1 x.py:1] a", "W0101 00:05:00.000000 1 x.py:1] b"
        )
        found = times([file], "a")
        assert texts(found) == ["2029-12-31 23:50:00", "2029-12-31 23:55:00", "2030-01-01 00:05:00"]
        assert found[1].basis is TimeBasis.ASSUMED_YEAR

    def test_else_to_the_dated_files_of_the_bundle(self) -> None:
        files = [sample("a", "Mar  4 05:06:07 n1 x: y"), sample("b", "2027-03-03 00:00:00,1 - r - INFO - x")]
        assert texts(times(files, "a")) == ["2027-03-04 05:06:07"]

    def test_else_not_after_the_mtime(self) -> None:
        written = datetime(2026, 2, 1, tzinfo=timezone.utc)
        file = sample("a", "Dec 30 05:06:07 n1 x: y", "Jan 31 05:06:07 n1 x: y", mtime=written)
        assert texts(times([file], "a")) == ["2025-12-30 05:06:07", "2026-01-31 05:06:07"]

    def test_else_not_after_today(self) -> None:
        assert texts(times([sample("a", "Jun 16 05:00:00 n x: y")], "a")) == ["2031-06-16 05:00:00"]  # within a day
        assert texts(times([sample("a", "Jun 20 05:00:00 n x: y")], "a")) == ["2030-06-20 05:00:00"]

    def test_a_small_step_back_is_no_new_year(self) -> None:
        file = sample("a", "Jun  3 00:00:05 n x: y", "Jun  2 23:59:58 n x: y", "Jun  3 00:00:06 n x: y")
        assert texts(times([file], "a")) == ["2031-06-03 00:00:05", "2031-06-02 23:59:58", "2031-06-03 00:00:06"]

    def test_a_file_over_two_new_years(self) -> None:
        lines = [f"{m} 10 00:00:00 n x: y" for m in ("Oct", "Jan", "May", "Oct", "Jan", "Apr")]
        assert [t[:7] for t in texts(times([sample("a", *lines)], "a")) if t] == [
            "2029-10", "2030-01", "2030-05", "2030-10", "2031-01", "2031-04",
        ]  # fmt: skip

    def test_a_late_december_line_after_new_year(self) -> None:
        file = sample("a", "Dec 31 23:59:59 n x: y", "Jan  1 00:00:00 n x: y", "Dec 31 23:59:59 n x: late")
        assert [t[:4] for t in texts(times([file], "a")) if t] == ["2030", "2031", "2030"]

    def test_told_by_the_user_for_the_first_line(self) -> None:
        file = sample("a", "Dec 31 23:59:59 n x: y", "Jan  1 00:00:00 n x: y")
        assert texts(times([file], "a", year=2015)) == ["2015-12-31 23:59:59", "2016-01-01 00:00:00"]

    def test_29_february(self) -> None:
        assert texts(times([sample("a", "Feb 29 01:00:00 n x: y")], "a", year=2028)) == ["2028-02-29 01:00:00"]

    def test_lines_between_the_sampled_ones(self) -> None:
        file = sample("a", "Dec 31 23:59:59 n x: y", "Jan  1 00:00:00 n x: y")
        clock = Clock.build([FileSample("a", None, None, [file.lines[0], (900, file.lines[1][1])])], now=NOW)
        for number, text in ((800, "Dec 31 23:59:59 n x: y"), (950, "Jan  2 00:00:00 n x: y")):
            when = clock.when("a", "n", PEELER.peel(text), number)
            assert when.at is not None
            assert when.at.year == (2030 if number == 800 else 2031)

    def test_is_noted(self) -> None:
        clock = Clock.build([sample("a", "Jun  3 00:00:05 n x: y")], now=NOW)
        assert any("2031" in note for note in clock.notes)


class TestZone:
    def test_of_the_line(self) -> None:
        (found,) = times([sample("a", "2031-02-03T04:05:06+02:00 hello")], "a")
        assert (texts([found]), found.basis) == (["2031-02-03 02:05:06"], TimeBasis.STAMP)

    def test_of_the_host_by_its_iso_lines(self) -> None:
        files = [
            sample("syslog", "2031-02-03T04:05:06+02:00 n1 x[1]: y"),
            sample("other", "2031-02-03T04:05:06-05:00 n2 x[1]: y"),
            sample("log", "2031-02-03 04:05:06,000 - r - INFO - x", host="n1"),
        ]
        (found,) = times(files, "log")
        assert (texts([found]), found.basis) == (["2031-02-03 02:05:06"], TimeBasis.ASSUMED_ZONE)

    def test_of_the_bundle_by_timedatectl_with_summer_time(self) -> None:
        files = [
            sample("timedatectl.txt", "                Time zone: Europe/Berlin (CET, +0100)", host="n1"),
            sample("log", "2031-02-03 04:05:06 a", "2031-07-03 04:05:06 b", host="n2"),
        ]
        assert texts(times(files, "log")) == ["2031-02-03 03:05:06", "2031-07-03 02:05:06"]

    def test_utc_when_hosts_disagree_and_it_is_noted(self) -> None:
        files = [
            sample("a", "2031-02-03T04:05:06+02:00 n1 x[1]: y"),
            sample("b", "2031-02-03T04:05:06-05:00 n2 x[1]: y"),
            sample("log", "2031-02-03 04:05:06 a", host="n3"),
        ]
        assert texts(times(files, "log")) == ["2031-02-03 04:05:06"]
        clock = Clock.build(files, now=NOW)
        clock.when("log", "n3", files[2].lines[0][1], 1)
        assert any("n3" in note and "UTC" in note for note in clock.notes)

    def test_z_of_a_shipper_says_nothing_of_the_host(self) -> None:
        files = [
            sample("k8s", "2031-02-03T04:05:06Z stderr F x", host="n1"),
            sample("date", "Mon Feb  3 05:05:06 CET 2031", host="n1"),
            sample("log", "Feb  3 05:05:06 n1 x: y"),
        ]
        assert texts(times(files, "log")) == ["2031-02-03 04:05:06"]

    def test_told_by_the_user(self) -> None:
        file = sample("a", "2031-07-03 04:05:06 b")
        assert texts(times([file], "a", tz="+0530")) == ["2031-07-02 22:35:06"]
        assert texts(times([file], "a", tz="America/New_York")) == ["2031-07-03 08:05:06"]
        with pytest.raises(UsageError):
            times([file], "a", tz="Mars/Olympus")


class TestBoot:
    def test_without_an_anchor_there_is_no_time(self) -> None:
        assert times([sample("dmesg", "[  500.000000] x", host="n1")], "dmesg") == [When()]

    def test_by_lines_of_kern_log_past_the_first_two_minutes(self) -> None:
        kern = sample(
            "kern.log",
            "Mar  4 00:10:00 n1 kernel: [    1.000000] Linux version 9",  # drained late: says 00:10 for 00:01
            "Mar  4 00:10:00 n1 kernel: [  540.000000] a",
            "Mar  4 00:11:00 n1 kernel: [  600.000000] b",
        )
        found = times([kern, sample("dmesg", "[  660.000000] c", host="n1")], "dmesg", year=2031)
        assert texts(found) == ["2031-03-04 00:12:00"]
        assert found[0].basis is TimeBasis.UPTIME
        assert found[0].uncertainty_s >= 1

    def test_not_by_another_host(self) -> None:
        kern = sample("kern.log", "Mar  4 00:11:00 n1 kernel: [  600.000000] b")
        assert times([kern, sample("dmesg", "[  660.000000] c", host="n2")], "dmesg")[0].at is None

    @pytest.mark.parametrize(
        "line",
        [
            "[   10.000000] rtc_cmos 00:02: setting system clock to 2030-03-17T17:46:40 UTC (1900000000)",
            "[   10.000000] audit: type=1400 audit(1900000000.000:45): apparmor",
            "[   10.000000] mce: [Hardware Error]: PROCESSOR 0:50654 TIME 1900000000 SOCKET 0 APIC 0",
            "[   10.000000] Lustre: 1:0:(client.c:1:f()) @@@ Request sent: [sent 1900000000/real 1900000000]",
        ],
    )
    def test_by_an_epoch_in_the_message(self, line: str) -> None:
        found = times([sample("dmesg", line, "[   70.000000] x")], "dmesg")
        assert texts(found)[1] == "2030-03-17 17:47:40"

    def test_by_a_journal_pair(self) -> None:
        journal = sample(
            "j.json",
            '{"__REALTIME_TIMESTAMP":"1900000000000000","__MONOTONIC_TIMESTAMP":"10000000","_HOSTNAME":"n1",'
            '"_BOOT_ID":"a","MESSAGE":"x"}',
        )
        (found,) = times([journal, sample("dmesg", "[   11.000000] x", host="n1")], "dmesg")
        assert texts([found]) == ["2030-03-17 17:46:41"]
        assert found.uncertainty_s < 1

    def test_by_btime_for_the_last_boot_only(self) -> None:
        files = [
            sample("dmesg", "[  900.000000] old", "[    5.000000] new", host="n1"),
            sample("proc/stat", "btime 1900000000", host="n1"),
        ]
        assert texts(times(files, "dmesg")) == [None, "2030-03-17 17:46:45"]

    def test_by_uptime_s(self) -> None:
        files = [
            sample("dmesg", "[    5.000000] new", host="n1"),
            sample("uptime-s.txt", "2030-03-17 17:46:40", host="n1"),
        ]
        assert texts(times(files, "dmesg")) == ["2030-03-17 17:46:45"]

    def test_boots_in_one_file_are_not_mixed(self) -> None:
        rtc = "[    1.000000] rtc_cmos 0:0: setting system clock to 2030-03-17T17:46:40 UTC (1900000000)"
        file = sample("c", "[  900.000000] before", "[    0.000000] Linux version 9", rtc, "[   61.000000] after")
        assert texts(times([file], "c")) == [None, "2030-03-17 17:46:39", "2030-03-17 17:46:40", "2030-03-17 17:47:40"]

    def test_jitter_of_the_clock_is_no_boot(self) -> None:
        rtc = "[    1.000000] rtc_cmos 0:0: setting system clock to 2030-03-17T17:46:40 UTC (1900000000)"
        file = sample("c", rtc, "[    9.000002] a", "[    9.000001] b")
        assert all(text is not None for text in texts(times([file], "c")))

    def test_two_anchored_boots_of_a_host_are_told_apart_by_shared_lines(self) -> None:
        kern = sample(
            "kern.log",
            "Mar  4 00:11:00 n1 kernel: [  600.000000] first",
            "Mar  5 00:11:00 n1 kernel: [  300.000000] second",
        )
        files = [kern, sample("dmesg", "[  300.000000] second", "[  360.000000] x", host="n1")]
        assert texts(times(files, "dmesg", year=2031)) == ["2031-03-05 00:11:00", "2031-03-05 00:12:00"]
        lone = [kern, sample("dmesg", "[  360.000000] x", host="n1")]
        assert texts(times(lone, "dmesg", year=2031)) == [None]


class TestUndatedLines:
    def test_inherit_from_the_line_before(self) -> None:
        file = sample(
            "a", "2031-02-03T04:05:06Z a", "Traceback (most recent call last):", "2031-02-03T04:05:16Z b", "tail"
        )
        found = times([file], "a")
        assert texts(found) == [
            "2031-02-03 04:05:06",
            "2031-02-03 04:05:06",
            "2031-02-03 04:05:16",
            "2031-02-03 04:05:16",
        ]
        assert [when.basis for when in found[1::2]] == [TimeBasis.INHERITED] * 2
        assert found[1].uncertainty_s == 10

    def test_a_file_without_any_date(self) -> None:
        assert times([sample("a", "x", "y")], "a") == [When(), When()]

    def test_time_of_day_takes_the_date_of_its_neighbours(self) -> None:
        file = sample("a", "[2031-02-03 23:59:00] x", "[23:59:30] y", "[00:00:10] z")
        assert texts(times([file], "a")) == ["2031-02-03 23:59:00", "2031-02-03 23:59:30", "2031-02-04 00:00:10"]

    def test_deltas_of_dmesg_h_add_up(self) -> None:
        file = sample("a", "[May26 19:31] x", "[  +0.500000] y", "[ +10.500000] z")
        found = times([file], "a", year=2031)
        assert texts(found) == ["2031-05-26 19:31:00", "2031-05-26 19:31:00", "2031-05-26 19:31:11"]
        assert found[0].uncertainty_s == 60


def test_clock_offset_of_a_host_is_taken_off() -> None:
    file = sample("a", "2031-02-03T04:05:06Z a", host="n1")
    assert texts(times([file], "a", offsets={"n1": 2.0})) == ["2031-02-03 04:05:04"]
