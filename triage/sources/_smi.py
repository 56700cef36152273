"""What the readers of nvidia-smi share: the names of the fields, and what follows from the values of one GPU.

Values that say that a card is lost or must be reset (``GPU is lost``, ``[GPU requires reset]``, ``ERR!``) become the
field ``state``. The line of each value is kept, so that a row can cite the one that matters most.
"""

from __future__ import annotations

import re
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, number, whole
from triage.sources.base import Row

BUSY_PERCENT: Final = 20.0

_BAD: Final = (
    (re.compile(r"GPU is lost", re.IGNORECASE), "lost"),
    (re.compile(r"requires? reset|reset required", re.IGNORECASE), "requires-reset"),
    (re.compile(r"\bERR!|Unknown Error", re.IGNORECASE), "error"),
)
_NOTHING: Final = re.compile(
    r"^\[?(?:N/A|Not Supported|Not Available|Not Found|-|Unknown|Requested functionality .*)?\]?$", re.IGNORECASE
)
_PCI: Final = re.compile(r"^(?:0000)?([0-9A-Fa-f]{4}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.[0-7])?$")
_REASONS: Final = {
    0x1: "idle", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}  # fmt: skip
_WORDS: Final = frozenset(
    {"recovery_action", "fabric_state", "fabric_status", "ecc_mode", "mig_mode", "persistence_mode"}
)
_TEXT: Final = _WORDS | {
    "name", "uuid", "timestamp", "pstate", "gsp_firmware", "driver_version", "cuda_version", "host", "serial",
}  # fmt: skip

_DECISIVE: Final[tuple[tuple[str, Scalar], ...]] = (
    ("state", None), ("reset_required", True), ("remap_failure", True), ("unrepairable_memory", True),
    ("sram_threshold_exceeded", True), ("ecc_uncorrected_volatile", 1), ("hw_thermal_slowdown", True),
    ("sw_thermal_slowdown", True), ("recovery_action", None), ("hw_power_brake", True), ("hw_slowdown", True),
    ("clocks_event_reasons", 8), ("remap_pending", True), ("retired_pending", True),
    ("drain_and_reset_recommended", True),
    ("fabric_state", None), ("pcie_width_current", None), ("temperature_c", 85), ("ecc_uncorrected_aggregate", 1),
    ("temperature_c", None),
)  # fmt: skip
"""Fields in the order in which they matter, with the value (or least number) that makes them matter."""


def pci(text: str) -> str | None:
    """Return ``dddd:bb:dd`` for a PCI address of nvidia-smi."""
    found = _PCI.match(text.strip())
    return f"{found[1]}:{found[2]}:{found[3]}".lower() if found else None


def state_of(text: str) -> str | None:
    """Return ``lost``, ``requires-reset`` or ``error`` for a value that is no value."""
    return next((word for pattern, word in _BAD if pattern.search(text)), None)


def flag(text: str) -> bool | None:
    """Read ``Active`` / ``Not Active``, ``Yes`` / ``No``, ``Enabled`` / ``Disabled``, ``1`` / ``0``."""
    word = text.strip().lower().strip("[]")
    if word in ("active", "yes", "enabled", "1", "true"):
        return True
    return False if word in ("not active", "no", "disabled", "0", "false") else None


class Sample:
    """What one GPU told at one time."""

    def __init__(self, kind: str, line: Line) -> None:
        self.kind = kind
        self.first = self.last = line
        self.fields: dict[str, Scalar] = {}
        self.lines: dict[str, Line] = {}

    def put(self, name: str, text: str, line: Line) -> None:
        """Read the text of a value into field ``name``; sums fields whose name ends in ``+``."""
        self.last = line
        text = text.strip()
        if (bad := state_of(text)) is not None:
            self.fields.setdefault("state", bad)
            self.lines.setdefault("state", line)
            return
        if _NOTHING.match(text):
            return
        value = self._value(name.rstrip("+"), text)
        if value is None:
            return
        adds = name.endswith("+")
        name = name.rstrip("+")
        known = self.fields.get(name)
        if adds and isinstance(known, (int, float)) and isinstance(value, (int, float)):
            if value > 0:
                self.lines[name] = line
            self.fields[name] = known + value
        elif known is None:
            self.fields[name] = value
            self.lines[name] = line

    @staticmethod
    def _value(name: str, text: str) -> Scalar:
        if name == "pci":
            return pci(text)
        if name in _TEXT:
            return re.sub(r"[ _]+", "-", text.lower()) if name in _WORDS else text
        if name == "clocks_event_reasons":
            return int(text, 16) if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", text) else None
        if name in FLAGS:
            return flag(text)
        value = number(text)
        return None if value is None else whole(value)

    def row(self, host: str | None = None) -> Row:
        """Return the row of this sample with everything that follows from its values."""
        fields = self.fields
        _reasons(fields)
        _derive(fields)
        if host is not None:
            fields.setdefault("host", host)
        line = self._decisive()
        return Row(self.kind, line.number, max(self.last.number, line.number), dict(fields), line.text)

    def _decisive(self) -> Line:
        for name, least in _DECISIVE:
            value = self.fields.get(name)
            if value is None or name not in self.lines or not _matters(name, value, least, self.fields):
                continue
            return self.lines[name]
        return self.first


def _matters(name: str, value: Scalar, least: Scalar, fields: dict[str, Scalar]) -> bool:
    if name == "recovery_action":
        return value not in ("none", "n/a")
    if name == "fabric_state":
        return value not in ("completed", "n/a")
    if name == "pcie_width_current":
        deficit = fields.get("pcie_width_deficit")
        return isinstance(deficit, int) and deficit > 0
    if isinstance(least, bool):
        return value is least
    if isinstance(least, int):
        return isinstance(value, (int, float)) and value >= least
    return True


def _reasons(fields: dict[str, Scalar]) -> None:
    """Spread the bitmask of clock event reasons over the flags."""
    mask = fields.get("clocks_event_reasons")
    if isinstance(mask, int):
        for bit, name in _REASONS.items():
            fields.setdefault(name, bool(mask & bit))


def _derive(fields: dict[str, Scalar]) -> None:
    """Add ``thermal_slowdown``, ``load`` (busy, idle, unknown) and what the PCIe link lacks."""
    thermal = [fields[name] for name in ("hw_thermal_slowdown", "sw_thermal_slowdown") if name in fields]
    if thermal:
        fields["thermal_slowdown"] = any(thermal)
    used = fields.get("utilization_percent")
    if isinstance(used, (int, float)):
        fields["load"] = "busy" if used >= BUSY_PERCENT else "idle"
    elif isinstance(fields.get("idle"), bool):
        fields["load"] = "idle" if fields["idle"] else "busy"
    else:
        fields["load"] = "unknown"
    for name in ("width", "gen"):
        have, best = fields.get(f"pcie_{name}_current"), fields.get(f"pcie_{name}_max")
        if isinstance(have, int) and isinstance(best, int):
            fields[f"pcie_{name}_deficit"] = max(0, best - have)
    if "timestamp" in fields:
        fields["at"] = fields["timestamp"]


FLAGS: Final = frozenset(
    {
        "idle", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake", "sw_thermal_slowdown",
        "sync_boost", "remap_pending", "remap_failure", "retired_pending", "sram_threshold_exceeded",
        "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory", "reset_required",
        "drain_and_reset_recommended",
    }
)  # fmt: skip
"""Fields that are true or false."""


def _below(prefixes: tuple[str, ...], separator: str, names: dict[str, str]) -> dict[str, str]:
    """Return ``names`` with each prefix in front."""
    return {f"{prefix}{separator}{key}": name for prefix in prefixes for key, name in names.items()}


_POWER: Final = {
    "power draw": "power_w", "average power draw": "power_w", "instantaneous power draw": "power_instant_w",
    "current power limit": "power_limit_w", "power limit": "power_limit_w", "enforced power limit": "power_limit_w",
}  # fmt: skip
_CLOCKS_Q: Final = {
    "idle": "idle", "sw power cap": "sw_power_cap", "hw slowdown": "hw_slowdown", "sync boost": "sync_boost",
    "hw slowdown/hw thermal slowdown": "hw_thermal_slowdown", "hw thermal slowdown": "hw_thermal_slowdown",
    "hw slowdown/hw power brake slowdown": "hw_power_brake", "hw power brake slowdown": "hw_power_brake",
    "sw thermal slowdown": "sw_thermal_slowdown",
}  # fmt: skip
_CLOCKS_CSV: Final = {
    "active": "clocks_event_reasons", "gpu_idle": "idle", "sw_power_cap": "sw_power_cap", "hw_slowdown": "hw_slowdown",
    "hw_thermal_slowdown": "hw_thermal_slowdown", "hw_power_brake_slowdown": "hw_power_brake",
    "sw_thermal_slowdown": "sw_thermal_slowdown", "sync_boost": "sync_boost",
}  # fmt: skip

Q_FIELDS: Final[dict[str, str]] = {
    "product name": "name", "gpu uuid": "uuid", "serial number": "serial", "minor number": "minor_number",
    "persistence mode": "persistence_mode", "mig mode/current": "mig_mode", "gsp firmware version": "gsp_firmware",
    "pci/bus id": "pci", "performance state": "pstate", "gpu recovery action": "recovery_action",
    "gpu reset status/reset required": "reset_required",
    "gpu reset status/drain and reset recommended": "drain_and_reset_recommended",
    "fabric/state": "fabric_state", "fabric/status": "fabric_status",
    "pci/gpu link info/link width/max": "pcie_width_max", "pci/gpu link info/link width/current": "pcie_width_current",
    "pci/gpu link info/pcie generation/max": "pcie_gen_max",
    "pci/gpu link info/pcie generation/current": "pcie_gen_current",
    "pci/replays since reset": "replay_count", "pci/replay number rollovers": "replay_rollovers",
    "fb memory usage/used": "memory_used_mib", "fb memory usage/total": "memory_total_mib",
    "utilization/gpu": "utilization_percent", "utilization/memory": "utilization_memory_percent",
    "ecc mode/current": "ecc_mode",
    "ecc errors/aggregate/sram threshold exceeded": "sram_threshold_exceeded",
    "ecc errors/channel repair pending": "channel_repair_pending",
    "ecc errors/tpc repair pending": "tpc_repair_pending",
    "ecc errors/unrepairable memory": "unrepairable_memory",
    "retired pages/pending page blacklist": "retired_pending", "retired pages/pending": "retired_pending",
    "retired pages/double bit ecc": "retired_double_bit",
    "remapped rows/correctable error": "remap_correctable", "remapped rows/uncorrectable error": "remap_uncorrectable",
    "remapped rows/pending": "remap_pending", "remapped rows/remapping failure occurred": "remap_failure",
    "remapped rows/bank remap availability histogram/low": "remap_banks_low",
    "remapped rows/bank remap availability histogram/none": "remap_banks_none",
    "temperature/gpu current temp": "temperature_c", "temperature/memory current temp": "memory_temperature_c",
    "temperature/gpu t.limit temp": "tlimit_headroom_c", "temperature/gpu slowdown temp": "slowdown_temp_c",
    "temperature/gpu shutdown temp": "shutdown_temp_c",
    "clocks/sm": "clock_sm_mhz", "max clocks/sm": "clock_sm_max_mhz",
    **_below(("gpu power readings", "power readings"), "/", _POWER),
    # the section "... Counters" repeats these names with lifetime values and is not read
    **_below(("clocks event reasons", "clocks throttle reasons"), "/", _CLOCKS_Q),
}  # fmt: skip
"""Path below a GPU of ``nvidia-smi -q`` -> field."""

CSV_FIELDS: Final[dict[str, str]] = {
    "index": "gpu", "pci.bus_id": "pci", "gpu_bus_id": "pci", "uuid": "uuid", "gpu_uuid": "uuid", "name": "name",
    "gpu_name": "name", "timestamp": "timestamp", "hostname": "host", "driver_version": "driver_version",
    "count": "gpu_count", "serial": "serial", "pstate": "pstate", "temperature.gpu": "temperature_c",
    "temperature.memory": "memory_temperature_c", "temperature.gpu.tlimit": "tlimit_headroom_c",
    "utilization.gpu": "utilization_percent", "utilization.memory": "utilization_memory_percent",
    "power.draw": "power_w", "power.draw.average": "power_w", "power.draw.instant": "power_instant_w",
    "power.limit": "power_limit_w", "enforced.power.limit": "power_limit_w",
    "clocks.current.sm": "clock_sm_mhz", "clocks.sm": "clock_sm_mhz", "clocks.max.sm": "clock_sm_max_mhz",
    "memory.used": "memory_used_mib", "memory.total": "memory_total_mib",
    "pcie.link.width.current": "pcie_width_current", "pcie.link.width.max": "pcie_width_max",
    "pcie.link.gen.current": "pcie_gen_current", "pcie.link.gen.max": "pcie_gen_max",
    "ecc.mode.current": "ecc_mode", "mig.mode.current": "mig_mode", "persistence_mode": "persistence_mode",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected_volatile",
    "ecc.errors.corrected.volatile.total": "ecc_corrected_volatile",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_aggregate",
    "ecc.errors.corrected.aggregate.total": "ecc_corrected_aggregate",
    "ecc.errors.uncorrected.aggregate.sram": "ecc_sram_uncorrected_aggregate",
    "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded": "sram_threshold_exceeded",
    "retired_pages.pending": "retired_pending", "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failure", "remapped_rows.uncorrectable": "remap_uncorrectable",
    "remapped_rows.correctable": "remap_correctable", "remapped_rows.histogram.low": "remap_banks_low",
    "remapped_rows.histogram.none": "remap_banks_none", "gpu_recovery_action": "recovery_action",
    "fabric.state": "fabric_state", "fabric.status": "fabric_status",
    **_below(("clocks_event_reasons", "clocks_throttle_reasons"), ".", _CLOCKS_CSV),
    # boards without a total column
    **_below(
        ("ecc.errors.uncorrected.volatile",), ".",
        dict.fromkeys(("dram", "sram", "device_memory"), "ecc_uncorrected_volatile_parts+"),
    ),
    **_below(
        ("ecc.errors.corrected.volatile",), ".",
        dict.fromkeys(("dram", "sram", "device_memory"), "ecc_corrected_volatile_parts+"),
    ),
}  # fmt: skip
"""Column of ``--query-gpu`` (without its unit) -> field."""
