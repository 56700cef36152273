"""Causes before symptoms, honest about what is not in evidence."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import event, incidents, timeouts
from triage.model import Event
from triage.vocabulary import Noise, Role, Scope, Strength

XID79 = {
    "strength": Strength.CONCLUSIVE,
    "noise": Noise.NEVER,
    "scope": Scope.DEVICE,
    "host": "gpu-07",
    "pci": "0000:3b:00",
}


def cause(class_: str, seconds: float | None = 590.0) -> Event:
    return event(class_, seconds, strength=Strength.CONCLUSIVE, noise=Noise.NEVER, scope=Scope.HOST, host="gpu-07")


def symptoms() -> list[Event]:
    return [
        *timeouts(8),
        event("rank-crash", 2460, role=Role.SYMPTOM, signature="exit-code", rank=3),
        event("scheduler-kill", 2470, role=Role.SYMPTOM, strength=Strength.WEAK, noise=Noise.COMMON),
    ]


def test_a_timeout_alone_is_a_timeout_of_unknown_cause() -> None:
    (only,) = incidents(*timeouts(8))
    assert only.class_ == "nccl-timeout"


def test_many_victims_do_not_outvote_one_cause() -> None:
    first = incidents(event("gpu-fallen-off-bus", 590, **XID79), *timeouts(64), *symptoms())  # type: ignore[arg-type]
    assert [i.class_ for i in first] == ["gpu-fallen-off-bus"]
    assert set(first[0].symptoms) >= {"nccl-timeout", "rank-crash"}


KILLERS = ["gpu-fallen-off-bus", "gpu-ecc", "host-oom", "ib-link", "gpu-nvlink", "nvme-failure", "host-memory-ecc"]


@pytest.mark.parametrize("class_", KILLERS)
def test_a_symptom_is_never_first_when_its_cause_is_in_the_bundle(class_: str) -> None:
    first = incidents(cause(class_), *symptoms())
    assert first[0].class_ == class_
    assert all(i.class_ not in ("nccl-timeout", "rank-crash", "scheduler-kill") for i in first)


def test_a_cause_far_outside_its_lag_window_explains_nothing() -> None:
    found = incidents(cause("gpu-ecc", -6 * 3600), *timeouts(8))
    assert [i.class_ for i in found if "nccl-timeout" in i.symptoms] == []


def test_a_fault_on_a_host_of_another_job_does_not_explain_this_job() -> None:
    fault = event(
        "gpu-ecc", 590, strength=Strength.CONCLUSIVE, noise=Noise.NEVER, scope=Scope.HOST, host="gpu-99", job="other"
    )
    found = incidents(fault, *timeouts(8, job="mine"))
    assert {i.class_ for i in found} == {"gpu-ecc", "nccl-timeout"}


def test_two_independent_faults_are_both_named() -> None:
    one = event("gpu-ecc", 100, strength=Strength.CONCLUSIVE, noise=Noise.NEVER, scope=Scope.HOST, host="gpu-01")
    two = event("nvme-failure", 90000, strength=Strength.CONCLUSIVE, noise=Noise.NEVER, scope=Scope.HOST, host="gpu-02")
    assert {i.class_ for i in incidents(one, two)} == {"gpu-ecc", "nvme-failure"}


def test_a_chain_is_told_by_its_first_link() -> None:
    aer = event(
        "pcie-aer",
        588,
        strength=Strength.STRONG,
        noise=Noise.NEVER,
        scope=Scope.DEVICE,
        host="gpu-07",
        pci="0000:3a:00",
    )
    found = incidents(aer, event("gpu-fallen-off-bus", 590, **XID79), *timeouts(8))  # type: ignore[arg-type]
    assert [i.class_ for i in found] == ["pcie-aer"]
    assert "gpu-fallen-off-bus" in found[0].symptoms


@pytest.mark.parametrize("role", [Role.CONTEXT, Role.ADVICE, Role.BENIGN, Role.CONFIRMATION])
def test_only_roots_and_symptoms_open_an_incident(role: Role) -> None:
    assert incidents(event("gpu-ecc", 0, role=role)) == []


def test_a_common_line_alone_is_no_incident() -> None:
    assert incidents(event("gradient-explosion", 0, strength=Strength.MODERATE, noise=Noise.COMMON)) == []


def test_the_log_order_counts_only_for_what_it_can_prove() -> None:
    before = incidents(event("disk-full", None, line=10), event("rank-crash", None, role=Role.SYMPTOM, line=20))
    assert before[0].class_ == "disk-full"


noise_events = st.lists(
    st.builds(
        lambda s, c: event(c, s, role=Role.CONTEXT, noise=Noise.COMMON, strength=Strength.WEAK),
        st.floats(-5000, 5000),
        st.sampled_from(["nccl-timeout", "gpu-ecc", "storage-stall"]),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(noise_events, st.sampled_from(KILLERS), st.randoms())
def test_unrelated_lines_and_their_order_leave_the_first_diagnosis(
    extra: list[Event], class_: str, shuffler: object
) -> None:
    story = [cause(class_), *symptoms()]
    mixed = [*story, *extra]
    shuffler.shuffle(mixed)  # type: ignore[attr-defined]
    plain, noisy = incidents(*story)[0], incidents(*mixed)[0]
    assert (plain.class_, round(plain.probability, 9)) == (noisy.class_, round(noisy.probability, 9))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KILLERS), st.integers(1, 3))
def test_removing_the_causes_lines_never_raises_its_probability(class_: str, copies: int) -> None:
    def probability(events: list[Event]) -> float:
        found = incidents(*events)
        mine = [i.probability for i in found if i.class_ == class_]
        rival = [r.probability for i in found for r in i.rivals if r.class_ == class_]
        return max([*mine, *rival], default=0.0)

    lines = [
        event(class_, 590 + n, signature=f"{class_}-{n}", scope=Scope.HOST, host="gpu-07", noise=Noise.RARE)
        for n in range(copies)
    ]
    whole = probability([*lines, *symptoms()])
    for gone in range(len(lines)):
        assert probability([*lines[:gone], *lines[gone + 1 :], *symptoms()]) <= whole + 1e-9


def test_ten_thousand_events_are_ranked_quickly_enough_to_be_run_live() -> None:
    events = [
        *timeouts(9000),
        *[event("rank-crash", 2460 + r, role=Role.SYMPTOM, rank=r) for r in range(990)],
        cause("host-oom"),
    ]
    began = time.perf_counter()
    assert incidents(*events)[0].class_ == "host-oom"
    assert time.perf_counter() - began < 30  # a hang guard; the figure is measured by `make bench`


def test_reasons_add_up_to_what_decided() -> None:
    (only,) = incidents(cause("gpu-ecc"), *timeouts(4))
    assert only.reasons[0].text.startswith("prior of gpu-ecc")
    assert only.reasons[0].weight < 0 < only.reasons[1].weight
    assert abs(sum(r.probability for r in only.rivals) + only.probability - 1) < 1e-6


@pytest.mark.parametrize(
    ("seen", "outages"),
    [
        ([("h1", "nas01", 0), ("h2", "nas01", 20), ("h3", "nas01", 900)], [{"h1", "h2", "h3"}]),
        ([("h1", "nas01", 0), ("h2", "nas02", 20)], [{"h1"}, {"h2"}]),  # two servers
        ([("h1", "nas01", 0), ("h2", "nas01", 7200)], [{"h1"}, {"h2"}]),  # two outages
        ([("h1", None, 0), ("h2", None, 20)], [{"h1"}, {"h2"}]),  # no server named
    ],
)
def test_hosts_that_miss_one_server_see_one_outage(
    seen: list[tuple[str, str | None, int]], outages: list[set[str]]
) -> None:
    events = [
        event("storage-stall", float(at), scope=Scope.HOST, host=host, server=server) for host, server, at in seen
    ]
    found = [{e.place.host for e in incident.own} for incident in incidents(*events)]
    assert sorted(sorted(map(str, hosts)) for hosts in found) == sorted(sorted(hosts) for hosts in outages)
