"""The kernel ring buffer as util-linux ``dmesg`` prints it (sys-utils/dmesg.c), serial consoles and pstore dumps."""

from __future__ import annotations

from triage.sources._lines import BSD as _BSD
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_KERNEL = _Origin.KERNEL
# The numeric prefix of dmesg -r and pstore; the delta of dmesg -d; CONFIG_PRINTK_CALLER's tag
_HEAD = r"(?P<program_is_kernel>)(?:<(?P<priority>\d{1,3})>)?"
_DELTA = r"(?: *<[+ ]*[\d.]+>)?"
_CALLER = r"(?: ?\[ *[TC]\d+ *\])?"

DMESG = _Lines(
    "dmesg",
    (
        _Layout(
            "dmesg-uptime",
            _HEAD + r"\[ {0,12}(?P<uptime>\d{1,9}\.\d{6})" + _DELTA + r"\]" + _CALLER + r"(?: |$)",
            origin=_KERNEL,
            examples=(
                (
                    "[  125.361551] nvme nvme0: I/O 12 QID 3 timeout, aborting",
                    {"uptime_s": 125.361551, "body": "nvme nvme0: I/O 12 QID 3 timeout, aborting", "origin": "kernel"},
                ),
                (
                    "[1234567.890123]  dump_stack+0x6d/0x8b",
                    {"uptime_s": 1234567.890123, "body": " dump_stack+0x6d/0x8b"},
                ),
                ("<3>[   41.000001] EDAC MC0: 1 CE", {"severity": "error", "body": "EDAC MC0: 1 CE"}),
                ("[   10.500000][  T140] BUG: soft lockup", {"uptime_s": 10.5, "body": "BUG: soft lockup"}),
                ("[   10.500000] [    C3] BUG: soft lockup", {"body": "BUG: soft lockup"}),
                (
                    "[12345.678901 <    0.000012>] eth4: link down",
                    {"uptime_s": 12345.678901, "body": "eth4: link down"},
                ),
                ("[   12.000000] [drm] Initialized", {"body": "[drm] Initialized"}),
            ),
        ),
        _Layout(
            "dmesg-ctime",
            _HEAD
            + r"\[(?P<stamp>[^\W\d]{2,5}\.? [^\W\d]{3,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4})"
            + _DELTA
            + r"\]"
            + _CALLER
            + r"(?: (?!\[(?:\w+:)?(?:emerg|alert|crit|error|warn|notice|info|debug|trace\d)\] )|$)",
            stamp="bsd",
            origin=_KERNEL,
            examples=(
                (
                    "[Sun Mar  3 04:05:06 2030] mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged",
                    {
                        "time": "2030-03-03T04:05:06",
                        "body": "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged",
                        "origin": "kernel",
                    },
                ),
                ("[Sun Mar  3 04:05:06 2030] [ 317702]  0 12 pause", {"body": "[ 317702]  0 12 pause"}),
            ),
        ),
        _Layout(
            "dmesg-iso",
            _HEAD + r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}(?:[+-]\d\d:?\d\d|Z))" + _CALLER + r"(?: |$)",
            stamp="iso",
            origin=_KERNEL,
            examples=(
                (
                    "2030-12-01T14:42:07,000001+01:00 NVRM: loading driver",
                    {"time": "2030-12-01T14:42:07.000001+01:00", "body": "NVRM: loading driver", "host": None},
                ),
                (
                    "kern  :warn  : 2030-12-01T14:42:07,000001+00:00 python[77]: segfault at 0",
                    {"severity": "warning", "body": "python[77]: segfault at 0", "origin": "kernel"},
                ),
            ),
        ),
        _Layout(
            "dmesg-minute",
            _HEAD + r"\[(?P<stamp>[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d)\](?: |$)",
            stamp="minute",
            origin=_KERNEL,
            examples=(
                ("[May26 19:31] CMCI storm detected", {"time": "--05-26T19:31:00", "body": "CMCI storm detected"}),
                ("[Dec 1 14:42] eth0: up", {"time": "--12-01T14:42:00", "origin": "kernel"}),
            ),
        ),
        _Layout(
            "dmesg-delta",
            _HEAD + r"\[ *\+(?P<delta>\d{1,7}\.\d{6})\](?: |$)",
            origin=_KERNEL,
            examples=(
                ("[  +0.000127] EDAC MC3: bank 7", {"time": None, "body": "EDAC MC3: bank 7", "delta": "0.000127"}),
            ),
        ),
        _Layout(
            "dmesg-diff",
            _HEAD + r"\[<[+ ]*(?P<delta>\d{1,7}\.\d{6})>\](?: |$)",
            origin=_KERNEL,
            examples=(("[<    0.000012>] usb 1-1: reset", {"body": "usb 1-1: reset", "delta": "0.000012"}),),
        ),
        _Layout(
            "dmesg-facility",  # dmesg -x, in front of every form of time
            r"(?P<program_is_kernel>)(?P<facility>kern|user|daemon|syslog|auth|local\d) *:"
            r"(?P<severity>emerg|alert|crit|err|warn|notice|info|debug) *: ",
            origin=_KERNEL,
            wrapper=True,
            examples=(
                ("kern  :err   : [  123.456789] mce: CPU1", {"severity": "error", "uptime_s": 123.456789}),
                (
                    "kern  :info  : Command line: ro",
                    {"severity": "info", "body": "Command line: ro", "origin": "kernel"},
                ),
            ),
        ),
        _Layout(
            "kmsg",
            r"(?P<program_is_kernel>)(?P<priority>\d{1,3}),(?P<seq>\d{1,12}),(?P<usec>\d{1,16}),[^;]{0,60};",
            origin=_KERNEL,
            examples=(
                (
                    "4,2211,91234567,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
                    {
                        "uptime_s": 91.234567,
                        "severity": "warning",
                        "body": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
                    },
                ),
                ("6,12,500000,c,caller=T99;continued", {"uptime_s": 0.5, "body": "continued"}),
            ),
        ),
    ),
    priority=30,
)

CONSOLE = _Lines(
    "console",
    (
        _Layout(
            "systemd-console",
            r"\[ {0,2}(?P<severity>OK|FAILED|DEPEND|TIME|WARN|INFO) {0,2}\] (?=[A-Z])",
            origin=_Origin.SYSLOG,
            examples=(("[FAILED] Failed to start foo.", {"severity": "error", "body": "Failed to start foo."}),),
        ),
        _Layout(
            "xorg",
            r"\[ {1,8}(?P<uptime>\d{1,9}\.\d{3})\](?: |$)",
            origin=_Origin.SYSLOG,
            examples=(("[    15.813] (II) NVIDIA(0): ready", {"uptime_s": 15.813, "body": "(II) NVIDIA(0): ready"}),),
        ),
        _Layout(
            "kernel-timed-short",
            rf"(?P<stamp>{_BSD}) (?P<program>kernel): \[ *(?P<uptime>\d+\.\d{{6}})\] ?",
            stamp="bsd",
            origin=_KERNEL,
            examples=(
                ("Dec  1 14:42:07 kernel: [   12.345678] eth0: up", {"uptime_s": 12.345678, "body": "eth0: up"}),
            ),
        ),
    ),
    priority=32,
)

RAW = _Lines(
    "raw-kernel",
    (
        _Layout(
            "dmesg-raw-undated",
            r"(?P<program_is_kernel>)<(?P<priority>\d{1,3})>(?=\S)",
            origin=_KERNEL,
            examples=(("<4>usb 1-1: reset", {"severity": "warning", "body": "usb 1-1: reset", "time": None}),),
        ),
    ),
    priority=70,
)
