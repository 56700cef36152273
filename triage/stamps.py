"""Every way a log line writes its time, as functions ``text -> Stamp | None``.

A layout names one of :data:`STAMPS`; the text is what its ``stamp`` group captured. Nothing is inferred here: a missing
year, date or zone stays missing (:mod:`triage.clock` fills them in). Python 3.10's ``fromisoformat`` refuses ``Z``,
comma fractions and nanoseconds, so all parsing is our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Final

from triage.sources.base import Stamp

LEAP_YEAR: Final = 1904
"""Year of a year-less 29 February: 1900, which every other year-less stamp carries, has no such day."""

_STEPS: Final = tuple(10.0**-digits for digits in range(32))
_EPOCH: Final = datetime(1970, 1, 1)
_TAI_AHEAD_S: Final = 10  # djb's tai64 labels count from 1970-01-01 00:00:10 TAI and ignore later leap seconds

# Month names as journalctl, date and rsyslog write them under the locales met in public logs (glibc %b and %B).
_MONTH_NAMES: Final = (
    "jan january janv janvier januar jaenner jän ene enero gen gennaio janeiro",
    "feb february févr février fevr februar febrero febbraio fev fevereiro",
    "mar march mars mär märz mrz marzo março maart mrt",
    "apr april avr avril abr abril aprile",
    "may mai maj mayo mag maggio maio mei",
    "jun june juin juni jún junio giu giugno junho",
    "jul july juil juillet juli julio lug luglio julho",
    "aug august août aout ago agosto augustus",
    "sep sept september septembre septiembre set settembre setembro",
    "oct october octobre okt oktober octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december déc décembre dez dezember dic diciembre dicembre dezembro",
)
_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
)

_ENGLISH: Final[Mapping[str, int]] = MappingProxyType(
    {names[:3].capitalize(): number for number, names in enumerate(_MONTH_NAMES, 1)}
)

# Abbreviations with one meaning only; CST, IST and BST have several and stay unknown.
_ZONES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "EET": 2,
        "EEST": 3, "MSK": 3, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
        "JST": 9, "KST": 9, "HKT": 8, "SGT": 8, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
    }
)  # fmt: skip

_CLOCK: Final = r"(\d{1,2})[:.](\d{2})[:.](\d{2})(?:[.,:](\d{1,9}))?"
_TAIL: Final = r"\s*(Z|UTC|GMT|[A-Z]{3,4}(?![a-z])|[+-]\d{2}:?\d{2}|[+-]\d{2}(?!\d))?\s*$"
_YMD: Final = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[T _:-]*" + _CLOCK + r"\s*([AP]M)?" + _TAIL)
_YY: Final = re.compile(r"(\d{2})[-/](\d{2})[-/](\d{2}) +" + _CLOCK)
_MDY: Final = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})[, _:@|-]+\[?" + _CLOCK + r"\]?\s*([AP]M)?" + _TAIL)
_MD: Final = re.compile(r"(\d{1,2})[/.-](\d{1,2})[ T]+\[?" + _CLOCK)
_COMPACT: Final = re.compile(
    r"(\d{2}|\d{4})(\d{2})(\d{2})[-_T ]+(\d{1,2}(?=:)|\d{2}):?(\d{1,2}(?=:)|\d{2}):?(\d{1,2})(?:[.,:](\d{1,9}))?"
    + _TAIL
)
_GLOG: Final = re.compile(r"(\d{4})?(\d{1,2})(\d{2}) " + _CLOCK)
_MONTH_FIRST: Final = re.compile(
    r"(?:[^\W\d]{2,5}\.?,? +)?([^\W\d]{3,10}|\d{1,2}月)\.? *(\d{1,2})(?:日|,)? +(?:(\d{4}),? +)?" + _CLOCK
    + r"\s*([AP]M)?(?: *([A-Z]{3,5}|[+-]\d{2}:?\d{2})(?= |$))?(?: +(\d{4}))?\s*$"
)  # fmt: skip
_DAY_FIRST: Final = re.compile(
    r"(?:[^\W\d]{2,5}\.?,? +)?(\d{1,2})[ /-]([^\W\d]{3,10})\.?[ /-](\d{4})[ :,]+" + _CLOCK + _TAIL
)
_TIME: Final = re.compile(_CLOCK + r"\s*([AP]M)?")
_MINUTE: Final = re.compile(r"([^\W\d]{3,10}) *(\d{1,2}) (\d{2}):(\d{2})")


def month(name: str) -> int | None:
    """Return the number of a month name (English, French, German, Spanish, Italian, Dutch, Portuguese, ``5月``)."""
    if name.endswith("月"):
        number = int(name[:-1])
        return number if 1 <= number <= 12 else None
    return _MONTHS.get(name.lower().rstrip("."))


def zone_offset(text: str | None) -> int | None:
    """Return seconds east of UTC for ``Z``, ``+0200``, ``+02:00``, ``+02`` or an unambiguous abbreviation."""
    if not text:
        return None
    if text[0] in "+-":
        digits = text[1:].replace(":", "")
        seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
        return -seconds if text[0] == "-" else seconds
    hours = _ZONES.get(text)
    return None if hours is None else hours * 3600


def _hour(text: str, half: str | None) -> int:
    """24-hour value of an hour that may carry AM or PM."""
    value = int(text)
    if half is None:
        return value
    return value % 12 + (12 if half == "PM" else 0)


def _build(  # one argument per part of a date
    year: int | None,
    month_: int,
    day: int,
    clock: tuple[int, str, str, str | None],
    offset_s: int | None = None,
) -> Stamp | None:
    """Assemble a stamp; None when the parts are no date. A leap second becomes the next second."""
    hour, minute, second, fraction = clock
    micros = int((fraction + "000000")[:6]) if fraction else 0
    leap = second == "60"
    base = year
    if base is None:
        base = LEAP_YEAR if (month_, day) == (2, 29) else 1900
    try:
        wall = datetime(base, month_, day, hour, int(minute), 59 if leap else int(second), micros)
    except ValueError:
        return None
    if leap:
        wall += timedelta(seconds=1)
    return Stamp(wall, year is not None, True, offset_s, 10.0 ** -len(fraction) if fraction else 1.0)


def _quick_iso(text: str) -> Stamp | None:
    """Read the commonest forms without a regular expression: ``YYYY-MM-DD?HH:MM:SS`` with ``.`` or ``,`` and digits."""
    fraction = text[20:]
    if (fraction and (text[19] not in ".," or not fraction.isdecimal())) or text[13:14] != ":":
        return None
    try:
        wall = datetime.fromisoformat(text[:19])
    except ValueError:
        return None
    if not fraction:
        return Stamp(wall) if len(text) == 19 else None
    return Stamp(wall.replace(microsecond=int((fraction + "00000")[:6])), True, True, None, _STEPS[len(fraction)])


def iso(text: str) -> Stamp | None:
    """Year first with any separators: ISO 8601, ``2024/05/01 ..``, BGL's dotted clock, ``2024-05-01_..``, AM/PM."""
    quick = _quick_iso(text)
    if quick is not None:
        return quick
    found = _YMD.match(text)
    if not found:
        return None
    year, month_, day, hour, minute, second, fraction, half, zone = found.groups()
    return _build(int(year), int(month_), int(day), (_hour(hour, half), minute, second, fraction), zone_offset(zone))


def weekday_iso(text: str) -> Stamp | None:
    """ISO date behind a weekday name: journalctl short-full, timedatectl ``Thu 2026-11-12 09:41:10 CET``."""
    return iso(text.partition(" ")[2])


def slurm(text: str) -> Stamp | None:
    """Slurm's LogTimeFormat: ISO 8601 or ``short`` (month name)."""
    return iso(text) or bsd(text)


def yy(text: str) -> Stamp | None:
    """Two-digit year first, this century: Spark ``17/06/09 20:10:40``."""
    found = _YY.match(text)
    if not found:
        return None
    year, month_, day, hour, minute, second, fraction = found.groups()
    return _build(2000 + int(year), int(month_), int(day), (int(hour), minute, second, fraction))


def mdy(text: str) -> Stamp | None:
    """US order ``05/01/2024 12:00:00`` (Hugging Face examples); read as day first only when the month would be > 12."""
    found = _MDY.match(text)
    if not found:
        return None
    first, second_, year, hour, minute, second, fraction, half, zone = found.groups()
    month_, day = (int(second_), int(first)) if int(first) > 12 else (int(first), int(second_))
    full = int(year) + (2000 if len(year) == 2 else 0)
    return _build(full, month_, day, (_hour(hour, half), minute, second, fraction), zone_offset(zone))


def dmy(text: str) -> Stamp | None:
    """Numeric day first, ``01.05.2024 12:00:00``; read as month first only when that is the only way."""
    found = _MDY.match(text)
    if not found:
        return None
    first, second_, year, hour, minute, second, fraction, half, zone = found.groups()
    day, month_ = (int(second_), int(first)) if int(second_) > 12 else (int(first), int(second_))
    full = int(year) + (2000 if len(year) == 2 else 0)
    return _build(full, month_, day, (_hour(hour, half), minute, second, fraction), zone_offset(zone))


def md(text: str) -> Stamp | None:
    """Numeric month and day, no year: ``12/15 02:23:55`` (mmengine), ``09-30 12:01:44`` (vLLM), ``10.30 16:49:06``."""
    found = _MD.match(text)
    if not found:
        return None
    month_, day, hour, minute, second, fraction = found.groups()
    return _build(None, int(month_), int(day), (int(hour), minute, second, fraction))


def compact(text: str) -> Stamp | None:
    """Digits run together: ``081109 203615``, ``20171223-22:15:29:606``, ``20240501T120000Z``."""
    found = _COMPACT.match(text)
    if not found:
        return None
    year, month_, day, hour, minute, second, fraction, zone = found.groups()
    full = int(year) + (2000 if len(year) == 2 else 0)
    return _build(full, int(month_), int(day), (int(hour), minute, second, fraction), zone_offset(zone))


def glog(text: str) -> Stamp | None:
    """Month*100 + day without zero padding (torch >= 2.4: ``126`` is 26 January), padded (glog, klog) or with year."""
    found = _GLOG.match(text)
    if not found:
        return None
    year, month_, day, hour, minute, second, fraction = found.groups()
    return _build(int(year) if year else None, int(month_), int(day), (int(hour), minute, second, fraction))


def bsd(text: str) -> Stamp | None:
    """Month name first, optional weekday, year and zone anywhere: syslog, journal short, ctime, ``date``, Apache."""
    if len(text) == 15 and text[:3] in _ENGLISH:
        try:
            wall = datetime(
                1900, _ENGLISH[text[:3]], int(text[4:6]), int(text[7:9]), int(text[10:12]), int(text[13:15])
            )
        except ValueError:
            pass  # a leap second or 29 February: the long way
        else:
            return Stamp(wall, False)
    found = _MONTH_FIRST.match(text)
    if not found:
        return None
    name, day, early_year, hour, minute, second, fraction, half, zone, late_year = found.groups()
    number = month(name)
    year = early_year or late_year
    if number is None:
        return None
    clock = (_hour(hour, half), minute, second, fraction)
    return _build(int(year) if year else None, number, int(day), clock, zone_offset(zone))


def day_first(text: str) -> Stamp | None:
    """Day, month name, year: Apache ``20/Jul/2009:22:59:26 +0000``, ``25 Apr 2024 05:32:35.018``, RFC 2822."""
    found = _DAY_FIRST.match(text)
    if not found:
        return None
    day, name, year, hour, minute, second, fraction, zone = found.groups()
    number = month(name)
    if number is None:
        return None
    return _build(int(year), number, int(day), (int(hour), minute, second, fraction), zone_offset(zone))


def clock(text: str) -> Stamp | None:
    """Time of day only: mxnet ``[15:33:36]``."""
    found = _TIME.match(text)
    if not found:
        return None
    hour, minute, second, fraction, half = found.groups()
    stamp = _build(None, 1, 1, (_hour(hour, half), minute, second, fraction))
    return None if stamp is None else Stamp(stamp.wall, False, False, None, stamp.step_s)


def minute(text: str) -> Stamp | None:
    """``dmesg -H``: month, day and minute, ``May26 19:31`` or ``Dec 1 14:42``; the second is not written."""
    found = _MINUTE.match(text)
    number = month(found.group(1)) if found else None
    if not found or number is None:
        return None
    stamp = _build(None, number, int(found.group(2)), (int(found.group(3)), found.group(4), "00", None))
    return None if stamp is None else Stamp(stamp.wall, False, True, None, 60.0)


def epoch(text: str) -> Stamp | None:
    """Seconds, milli-, micro- or nanoseconds since 1970 by the number of digits (10, 13, 16, 19), with fraction."""
    whole, _, fraction = text.partition(".")
    if not whole.isdecimal() or not whole.isascii() or len(whole) not in (10, 13, 16, 19):
        return None
    digits = whole[10:] + fraction
    micros = int((digits + "000000")[:6])
    wall = _EPOCH + timedelta(seconds=int(whole[:10]), microseconds=micros)
    return Stamp(wall, True, True, 0, 10.0 ** -len(digits) if digits else 1.0)


def tai64n(text: str) -> Stamp | None:
    """``@40000000433225833b6e1a8c`` (multilog, s6): 2**62 + seconds in hex, then nanoseconds."""
    try:
        seconds = int(text[:16], 16) - 2**62 - _TAI_AHEAD_S
        nanos = int(text[16:24] or "0", 16)
        wall = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except (ValueError, OverflowError):
        return None
    return Stamp(wall, True, True, 0, 1e-9)


def utc(moment: datetime) -> Stamp:
    """Wrap an aware datetime as a stamp in UTC."""
    return Stamp(moment.astimezone(timezone.utc).replace(tzinfo=None), True, True, 0, 1e-6)


STAMPS: Final[Mapping[str, Callable[[str], Stamp | None]]] = MappingProxyType(
    {
        "iso": iso, "slurm": slurm, "weekday_iso": weekday_iso, "yy": yy, "mdy": mdy, "dmy": dmy, "md": md,
        "compact": compact, "glog": glog, "bsd": bsd, "day_first": day_first, "clock": clock, "minute": minute,
        "epoch": epoch, "tai64n": tai64n,
    }
)  # fmt: skip
"""The stamp functions by the name a layout uses."""
