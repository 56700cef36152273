"""``docker inspect`` dumps."""

from __future__ import annotations

import json

import pytest

from triage.sources.dockerinspect import DOCKER_INSPECT


def dump(*, oom: bool, code: int, shm: int = 67108864, indent: int | None = 4) -> str:
    container = {
        "Name": "/trainer",
        "State": {"Status": "exited", "OOMKilled": oom, "ExitCode": code, "FinishedAt": "2026-03-02T03:00:00Z"},
        "HostConfig": {"ShmSize": shm, "Memory": 1 << 30, "IpcMode": "private"},
        "Config": {"Image": "reg.example.org/llm:7"},
    }
    return json.dumps([container, {**container, "Name": "/other"}], indent=indent)


def test_fields_and_lines() -> None:
    text = dump(oom=True, code=137)
    assert DOCKER_INSPECT.sniff("inspect.json", text)
    first, second = DOCKER_INSPECT.rows(text.splitlines())
    assert first.fields["oom_killed"] is True
    assert (first.fields["exit_code"], first.fields["shm_mib"], first.fields["memory_limit"]) == (137, 64.0, 1 << 30)
    assert first.fields["container"] == "trainer"
    assert '"OOMKilled"' in first.text
    assert second.fields["container"] == "other"
    assert second.line > first.line


def test_one_line_form() -> None:
    rows = list(DOCKER_INSPECT.rows(dump(oom=False, code=0, indent=None).splitlines()))
    assert [r.line for r in rows] == [1, 1]
    assert rows[0].fields["oom_killed"] is False


@pytest.mark.parametrize("text", ['{"State": "running"}', "OOMKilled: true", '[{"kind": "Pod"}]'])
def test_other_files(text: str) -> None:
    assert not DOCKER_INSPECT.sniff("x.json", text)


@pytest.mark.parametrize(
    "text", ["[", "[1, null]", '[{"State": []}]', '[{"State": {"OOMKilled": "yes", "ExitCode": true}}]', "[" * 5000, ""]
)
def test_broken_input_never_raises(text: str) -> None:
    for row in DOCKER_INSPECT.rows(text.splitlines()):
        assert "exit_code" not in row.fields
