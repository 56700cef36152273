"""What the series show: planted faults are found, clean and noisy series stay silent. All logs here are composed."""

# ruff: noqa: E501  (log lines)

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.metrics import parse
from triage.series import SeriesEvent, detect
from triage.series import restarts as restarts_of
from triage.series.stats import rises
from triage.vocabulary import CLASSES, Role

Row = Callable[[int, float], str]

TRAINERS: dict[str, tuple[str, Row]] = {
    "megatron": (
        "step_time_s",
        lambda i, v: (
            f" iteration {i:8d}/  500000 | consumed samples: {i * 1024:12d} | elapsed time per iteration (ms): {v * 1000:.1f} | learning rate: "
            f"1.500000E-04 | global batch size:  1024 | lm loss: 2.731245E+00 | loss scale: 1.0 | grad norm: 0.412 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        ),
    ),
    "deepspeed": (
        "throughput",
        lambda i, v: f"epoch=0/micro_step={i}/global_step={i}, RunningAvgSamplesPerSec=50.0, CurrSamplesPerSec={50 / v:.6f}, MemAllocated=1.2GB",
    ),
    "hf 4": ("loss", lambda i, v: f"{{'loss': {v:.4f}, 'grad_norm': 1.23, 'learning_rate': 4.9e-05, 'epoch': {i / 1000:.4f}}}"),
    "hf 5": ("loss", lambda i, v: f"{{'loss': '{v:.4g}', 'grad_norm': '1.23', 'learning_rate': '4.9e-05', 'epoch': '{i / 1000:.4f}'}}"),
    "lightning": ("loss", lambda i, v: f"Epoch 0:  12%|#2 | {i}/100000 [00:10<01:20,  1.10it/s, v_num=3, train_loss={v:.3f}]"),
    "nemo": (
        "step_time_s",
        lambda i, v: f"Training epoch 0, iteration {i}/999999 | lr: 0.0003 | global_step: {i} | reduced_train_loss: 2.31 | train_step_timing in s: {v:.4g}",
    ),
    "torchtitan": (
        "throughput",
        lambda i, v: f"[titan] 2024-05-01 12:00:00,123 - root - INFO - step: {i:2d}  loss:  2.31000  grad_norm:  1.2000  memory: 40.11GiB(50.70%)  "
        f"tps: {50_000 / v:,.0f}  tflops: 234.56  mfu: 40.12%",
    ),
    "fairseq": (
        "throughput",
        lambda i, v: f"2021-03-29 09:19:20 | INFO | train_inner | epoch 002:     40 / 356 loss=10.290, ppl=720.00, wps={1e5 / v:.1f}, num_updates={i}, gnorm=1.9",
    ),
    "composer": ("loss", lambda i, v: f"\t Train loss/train/total: {v:.4f}"),
    "nanogpt": ("step_time_s", lambda i, v: f"iter {i}: loss 2.3012, time {v * 1000:.2f}ms, mfu 12.00%"),
    "mae": (
        "step_time_s",
        lambda i, v: f"Epoch: [1]  [{i:5d}/99999]  eta: 0:12:21  lr: 0.000412  loss: 3.4020 (3.3434)  time: {v:.4f}  data: 0.0068  max mem: 14210",
    ),
    "key=value": ("throughput", lambda i, v: f"2026-11-09 01:00:30,601 +0100 gn09 rank=0 step={i} loss=2.3156 gnorm=0.321 tok/s={4000 / v:.1f}k"),
}  # fmt: skip


def noise(rng: random.Random, kind: str = "gauss") -> float:
    if kind == "student":
        return rng.gauss(0, 1) / math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)) / 3)
    if kind == "spiky":
        return rng.gauss(0, 1) + (rng.uniform(5, 50) if rng.random() < 0.03 else 0.0)
    return rng.expovariate(1) if kind == "exponential" else rng.gauss(0, 1)


def planted(rng: random.Random, sigmas: float, at: int, count: int, kind: str = "gauss") -> list[float]:
    """Level 4 with sigma 2 %, raised by ``sigmas`` from ``at`` on."""
    return [4 + 0.08 * (noise(rng, kind) + (sigmas if i >= at else 0)) for i in range(count)]


def seen(texts: Sequence[str], until: float | None = None, times: Sequence[float] | None = None) -> list[SeriesEvent]:
    lines = [("train.log", i, text, None if times is None else times[i - 1]) for i, text in enumerate(texts, 1)]
    return detect(parse(lines), until)


def named(events: Sequence[SeriesEvent], signature: str) -> SeriesEvent:
    found = [event for event in events if event.signature == signature]
    assert found, [event.text for event in events]
    return found[0]


def accused(events: Sequence[SeriesEvent]) -> list[str]:
    return [event.text for event in events if event.role in (Role.ROOT, Role.SYMPTOM)]


@pytest.mark.parametrize(("sigmas", "within"), [(4.0, 5), (2.0, 30)])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_planted_shift_is_found(trainer: str, sigmas: float, within: int) -> None:
    """The bar: 10,000 steps of each trainer; at least 4 robust sigma within 5 steps, 2 sigma within 30."""
    metric, row = TRAINERS[trainer]
    rng = random.Random(f"{trainer}{sigmas}")
    at = rng.randrange(1000, 9000)
    values = planted(rng, sigmas, at, 10_000)
    events = [event for event in seen([row(i, v) for i, v in enumerate(values)]) if event.metric == metric]
    assert len(events) == 1, [event.text for event in events]
    assert abs(events[0].line - 1 - at) <= within
    assert not events[0].recovered
    assert events[0].class_ == ("gradient-explosion" if metric == "loss" else "straggler")


@pytest.mark.parametrize(("sigmas", "points"), [(6.0, 6), (2.0, 40)])
def test_shift_is_found_soon_after_it_begins(sigmas: float, points: int) -> None:
    rng = random.Random(5)
    hits = sum(bool(rises(planted(rng, sigmas, 1000, 1000 + points))) for _ in range(40))
    assert hits >= 36


@pytest.mark.parametrize("kind", ["gauss", "student", "spiky", "exponential"])
def test_clean_noise_is_silent(kind: str) -> None:
    """The bar: fewer than one false event in 10,000 steps."""
    rng = random.Random(kind)
    false = sum(len(rises([4 + 0.08 * noise(rng, kind) for _ in range(10_000)])) for _ in range(10))
    assert false < 10


def test_clean_training_log_is_silent() -> None:
    """Falling loss, log-normal gradient norms, saving every 500 steps, slow first steps."""
    rng = random.Random(3)
    texts = []
    for i in range(10_000):
        loss = 2.2 + 8 / (1 + i / 100) + 0.05 * rng.gauss(0, 1)
        norm = 0.3 * math.exp(0.7 * rng.gauss(0, 1)) * (30 if rng.random() < 0.003 else 1)
        span = 1.4 + 0.03 * rng.gauss(0, 1) + (20 if i == 0 else 0) + (6 if i % 500 == 499 else 0)
        texts.append(f"step {i}/10000 | loss {loss:.4f} | grad_norm {norm:.4f} | step_time {span:.3f}s")
    assert seen(texts) == []


def simple(losses: Sequence[float], norms: Sequence[float] | None = None) -> list[str]:
    norms = norms or [1.0 + 0.01 * (i % 7) for i in range(len(losses))]
    return [
        f"step={i} loss={loss:.4f} grad_norm={norm:.4f}"
        for i, (loss, norm) in enumerate(zip(losses, norms, strict=True))
    ]


def calm(count: int, seed: int = 1, level: float = 2.2) -> list[float]:
    rng = random.Random(seed)
    return [level + 0.01 * rng.gauss(0, 1) for _ in range(count)]


def test_loss_nan_to_the_end() -> None:
    event = named(seen(simple([*calm(50), *[math.nan] * 4])), "series-loss-nan")
    assert (event.line, event.role, event.class_, event.recovered) == (51, Role.ROOT, "gradient-explosion", False)


def test_loss_nan_that_recovers_is_context() -> None:
    events = seen(simple([*calm(50), math.nan, *calm(50)]))
    assert not accused(events)
    assert named(events, "series-nan-recovered").until_line == 52


def megatron(
    i: int, loss: str = "lm loss: 2.731245E+00 | ", skipped: int = 0, norm: str = "0.412", scale: float = 1.0
) -> str:
    return (
        f" iteration {i:8d}/  500000 | consumed samples: {i * 1024:12d} | elapsed time per iteration (ms): 5123.4 | learning rate: 1.5E-04 | "
        f"global batch size:  1024 | {loss}loss scale: {scale} | grad norm: {norm} | number of skipped iterations: {skipped:3d} | "
        "number of nan iterations:   0 |"
    )


def test_vanished_loss_is_nan() -> None:
    texts = [megatron(i) for i in range(20)] + [megatron(i, loss="", norm="nan") for i in range(20, 24)]
    assert named(seen(texts), "series-loss-vanished").line == 21


def test_skipped_first_iterations_print_no_loss_and_are_normal() -> None:
    texts = [megatron(i, loss="", skipped=1, scale=2.0 ** (32 - i)) for i in range(12)] + [
        megatron(i) for i in range(12, 40)
    ]
    assert not seen(texts)


def test_zero_gradient_norm_is_a_defect_of_some_builds() -> None:
    assert not seen([megatron(i, norm="0.000") for i in range(60)])


def test_frozen_loss_beside_nan_gradient() -> None:
    texts = [
        f"{{'loss': {2.3 - i / 1000:.4f}, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': {i / 100}}}"
        for i in range(30)
    ]
    texts += [f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4.9e-05, 'epoch': {i / 100}}}" for i in range(30, 34)]
    assert named(seen(texts), "series-loss-frozen").line == 31
    zeros = [f"[RANK0]: Iter: {i}000 Time(1000 iters): 1.47s Loss: 0.000000" for i in range(1, 40)]
    assert not seen(zeros)


def test_noisy_loss_that_settles_higher_is_no_explosion() -> None:
    rng = random.Random(8)
    losses = [abs(0.10 + 0.03 * rng.gauss(0, 1)) for _ in range(300)] + [
        abs(0.125 + 0.03 * rng.gauss(0, 1)) for _ in range(200)
    ]
    assert not accused(seen(simple(losses)))


def test_spike_that_stays_and_spike_that_recovers() -> None:
    stays = named(seen(simple([*calm(100), *calm(60, 2, 4.9)])), "series-loss-jump")
    assert (stays.line, stays.role) == (101, Role.ROOT)
    spike = [5.1 * math.exp(-i / 8) + 2.2 for i in range(30)]
    events = seen(simple([*calm(100), *spike, *calm(100, 3)]))
    assert not accused(events)
    back = named(events, "series-loss-spike-recovered")
    assert back.recovered
    assert back.line == 101


def test_loss_explodes_at_the_end_of_the_log() -> None:
    event = named(seen(simple([*calm(80), 4.0, 6.5, 9.9])), "series-loss-jump")
    assert event.line == 81


def test_gradient_norm_grows_before_divergence() -> None:
    norms = [*[1.0 + 0.05 * (i % 5) for i in range(100)], *[math.exp(i / 8) for i in range(50)]]
    event = named(seen(simple(calm(150), norms)), "series-grad-norm-growth")
    assert event.role is Role.ROOT
    assert 100 <= min(event.lines) <= 125


def overflow(scale: float) -> str:
    return f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale / 2}"


def test_overflow_storm_with_rising_loss() -> None:
    texts = [f"step={i} loss={2.6 + i / 1000:.3f}" for i in range(4)]
    for i in range(12):
        texts += [overflow(2.0 ** (20 - i)), f"step={4 + i} loss={4 + i / 4:.3f}"]
    event = named(seen(texts), "series-overflow-storm")
    assert (event.line, event.role) == (5, Role.ROOT)


def test_search_for_the_first_scale_is_normal() -> None:
    texts = [text for i in range(16) for text in (overflow(2.0 ** (32 - i)), f"step={i} loss={11 - i / 100:.3f}")]
    assert not accused(seen(texts))
    assert not accused(seen([*texts, *[f"step={i} loss={10 - i / 100:.3f}" for i in range(16, 200)]]))
    rare = [
        text for i in range(400) for text in ([overflow(65536.0)] if i % 100 == 50 else []) + [f"step={i} loss=2.3"]
    ]
    assert not seen(rare)


def test_scale_below_one_is_a_collapse() -> None:
    texts = [f"NOTE: overflow detected, setting loss scale to: {2.0**-i}" for i in range(7, 13)]
    assert named(seen(texts), "series-loss-scale-collapse").line == 6


def timed(
    spans: Sequence[float], data: Sequence[float] | None = None, rate: Sequence[float] | None = None
) -> list[str]:
    return [
        f"step={i} loss=2.3 step_time={span:.4f}s"
        + (f" data_time={data[i]:.4f}" if data else "")
        + (f" samples/s={rate[i]:.2f}" if rate else "")
        for i, span in enumerate(spans)
    ]


def test_small_lasting_slowdown() -> None:
    event = named(seen(timed([*calm(30, 1, 105.0), *calm(15, 2, 110.9)])), "series-step-time-shift")
    assert event.class_ == "straggler"
    assert (event.role, event.line, event.until_line) == (Role.ROOT, 31, None)
    assert event.fields["share"] == pytest.approx(0.056, abs=0.002)


def test_slowdown_that_ends_or_returns_periodically_is_context() -> None:
    once = seen(timed([*calm(60, 1, 1.0), *calm(20, 2, 1.3), *calm(60, 3, 1.0)]))
    assert not accused(once)
    assert named(once, "series-slowdown-recovered").recovered
    spans = [span + (0.5 if i % 100 >= 85 else 0) for i, span in enumerate(calm(600, 4, 1.0))]
    periodic = seen(timed(spans))
    assert not accused(periodic)


def test_larger_batch_is_not_a_slow_machine() -> None:
    spans = [*calm(60, 1, 1.0), *calm(60, 2, 1.5)]
    rate = [*calm(60, 3, 64.0), *calm(60, 4, 64.0)]
    assert not accused(seen(timed(spans, rate=rate)))
    slow = [*calm(60, 3, 64.0), *calm(60, 4, 42.7)]
    assert accused(seen(timed(spans, rate=slow)))


def test_slow_drift() -> None:
    rng = random.Random(2)
    spans = [1.0 + max(0, i - 300) * 0.0004 + 0.01 * rng.gauss(0, 1) for i in range(2000)]
    events = seen(timed(spans))
    assert accused(events)
    assert {event.class_ for event in events} == {"straggler"}


def test_time_since_start_is_not_a_drift() -> None:
    assert not seen([f"step={i} loss=2.3 time={1.5 * i:.1f}" for i in range(1, 300)])


def test_waiting_for_data_explains_the_slowdown() -> None:
    spans, data = [*calm(60, 1, 1.0), *calm(60, 2, 2.0)], [*calm(60, 3, 0.05), *calm(60, 4, 1.04)]
    event = named(seen(timed(spans, data)), "series-loader-wait")
    assert (event.role, event.class_) == (Role.SYMPTOM, "storage-stall")


def test_slow_rank_against_its_peers() -> None:
    rng = random.Random(4)
    texts = [
        f"[rank{rank}] step {i} | loss 2.3 | step_time {(1.4 if rank == 5 else 1.1) + 0.01 * rng.gauss(0, 1):.3f}s"
        for i in range(40)
        for rank in range(8)
    ]
    assert named(seen(texts), "series-slow-rank").rank == 5
    assert not seen([text for text in texts if "rank5" not in text])


def probes(values: Sequence[float]) -> list[str]:
    return [f"2026-11-09 01:17:49 gn09 rank=0 probe_acc={value}" for value in values]


def test_metric_dip_that_comes_back() -> None:
    events = seen(probes([0.7002, 0.479, 0.6983, 0.6974, 0.4962, 0.6995, 0.6965, 0.7012, 0.699, 0.6985, 0.508, 0.7014]))
    assert [(event.line, event.class_, event.role, event.recovered) for event in events] == [
        (line, "checkpoint-corruption", Role.SYMPTOM, True) for line in (2, 5, 11)
    ]


def test_metric_step_that_stays() -> None:
    event = named(seen(probes([0.824, 0.825, 0.8245, 0.8252, 0.825, 0.8248, 0.792])), "series-metric-drop")
    assert (event.line, event.recovered) == (7, False)


def test_ordinary_evaluations_are_silent() -> None:
    rng = random.Random(6)
    rising = [0.7 - 0.5 / (1 + i / 3) + 0.01 * rng.gauss(0, 1) for i in range(60)]
    assert not seen(probes([round(value, 4) for value in rising]))
    assert not seen([f"step:{i * 125}/3000 val_loss:{3.2 + 3 / (1 + i):.4f}" for i in range(24)])


def test_silence_needs_a_known_end() -> None:
    texts, times = timed(calm(50, 1, 2.0)), [1000.0 + 2 * i for i in range(50)]
    assert not seen(texts, None, times)
    assert not seen(texts, 1150.0, times)
    assert named(seen(texts, 3000.0, times), "series-silence").line == 50


def test_attempts_are_judged_apart() -> None:
    first, second = timed(calm(60, 1, 1.0)), timed(calm(60, 2, 1.5))
    assert not accused(seen([*first, *second]))
    nan_then_restart = [*simple([*calm(40), math.nan, math.nan]), *simple(calm(40, 5))]
    event = named(seen(nan_then_restart), "series-loss-nan")
    assert event.fields["attempt"] == 1


def test_steps_that_restart_with_each_epoch_are_one_attempt() -> None:
    spans = [*calm(500, 1, 1.0), *calm(500, 2, 1.2)]
    texts = [f"batch {i % 100}/100 loss 2.3 step_time={span:.4f}s" for i, span in enumerate(spans)]
    assert named(seen(texts), "series-step-time-shift").line == 501


def test_events_speak_known_words() -> None:
    events = seen([*simple([*calm(50), *[math.nan] * 4]), *probes([0.7, 0.7, 0.7, 0.4, 0.7, 0.7])])
    assert len(events) == 2
    for event in events:
        assert event.class_ in CLASSES
        assert event.signature.startswith("series-")
        assert event.text
        assert event.lines[0] == event.line


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 2.5, 1e308, -1e308])), max_size=60),
    st.lists(st.integers(0, 30), min_size=1, max_size=60),
)
def test_any_numbers_are_survived(values: list[float], steps: list[int]) -> None:
    texts = [
        f"step={steps[i % len(steps)]} loss={v!r} grad_norm={v!r} step_time={v!r}s data_time={v!r} loss_scale={v!r} val_acc={v!r}"
        for i, v in enumerate(values)
    ]
    seen([text for i, value in enumerate(texts) for text in ([overflow(i), value] if i % 3 else [value])], 1e12)


def test_empty_and_short_input() -> None:
    assert detect(()) == []
    assert seen(["step=1 loss=2.3"]) == []
    assert seen(simple([2.3, 2.2])) == []


@pytest.mark.parametrize(
    ("rank", "back", "restarts"),
    [
        ("[Rank 3] ", 20, 1),  # one writer: any step back is a new start
        ("", 20, 0),  # several writers may print the same few steps in turn
        ("", 200, 1),
        ("[Rank 3] ", 0, 0),
    ],
)
def test_a_counter_that_goes_back_is_a_new_attempt(rank: str, back: int, restarts: int) -> None:
    steps = [*range(400, 640, 20), *range(640 - 20 - back + (20 if back == 0 else 0), 900, 20)]
    texts = [f"2026-03-01 02:00:00,000 INFO {rank}step={step} loss=2.31 grad_norm=0.31" for step in steps]
    points = parse([("train.log", number, text, None) for number, text in enumerate(texts, 1)])
    assert len(restarts_of(points).get("train.log", [])) == restarts
