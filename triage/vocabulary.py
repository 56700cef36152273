"""The closed sets of words that signatures, playbooks and reports are written in.

Levels and correlation words follow Sigma, severity numbers the OpenTelemetry log data model; the failure
classes are the list of playbooks (docs/architecture.md).
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Role(str, Enum):
    """What a signature hit may do in an argument about causes."""

    ROOT = "root"  # may open a hypothesis of its class
    SYMPTOM = "symptom"  # consequence: looks for a cause first
    CONFIRMATION = "confirmation"  # strengthens a hypothesis, opens none
    CONTEXT = "context"  # a fact (version, schedule, progress); a correlator may use it
    ADVICE = "advice"  # text that names possible causes; never evidence
    BENIGN = "benign"  # a look-alike that is known to be harmless


class Level(str, Enum):
    """How bad a hit is for the job (Sigma's five words)."""

    INFORMATIONAL = "informational"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def order(self) -> int:
        """Position from 0 (informational) to 4 (critical)."""
        return list(Level).index(self)


class Status(str, Enum):
    """Life cycle of a signature (Sigma's words)."""

    EXPERIMENTAL = "experimental"
    TEST = "test"
    STABLE = "stable"
    DEPRECATED = "deprecated"


class Strength(str, Enum):
    """How surely the class, once present, prints this line."""

    CONCLUSIVE = "conclusive"
    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"


class Noise(str, Enum):
    """How often the line is printed where the class is absent."""

    NEVER = "never"
    RARE = "rare"
    COMMON = "common"


class Scope(str, Enum):
    """Within which place a hit, or an edge between two classes, holds."""

    DEVICE = "device"
    RANK = "rank"
    HOST = "host"
    RACK = "rack"
    JOB = "job"
    PATH = "path"
    CLUSTER = "cluster"


class Origin(str, Enum):
    """Who printed a line: decides which signatures may speak about it."""

    KERNEL = "kernel"  # dmesg, /dev/kmsg, kern.log, journal with _TRANSPORT=kernel
    SYSLOG = "syslog"  # daemons: systemd, chronyd, nvidia-fabricmanager, ...
    CRON = "cron"  # cron daemon lines
    NCCL = "nccl"
    TRAINING = "training"  # frameworks, launchers, user code: stdout and stderr of a job
    SLURM = "slurm"  # slurmstepd, srun, slurmd, slurmctld
    KUBERNETES = "kubernetes"
    CRONTAB = "crontab"
    DUMP = "dump"  # output of a command: nvidia-smi, df, ibstat, ulimit ...
    GENERIC = "generic"  # nothing tells


class Owner(str, Enum):
    """Who acts on a diagnosis."""

    HARDWARE = "hardware"
    NETWORK = "network"
    STORAGE = "storage"
    SCHEDULER = "scheduler"
    USER_CODE = "user-code"
    UNKNOWN = "unknown"


class Restart(str, Enum):
    """The decision an on-call engineer needs first."""

    NOW = "now"
    AFTER_FIX = "after-fix"
    DO_NOT = "do-not"
    UNCLEAR = "unclear"


class StepKind(str, Enum):
    """Sections of a playbook."""

    CONFIRM = "confirm"
    MITIGATE = "mitigate"
    FIX = "fix"
    PREVENT = "prevent"


class Risk(str, Enum):
    """What running a playbook's command may do to others."""

    SAFE = "safe"
    DISRUPTIVE = "disruptive"
    DESTRUCTIVE = "destructive"


class TimeBasis(str, Enum):
    """Where the time of a line comes from, best first."""

    STAMP = "stamp"  # the line's own, with zone
    ASSUMED_ZONE = "assumed-zone"  # the line's own, zone inferred
    ASSUMED_YEAR = "assumed-year"  # the line's own, year (and zone) inferred
    UPTIME = "uptime"  # seconds since boot, anchored by the bundle
    INHERITED = "inherited"  # from a neighbour in the same file
    NONE = "none"  # order only


UNKNOWN_CLASS: Final = "unknown"

CLASSES: Final[tuple[str, ...]] = (
    # the seven card classes
    "nccl-timeout", "gpu-oom", "host-oom", "dataloader-hang", "gradient-explosion",
    "file-lock-contention", "cron-rsync-race",
    # communication
    "nccl-init-failure", "collective-mismatch", "rank-crash", "straggler", "ib-link",
    "network-config", "network-fallback", "network-bootstrap",
    # GPU
    "gpu-fallen-off-bus", "gpu-ecc", "gpu-nvlink", "gpu-thermal", "gpu-app-fault", "gpu-driver",
    # host
    "pcie-aer", "host-memory-ecc", "fd-limit", "memlock-limit", "clock-skew", "shm-exhausted",
    # storage
    "disk-full", "storage-stall", "nvme-failure", "checkpoint-corruption",
    # other
    "version-mismatch", "scheduler-kill", UNKNOWN_CLASS,
)  # fmt: skip
