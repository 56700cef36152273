"""What a stack of Python frames is busy with, and the tags that may stand before its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple


class Frame(NamedTuple):
    """One frame: function, file, and the index of its line in the text it was read from."""

    function: str
    file: str
    line_index: int


TAG: Final = re.compile(
    r"(?:\[(?:rank|default|Rank )?\d{1,6}\]:? ?|\([\w:.\- ]{1,60} ?pid=\d+[^)]{0,60}\) ?|\d{1,5}: )"
)
"""A mark of the process that printed a line, where no line source has taken it off."""

_RANK_TAG: Final = re.compile(r"\[rank(\d{1,6})\]")

# The first rule that fits the innermost frame wins; frames that fit none are stepped over.
_RULES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    (
        "dataloader",
        re.compile(
            r"torch/utils/data/(?:dataloader|_utils/(?:fetch|worker|pin_memory|collate))\.py|webdataset/|mosaicml_streaming|"
            r"streaming/base/|nvidia/dali|tf_data|::(?:_try_get_data|_next_data|_get_data|_next_batch|get_batch)$"
        ),
    ),
    (
        "lock",
        re.compile(
            r"filelock(?:/|\.py)|portalocker/|file_baton\.py|zc/lockfile|fasteners/|lockfile/|"
            r"::(?:flock|lockf|_acquire_restore|acquire_lock|_lock_file)$"
        ),
    ),
    (
        "collective",
        re.compile(
            r"torch/distributed/distributed_c10d\.py|torch/distributed/_functional_collectives|deepspeed/comm/|"
            r"pipe/p2p\.py|p2p_communication\.py|horovod/|mpi4py|torch/distributed/fsdp/|torch/nn/parallel/distributed\.py|"
            r"::(?:all_reduce|allreduce|all_gather|reduce_scatter|broadcast|barrier|monitored_barrier|all_to_all|"
            r"all_gather_into_tensor|reduce_scatter_tensor|send_forward|recv_forward|send_backward|recv_backward|"
            r"_store_based_barrier)$|torch/cuda/(?:__init__|streams)\.py::(?:synchronize|wait)$"
        ),
    ),
    (
        "checkpoint",
        re.compile(
            r"torch/serialization\.py|torch/distributed/checkpoint/|dist_checkpointing/|safetensors/|checkpointing\.py|"
            r"checkpoint_io|::(?:save_checkpoint|load_checkpoint|_save_checkpoint|save_state|save_pretrained|load_state_dict)$"
        ),
    ),
    (
        "io",
        re.compile(
            r"h5py/|fsspec/|s3fs/|gcsfs/|botocore/|urllib3/|requests/|tarfile\.py|zipfile\.py|gzip\.py|shutil\.py|"
            r"pyarrow/|PIL/Image\.py|numpy/lib/npyio|ssl\.py|socket\.py|pathlib\.py::(?:open|read_bytes|read_text)$"
        ),
    ),
)


class Busy(NamedTuple):
    """Where a stack stands and the frame that says so (None: nothing said so)."""

    where: str
    frame: Frame | None


def busy(frames: Sequence[Frame]) -> Busy:
    """Say what a stack does; ``frames`` are innermost first.

    Reading a file inside a loader or a checkpoint function counts as those.
    """
    found: list[Busy] = []
    for frame in frames:
        path = f"{frame.file.replace(chr(92), '/')}::{frame.function}"
        for where, pattern in _RULES:
            if pattern.search(path):
                found.append(Busy(where, frame))
                break
    if not found:
        return Busy("other", frames[0] if frames else None)
    if found[0].where == "io":
        for outer in found[1:]:
            if outer.where in ("dataloader", "checkpoint"):
                return outer
    return found[0]


def rank_of(text: str) -> int | None:
    """Return the global rank of a ``[rankN]`` tag in ``text``."""
    found = _RANK_TAG.search(text)
    return int(found[1]) if found else None


def is_library(file: str) -> bool:
    """Say whether a frame's file belongs to an installed package or to Python itself."""
    return "-packages/" in file or "/lib/python" in file or file.startswith("<frozen")
