from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources.base import RowSource
from triage.sources.traceback import TRACEBACKS

PLAIN = """\
loss 2.31
Traceback (most recent call last):
  File "/home/ana/exp/train.py", line 88, in <module>
    main()
  File "/home/ana/exp/train.py", line 61, in main
    batch = next(it)
            ^^^^^^^^
KeyError: 'tokens'
step 12"""

TAGGED = """\
[rank3]: Traceback (most recent call last):
[rank1]: Traceback (most recent call last):
[rank3]:   File "/home/ana/exp/train.py", line 88, in <module>
[rank1]:   File "/home/ana/exp/train.py", line 88, in <module>
[rank3]:     main()
step 4 loss 2.1
[rank1]: ValueError: one
[rank3]: ~~~~^^
[rank3]: RuntimeError: three"""

LOGGED = """\
E0512 10:21:08.164000 3304089 site-packages/torch/_x.py:72] Traceback (most recent call last):
E0512 10:21:08.164000 3304089 site-packages/torch/_x.py:72]   File "/opt/py/train.py", line 3, in <module>
E0512 10:21:08.164000 3304089 site-packages/torch/_x.py:72]     run()
E0512 10:21:08.164000 3304089 site-packages/torch/_x.py:72] TypeError: run() missing 1 argument"""

HEADER_ONLY_PREFIX = """\
2026-01-02 03:04:05,678 - app - INFO - import of x failed: Traceback (most recent call last):
  File "/opt/lib/util.py", line 3, in safe_import
    import x
ModuleNotFoundError: No module named 'x'
2026-01-02 03:04:06,000 - app - INFO - going on"""

WORKER = """\
Traceback (most recent call last):
  File "/home/ana/exp/train.py", line 12, in <module>
    for batch in loader:
  File "/opt/py/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 701, in __next__
    data = self._next_data()
OSError: Caught OSError in DataLoader worker process 2.
Original Traceback (most recent call last):
  File "/opt/py/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 309, in _worker_loop
    data = fetcher.fetch(index)
OSError: [Errno 5] Input/output error: '/data/shard-17.bin'"""

CHAINED = """\
Traceback (most recent call last):
  File "/opt/py/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 990, in _try_get_data
    data = self._data_queue.get(timeout=timeout)
RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 5, in <module>
    main()
RuntimeError: something failed while training"""

CHILD = """\
Traceback (most recent call last):
  File "/opt/py/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
============================================================
train.py FAILED"""

FINALIZER = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/util.py", line 300, in _run_finalizers
    finalizer()
FileNotFoundError: [Errno 2] No such file or directory"""

IGNORED = """\
Exception ignored in: <function Pool.__del__ at 0x7f00>
Traceback (most recent call last):
  File "/home/ana/exp/pool.py", line 3, in __del__
    self.close()
AttributeError: 'NoneType' object has no attribute 'close'"""

THREAD = """\
Exception in thread Thread-7 (_pin_memory_loop):
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1016, in _bootstrap_inner
    self.run()
ConnectionResetError: [Errno 104] Connection reset by peer"""

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/home/ana/exp/train.py", line 3, in <module>
  |     go()
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/ana/exp/train.py", line 9, in go
    |     raise ValueError("x")
    | ValueError: x"""

RECORDED = """\
[0]:
  traceback : Traceback (most recent call last):
    File "/opt/py/errors/__init__.py", line 355, in wrapper
      return f(*args)
    File "/home/ana/exp/train.py", line 9, in main
      raise ValueError("bad shape")
  ValueError: bad shape

============================================================"""


def rows(text: str) -> list[dict[str, Scalar]]:
    return [{**row.fields, "line": row.line} for row in TRACEBACKS.rows(text.split("\n"))]


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        (
            PLAIN,
            8,
            {"exception": "KeyError", "message": "'tokens'", "function": "main", "file": "/home/ana/exp/train.py"}
            | {"kind": "own", "uncaught": True, "chained": False, "remote": False, "ignored": False, "teardown": False},
        ),
        (LOGGED, 4, {"exception": "TypeError", "kind": "own", "uncaught": True, "logged": "error"}),
        (HEADER_ONLY_PREFIX, 4, {"exception": "ModuleNotFoundError", "logged": "info", "uncaught": False}),
        (CHILD, 4, {"exception": "ChildFailedError", "kind": "launcher", "message": "train.py FAILED"}),
        (FINALIZER, 4, {"teardown": True, "uncaught": False}),
        (IGNORED, 5, {"ignored": True, "teardown": True}),
        (THREAD, 5, {"thread": "Thread-7", "uncaught": True, "kind": "own"}),
        (RECORDED, 7, {"exception": "ValueError", "message": "bad shape", "remote": True}),
    ],
)
def test_one_traceback(text: str, line: int, wanted: dict[str, Scalar]) -> None:
    [row] = rows(text)
    assert row["line"] == line
    assert {name: row.get(name) for name in wanted} == wanted


def test_ranks_interleave() -> None:
    got = {(row["rank"], row["exception"], row["message"], row["line"]) for row in rows(TAGGED)}
    assert got == {(1, "ValueError", "one", 7), (3, "RuntimeError", "three", 9)}


def test_loader_worker_gives_outer_and_inner() -> None:
    outer, inner = rows(WORKER)
    assert (outer["exception"], outer["where"], outer["remote"]) == ("OSError", "dataloader", False)
    assert (inner["remote"], inner["kind"], inner["message"]) == (
        True,
        "storage",
        "[Errno 5] Input/output error: '/data/shard-17.bin'",
    )


def test_the_kind_of_a_cause_is_inherited() -> None:
    first, second = rows(CHAINED)
    assert (first["kind"], first["chained"], first["chain"]) == ("loader", True, "cause")
    assert (second["kind"], second["chained"], second["follows"]) == ("loader", False, True)


def test_exception_group() -> None:
    outer, inner = rows(GROUP)
    assert outer["exception"] == "ExceptionGroup"
    assert (inner["exception"], inner["line"]) == ("ValueError", 9)


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "device"),
        ("RuntimeError: CUDA error: device-side assert triggered", "device"),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp:3, unhandled system error", "distributed"),
        ("RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [192.0.2.7]:4242", "distributed"),
        ("RuntimeError: Connection reset by peer", "distributed"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15", "interrupt"),
        ("KeyboardInterrupt", "interrupt"),
        ("MemoryError", "memory"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 3.2 GiB", "memory"),
        ("OSError: [Errno 28] No space left on device: '/ckpt/a.pt'", "storage"),
        ("_pickle.UnpicklingError: pickle data was truncated", "storage"),
        ("FloatingPointError: Minimum loss scale reached (0.0001).", "numeric"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "own"),
        ("AssertionError", "own"),
        ("socket.gaierror: [Errno -2] Name or service not known", "own"),
    ],
)
def test_kinds(last: str, kind: str) -> None:
    [row] = rows(f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\n{last}')
    assert row["kind"] == kind


def test_pipe_needs_multiprocessing_frames() -> None:
    head = "Traceback (most recent call last):\n"
    [pipe] = rows(
        head + '  File "/usr/lib/python3.11/multiprocessing/connection.py", line 1, in recv\n    f()\nEOFError'
    )
    [own] = rows(head + '  File "/home/ana/read.py", line 1, in <module>\n    f()\nEOFError')
    assert (pipe["kind"], own["kind"]) == ("pipe", "own")


def test_interrupted_in_a_lock() -> None:
    [row] = rows(
        '^CTraceback (most recent call last):\n  File "t.py", line 1, in <module>\n    f()\n'
        '  File "/opt/py/site-packages/filelock/_api.py", line 9, in acquire\n    time.sleep(poll)\nKeyboardInterrupt'
    )
    assert (row["where"], row["kind"], row.get("logged")) == ("lock", "interrupt", None)


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()',
        "Traceback (most recent call last):\nstep 1\nstep 2\nstep 3\nstep 4\nstep 5\nstep 6\nValueError: x",
        "the words Traceback (most recent call last) without a colon\nValueError: x",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nepoch: 3 done\nlower.case: text',
    ],
)
def test_incomplete_tracebacks_give_no_row(text: str) -> None:
    assert rows(text) == []


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *PLAIN.split("\n"),
                    *TAGGED.split("\n"),
                    *GROUP.split("\n"),
                    *WORKER.split("\n"),
                    *RECORDED.split("\n"),
                ]
            ),
            st.text(max_size=40),
        ),
        max_size=30,
    )
)
def test_any_lines_are_survived(lines: list[str]) -> None:
    for row in TRACEBACKS.rows(lines):
        assert 1 <= row.line <= len(lines)


def test_it_is_a_row_source() -> None:
    assert isinstance(TRACEBACKS, RowSource)
    assert not TRACEBACKS.sniff("a.log", PLAIN)
