"""Codes as people name them (``xid 79``, ``exit -9``, ``ib 12``, ``NODE_FAIL``) -> rows of the signatures' code tables.

Tables are found by the capture that selects their rows and by the ids of their signatures; a few words are aliases.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from triage.signature import Signature


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of codes: the captures and the signatures whose tables hold it; ``ids`` go first, in their order."""

    name: str
    keys: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """A code that somebody asked for. ``line`` is a message that carries it, for families without a full table."""

    kind: Kind
    value: str
    spellings: tuple[str, ...]
    line: str = ""
    note: str = ""


_EXIT: Final = Kind(
    "exit code", ("exitcode", "exit_code"), ("torchrun-worker-failed", "srun-task-exit-code", "container-exit-code")
)
_SIGNAL: Final = Kind("signal", ("signal_name",), ("native-crash-signal", "shell-reports-signal"))
_NCCL: Final = Kind("NCCL result", (), ("nccl-result-text",))
_IB: Final = Kind("InfiniBand completion status", (), ("nccl-ib-completion-error",))
_ERRNO: Final = Kind("errno", ("errno",))
_SLURM: Final = Kind("Slurm state", ("state",), ("slurm-accounting-state", "srun-task-ended"))
_CUDA: Final = Kind("CUDA error")
_RSYNC: Final = Kind("rsync exit code", (), ("rsync-ended-with-error",))

KINDS: Final[Mapping[str, Kind]] = {
    "xid": Kind("Xid", ("xid",), ("gpu-xid",)),
    "sxid": Kind("SXid", ("sxid",), ("nvswitch-sxid",)),
    "exit": _EXIT, "exitcode": _EXIT, "exited": _EXIT, "rc": _EXIT,
    "signal": _SIGNAL, "sig": _SIGNAL,
    "nccl": _NCCL, "ncclresult": _NCCL,
    "ib": _IB, "wc": _IB, "completion": _IB,
    "errno": _ERRNO,
    "slurm": _SLURM, "state": _SLURM,
    "cuda": _CUDA, "cudaerror": _CUDA,
    "rsync": _RSYNC,
    "mlx5": Kind("mlx5 health syndrome", (), ("mlx5-syndrome",)),
    "synd": Kind("mlx5 health syndrome", (), ("mlx5-syndrome",)),
    "recovery": Kind("GPU recovery action", (), ("gpu-recovery-action",)),
}  # fmt: skip

_RSYNC_VANISHED: Final = (
    "rsync warning: some files vanished before they could be transferred (code 24) at main.c(1338) [sender=3.2.7]"
)
_NCCL_NAMES: Final = (
    "success",
    "cuda",
    "system",
    "internal",
    "argument",
    "usage",
    "remote",
    "NCCL operation in progress",
    "timeout",
)
CUDA_TEXT: Final[Mapping[int, str]] = {
    1: "invalid argument",
    2: "out of memory",
    3: "initialization error",
    4: "driver shutting down",
    9: "invalid configuration argument",
    35: "CUDA driver version is insufficient for CUDA runtime version",
    46: "all CUDA-capable devices are busy or unavailable",
    98: "invalid device function",
    100: "no CUDA-capable device is detected",
    101: "invalid device ordinal",
    209: "no kernel image is available for execution on the device",
    214: "uncorrectable ECC error encountered",
    217: "peer access is not supported between these two devices",
    220: "uncorrectable NVLink error detected during the execution",
    226: "Invalid access of peer GPU memory over nvlink or a hardware error",
    304: "OS call failed or operation not supported on this OS",
    400: "invalid resource handle",
    700: "an illegal memory access was encountered",
    701: "too many resources requested for launch",
    702: "the launch timed out and was terminated",
    710: "device-side assert triggered",
    714: "hardware stack error",
    715: "an illegal instruction was encountered",
    716: "misaligned address",
    717: "operation not supported on global/shared address space",
    718: "invalid program counter",
    719: "unspecified launch failure",
    800: "operation not permitted",
    801: "operation not supported",
    802: "system not yet initialized",
    803: "system has unsupported display driver / cuda driver combination",
    804: "forward compatibility was attempted on non supported HW",
    805: "MPS client failed to connect to the MPS control daemon or the MPS server",
    900: "operation not permitted when stream is capturing",
    999: "unknown error",
}
"""Text that the CUDA runtime prints for a code; logs carry the text, people ask for the number."""

_ASKED: Final = re.compile(
    r"(?i)(?P<word>[a-z][a-z0-9-]{1,63}?)[\s:=#_]{0,3}(?:(?:code|status|result|number|error|state)[\s:=#]{1,3})?"
    r"(?P<value>-?\d{1,6}(?::\d{1,3})?|0x[0-9a-f]{1,8}|(?<=[\s:=])[A-Za-z][\w-]{2,63}(?: [A-Z][a-z]+){0,2})"
)


def parse(text: str, signatures: Sequence[Signature]) -> Code | None:
    """Read a code as people write it; None if the text is something else."""
    text = text.strip()
    if (named := _by_name(text, signatures)) is not None:
        return named
    found = _ASKED.fullmatch(text)
    if found is None:
        return None
    kind = KINDS.get(found["word"].lower()) or _generic(found["word"].lower(), signatures)
    value = found["value"]
    if kind is None or (value[0].isalpha() and kind in (_EXIT, _ERRNO, _CUDA)):
        return None
    return _code(kind, value)


def _by_name(text: str, signatures: Sequence[Signature]) -> Code | None:
    """Read a bare name: ``SIGKILL``, ``EDQUOT``, ``NODE_FAIL``, ``IBV_WC_RETRY_EXC_ERR``, ``ncclRemoteError``."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{3,39}", text):
        return None
    upper = text.upper()
    if upper.startswith("SIG") and upper in signal.Signals.__members__:
        return _code(_SIGNAL, upper)
    if (number := getattr(errno, upper, None)) is not None and text == upper:
        return _code(_ERRNO, str(number))
    for signature in signatures:
        for key, row in signature.table.items():
            if row.get("mnemonic") == text or (key == text and text == upper and text != "DEFAULT"):
                own = Kind(signature.title, (), (signature.id,))
                return Code(next((k for k in KINDS.values() if signature.id in k.ids), own), text, (key,))
    return None


def _generic(word: str, signatures: Sequence[Signature]) -> Kind | None:
    """Return the tables selected by a capture of that name, or the signature of that id."""
    ids = tuple(s.id for s in signatures if s.table and word in (s.id, s.table_key))
    return Kind(word, (), ids) if ids else None


def _code(kind: Kind, value: str) -> Code:  # noqa: PLR0911 - one branch per family
    """Return the code with every spelling its tables may use."""
    if kind is _EXIT:
        return _exit(value)
    if kind is _SIGNAL:
        number, name = _signal(value)
        note = f"{name} is signal {number}." if name else ""
        return Code(kind, value, tuple(filter(None, (number, name))), note=note)
    if kind is _NCCL and value.isdigit() and int(value) < len(_NCCL_NAMES):
        return Code(kind, value, (_NCCL_NAMES[int(value)],), note="Success, no error." if value == "0" else "")
    if kind is _ERRNO and value.isdigit():
        name, text = errno.errorcode.get(int(value), ""), os.strerror(int(value))
        note = f"errno {value} is {name}: {text}." if name else f"errno {value} has no name in the C library."
        return Code(kind, value, (value,), f"OSError: [Errno {value}] {text}", note)
    if kind is _RSYNC:
        return Code(kind, value, (value,), _RSYNC_VANISHED if value == "24" else "")
    if kind is _CUDA and value.isdigit():
        found = CUDA_TEXT.get(int(value))
        note = f'Logs carry the text "{found}".' if found else ""
        return Code(kind, value, (value,), f"RuntimeError: CUDA error: {found}" if found else "", note)
    return Code(kind, value, tuple(dict.fromkeys((value, value.upper(), value.lower(), value.capitalize()))))


def _signal(value: str) -> tuple[str, str]:
    """Return number and name of a signal; empty where there is none."""
    name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
    for known in signal.Signals:
        if value in (str(known.value), f"-{known.value}") or name == known.name:
            return str(known.value), known.name
    return value, ""


def _exit(value: str) -> Code:
    """Return an exit code: -n and 128+n both mean signal n; Slurm writes exit:signal."""
    status, _, ended_by = value.partition(":")
    if ended_by == "125":
        note = "Slurm writes 0:125 when its step ran out of memory; 125 is no signal."
        return Code(_SLURM, value, ("OUT_OF_MEMORY",), note=note)
    number = -int(ended_by) if ended_by and int(ended_by) else int(status)
    by = -number if number < 0 else number - 128 if 128 < number <= 192 else 0
    if not by:
        return Code(_EXIT, value, (str(number),))
    name = _signal(str(by))[1]
    named = f"signal {by} ({name})" if name else f"signal {by}"
    note = f"{value} means: ended by {named}; Python writes {-by}, shells and containers {128 + by}."
    return Code(_EXIT, value, (str(-by), str(128 + by)), note=note)


def tables(code: Code, signatures: Sequence[Signature]) -> list[Signature]:
    """Return the signatures whose tables hold codes of this kind, the most telling first."""
    found = [s for s in signatures if s.table and (s.table_key in code.kind.keys or s.id in code.kind.ids)]
    order = {name: position for position, name in enumerate(code.kind.ids)}
    return sorted(found, key=lambda s: (order.get(s.id, len(order)), s.id))


def rows(code: Code, signatures: Sequence[Signature]) -> Iterator[Signature]:
    """Yield the signature of every row that knows the code; rows that say the same once."""
    seen: set[tuple[str, str]] = set()
    for signature in tables(code, signatures):
        key = next((s for s in code.spellings if s in signature.table), None)
        if key is None:
            continue
        row = signature.resolve(key)
        said = (row.title, str(signature.table[key].get("meaning")))
        if said not in seen:
            seen.add(said)
            yield row


def neighbours(code: Code, signatures: Sequence[Signature], count: int = 4) -> list[Signature]:
    """Return the rows nearest to a code that no table knows: by number, by spelling for names."""
    for signature in tables(code, signatures):
        keys = [key for key in signature.table if key != "default"]
        if re.fullmatch(r"-?\d+", code.value):
            numbers = sorted(
                (int(k) for k in keys if re.fullmatch(r"-?\d+", k)), key=lambda n: abs(n - int(code.value))
            )
            near = [str(number) for number in sorted(numbers[:count])]
        else:
            near = difflib.get_close_matches(code.value.upper(), keys, n=count, cutoff=0.3) or keys[:count]
        if near:
            return [signature.resolve(key) for key in near]
    return []
