"""Kubernetes events and pods as they are saved."""

from __future__ import annotations

import pytest

from triage.sources.kubernetes_objects import K8S_EVENTS, K8S_PODS

EVENTS = """\
LAST SEEN         TYPE      REASON      OBJECT             MESSAGE
12m               Normal    Scheduled   pod/llm-worker-3   Successfully assigned ml/llm-worker-3 to gpu-12
9m (x4 over 1h)   Warning   Evicted     pod/llm-worker-3   The node was low on resource: ephemeral-storage.
4m                Normal    NodeNotReady   node/gpu-12     Node gpu-12 status is now: NodeNotReady
"""

WIDE = """\
NAMESPACE   LAST SEEN   TYPE     REASON      OBJECT     SUBOBJECT   SOURCE              MESSAGE
ml          1m          Normal   Preempted   pod/w-3                default-scheduler   Preempted by pod a on node n1
"""

DESCRIBE = """\
Name:             llm-worker-3
Namespace:        ml
Node:             gpu-12/192.0.2.12
Status:           Failed
Reason:           Evicted
Message:          The node was low on resource: memory.
Containers:
  trainer:
    Container ID:   containerd://ab12
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Mon, 02 Mar 2026 03:00:00 +0000
    Ready:          False
  sidecar:
    State:          Running
Events:
  Type     Reason   Age                From     Message
  ----     ------   ----               ----     -------
  Warning  BackOff  2m (x7 over 20m)   kubelet  Back-off restarting failed container
"""

YAML = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: llm-worker-3, namespace: ml}
  spec: {nodeName: gpu-12}
  status:
    phase: Failed
    message: >-
      The node was low on resource: ephemeral-storage. Container trainer was
      using 40Gi, request is 0.
    reason: Evicted
    containerStatuses:
    - name: trainer
      restartCount: 2
      lastState:
        terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-03-02T03:00:00Z"}
kind: List
"""


def test_event_table_gives_place_from_assignments() -> None:
    assert K8S_EVENTS.sniff("events.txt", EVENTS)
    rows = list(K8S_EVENTS.rows(EVENTS.splitlines()))
    assert [(r.line, r.fields["reason"]) for r in rows] == [(2, "Scheduled"), (3, "Evicted"), (4, "NodeNotReady")]
    evicted = rows[1].fields
    assert evicted["count"] == 4
    assert evicted["pod"] == "llm-worker-3"
    assert evicted["host"] == "gpu-12"
    assert evicted["message"] == "The node was low on resource: ephemeral-storage."
    assert rows[2].fields["host"] == "gpu-12"


def test_wide_event_table_has_empty_cells() -> None:
    (row,) = K8S_EVENTS.rows(WIDE.splitlines())
    assert row.fields["source"] == "default-scheduler"
    assert row.fields["host"] == "n1"
    assert row.fields["namespace"] == "ml"


def test_describe_gives_pod_containers_and_events() -> None:
    assert K8S_PODS.sniff("pod.txt", DESCRIBE)
    assert K8S_EVENTS.sniff("pod.txt", DESCRIBE)
    rows = list(K8S_PODS.rows(DESCRIBE.splitlines()))
    pod = next(r for r in rows if r.kind == "pod")
    assert pod.fields["reason"] == "Evicted"
    assert pod.fields["host"] == "gpu-12"
    killed = next(r for r in rows if r.fields.get("reason") == "OOMKilled")
    assert (killed.line, killed.fields["exit_code"], killed.fields["last_state"]) == (13, 137, True)
    assert killed.fields["container"] == "trainer"
    assert any(r.fields.get("container") == "sidecar" for r in rows)
    (event,) = K8S_EVENTS.rows(DESCRIBE.splitlines())
    assert event.fields["object"] == "pod/llm-worker-3"
    assert event.fields["count"] == 7


def test_yaml_cites_the_line_of_the_message() -> None:
    assert K8S_PODS.sniff("pods.yaml", YAML)
    pod, container = K8S_PODS.rows(YAML.splitlines())
    assert pod.line == 10
    assert pod.text.strip().startswith("The node was low on resource")
    assert str(pod.fields["message"]).endswith("using 40Gi, request is 0.")
    assert container.fields["exit_code"] == 137
    assert container.fields["at"] == "2026-03-02T03:00:00Z"


def test_json_events() -> None:
    text = (
        '{"kind": "List", "items": [{"kind":"Event","metadata":{},"type":"Warning","reason":"SystemOOM",'
        '"involvedObject":{"kind":"Node","name":"gpu-12"},"message":"System OOM encountered","count":3}]}'
    )
    assert K8S_EVENTS.sniff("events.json", text)
    (row,) = K8S_EVENTS.rows(text.splitlines())
    assert (row.fields["host"], row.fields["count"], row.line) == ("gpu-12", 3, 1)


@pytest.mark.parametrize(
    "text",
    [
        "LAST: nothing\nTYPE REASON\n",
        "Name: a list of names\nhello\n",
        "kind: Deployment\nmetadata: {name: x}\n",
        "[INFO] kind: Podium\n",
    ],
)
def test_other_files_are_left_alone(text: str) -> None:
    assert not K8S_EVENTS.sniff("x", text)
    assert not K8S_PODS.sniff("x", text)


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\nmetadata: [\n",
        "kind: Pod\nmetadata: x\nstatus: [1, 2]\n",
        "kind: Pod\nmetadata: {}\nstatus: {containerStatuses: {a: 1}}\n",
        "kind: Pod\nmetadata: &a [*a]\n",
        "LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\nx\n\x00\n",
        "Name: a\nNode: b\n    State:\n",
        "",
    ],
)
def test_broken_input_never_raises(text: str) -> None:
    for source in (K8S_EVENTS, K8S_PODS):
        list(source.rows(text.split("\n")))
