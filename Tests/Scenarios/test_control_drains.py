"""Drains over REST: rate, jitter and deadline, in real time."""

import datetime
import time

import pytest

from support import configuration
from support.control import Control
from support.deadlines import eventually
from support.events import Events


@pytest.fixture
def live(sluice, tmp_path):
    """A gateway with `count` open connections: (control plane, their ids)."""

    def start(count):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")], control={"address": "http://127.0.0.1:0", "targets": ["127.0.0.1"]})
        gateway = sluice("serve", "--config", file)
        control = Control.of(gateway)
        return control, [control.open(f"ws://127.0.0.1:{gateway.port()}/echo", labels={"of": "test"}) for _ in range(count)]

    return start


def opened(control):
    return [item["id"] for item in control.list(label="of:test")]


def test_a_drain_with_a_rate_reports_its_progress_and_end(live):
    control, names = live(20)
    order = {"selector": {"label": "of:test"}, "ratePerSecond": 40, "code": 4001, "reason": "moving"}
    assert control.post("/v1/drains", {**order, "preview": True}).expect(200)["matched"] == 20
    assert control.post("/v1/drains?preview=true", order).expect(200)["matched"] == 20
    with Events(control, "/v1/events") as events:
        started = time.monotonic()
        answer = control.post("/v1/drains", order)
        drain = answer.expect(202)
        path = answer.headers["location"]
        assert (drain["state"], drain["total"]) == ("running", 20)
        assert events.wait_type("drainStarted")["count"] == 20
        assert events.wait_type("drainEnded")["count"] == 20
        # Nineteen pauses of 25 ms.
        assert time.monotonic() - started >= 0.475
    drain = control.get(path).expect(200)
    assert (drain["state"], drain["notified"], drain["remaining"], drain["cut"]) == ("ended", 20, 0, 0) and drain["endedAt"]
    assert opened(control) == []
    closed = control.closed(names[0])
    assert (closed["closeCode"], closed["closeReason"]) == (4001, "moving")


def test_jitter_does_not_lengthen_a_drain(live):
    control, _ = live(150)
    order = {"selector": {"label": "of:test"}, "ratePerSecond": 100, "jitterMs": 500, "deadlineMs": 20_000}
    preview = control.post("/v1/drains", {**order, "preview": True}).expect(200)
    assert 1490 <= preview["takesMs"] <= 1990 and "warning" not in preview
    answer = control.post("/v1/drains", order)
    drain = answer.expect(202)
    assert drain["unnotified"] == 0 and "warning" not in drain, drain
    begin, last, deadline = (datetime.datetime.fromisoformat(drain[name]) for name in ("startedAt", "lastNotifiedAt", "deadlineAt"))
    assert 1.4 <= (last - begin).total_seconds() <= 2 and (deadline - begin).total_seconds() == pytest.approx(20, abs=0.01)
    ended = eventually(lambda: (one := control.get(answer.headers["location"]).expect(200)).get("endedAt") and one, "its end", within=20)
    assert (ended["notified"], ended["cut"], ended["remaining"], ended["unnotified"]) == (150, 0, 0, 0), ended
    # Far below the 39 s that a jitter added to each of 150 pauses would take.
    took = datetime.datetime.fromisoformat(ended["endedAt"]) - begin
    assert 1.4 <= took.total_seconds() <= 10, took


def test_a_deadline_too_early_for_the_rate_is_warned_of_at_once(live):
    control, _ = live(10)
    order = {"selector": {"label": "of:test"}, "ratePerSecond": 1, "deadlineMs": 1500}
    preview = control.post("/v1/drains", {**order, "preview": True}).expect(200)
    assert preview["takesMs"] == 9000 and preview["warning"].startswith("8 of 10 connections are reset"), preview
    answer = control.post("/v1/drains", order)
    drain = answer.expect(202)
    assert drain["unnotified"] == 8 and drain["warning"] == preview["warning"]
    ended = eventually(lambda: (one := control.get(answer.headers["location"]).expect(200)).get("endedAt") and one, "its end")
    assert (ended["notified"], ended["cut"], ended["unnotified"]) == (2, 8, 8), ended
