"""Drains over REST: connections that are told to end one after the other, watched, paused, cancelled, and asked for with nonsense."""

import datetime
import time

import pytest

from support import configuration
from support.control import Control
from support.deadlines import eventually
from support.events import Events


@pytest.fixture
def live(sluice, tmp_path):
    """A gateway with so many live connections, its control plane, and their names."""

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


def test_a_drain_with_a_rate_is_watched_to_its_end(live):
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
    assert (drain["state"], drain["told"], drain["remaining"], drain["cut"]) == ("ended", 20, 0, 0) and drain["endedAt"]
    assert opened(control) == []
    closed = control.closed(names[0])
    assert (closed["closeCode"], closed["closeReason"]) == (4001, "moving")


def test_jitter_does_not_slow_a_drain_down(live):
    control, _ = live(150)
    order = {"selector": {"label": "of:test"}, "ratePerSecond": 100, "jitterMs": 500, "deadlineMs": 20_000}
    preview = control.post("/v1/drains", {**order, "preview": True}).expect(200)
    assert 1490 <= preview["takesMs"] <= 1990 and "warning" not in preview
    answer = control.post("/v1/drains", order)
    drain = answer.expect(202)
    assert drain["untold"] == 0 and "warning" not in drain, drain
    begin, last, deadline = (datetime.datetime.fromisoformat(drain[name]) for name in ("startedAt", "lastToldAt", "deadlineAt"))
    assert 1.4 <= (last - begin).total_seconds() <= 2 and (deadline - begin).total_seconds() == pytest.approx(20, abs=0.01)
    ended = eventually(lambda: (one := control.get(answer.headers["location"]).expect(200)).get("endedAt") and one, "its end", within=20)
    assert (ended["told"], ended["cut"], ended["remaining"], ended["untold"]) == (150, 0, 0, 0), ended
    # Far from the 39 s that 150 pauses with a jitter in each would take.
    took = datetime.datetime.fromisoformat(ended["endedAt"]) - begin
    assert 1.4 <= took.total_seconds() <= 10, took


def test_a_deadline_that_comes_too_soon_is_told_of_at_once(live):
    control, _ = live(10)
    order = {"selector": {"label": "of:test"}, "ratePerSecond": 1, "deadlineMs": 1500}
    preview = control.post("/v1/drains", {**order, "preview": True}).expect(200)
    assert preview["takesMs"] == 9000 and preview["warning"].startswith("8 of 10 connections are reset"), preview
    answer = control.post("/v1/drains", order)
    drain = answer.expect(202)
    assert drain["untold"] == 8 and drain["warning"] == preview["warning"]
    ended = eventually(lambda: (one := control.get(answer.headers["location"]).expect(200)).get("endedAt") and one, "its end")
    assert (ended["told"], ended["cut"], ended["untold"]) == (2, 8, 8), ended


def test_a_drain_that_is_cancelled_ends_at_once_however_slow_it_is(live):
    control, names = live(3)
    path = control.post("/v1/drains", {"selector": {"label": "of:test"}, "ratePerSecond": 0.001}).headers["location"]
    eventually(lambda: control.get(path).expect(200)["told"] == 1, "the first that is told")
    eventually(lambda: control.get(path).expect(200)["remaining"] == 2, "the end of the first")
    assert control.request("DELETE", path).expect(200)["state"] == "cancelled"
    ended = eventually(lambda: control.get(path).expect(200).get("endedAt") and control.get(path).json, "its end")
    assert (ended["told"], ended["remaining"], ended["total"]) == (1, 2, 3) and len(opened(control)) == 2
    control.request("DELETE", path).problem(409, "state-conflict")


def test_a_drain_is_cancelled_by_its_verb_as_well(live):
    control, names = live(2)
    path = control.post("/v1/drains", {"selector": {"label": "of:test"}, "ratePerSecond": 0.001}).headers["location"]
    assert control.post(path + ":cancel").expect(200)["state"] == "cancelled"
    control.post(path + ":cancel").problem(409, "state-conflict")


def test_everything_can_be_meant_in_the_query(live):
    control, names = live(2)
    control.post("/v1/connections:close", {}).problem(422, "invalid-value")
    # Each leads into the gateway itself, which has accepted it.
    assert control.post("/v1/connections:close?all=true&preview=true").expect(200) == {"matched": 4, "told": 0}
    assert control.post("/v1/connections:close?all=true").expect(200)["matched"] == 4
    eventually(lambda: not opened(control), "their end")


def test_a_selector_has_the_values_that_json_has(live):
    control, names = live(2)
    for selector in ({"minAgeMs": 0, "labels": {"of": "test"}}, {"id": names, "stalled": False}, {"kind": ["webSocket", "stream"], "direction": "opened"}):
        assert control.post("/v1/drains", {"selector": selector, "preview": True}).expect(200)["matched"] == 2, selector
    problem = control.post("/v1/drains", {"selector": {"minAgeMs": True}, "preview": True}).problem(422, "invalid-value")
    assert problem["errors"][0]["pointer"] == "/selector/minAgeMs"


def test_a_paused_drain_goes_on_where_it_was(live):
    control, _ = live(2)
    # Four seconds to pause it in, between the first and the second.
    path = control.post("/v1/drains", {"selector": {"label": "of:test"}, "ratePerSecond": 0.25}).headers["location"]
    assert control.post(path + ":pause").expect(200)["state"] == "paused"
    control.post(path + ":pause").problem(409, "state-conflict")
    assert opened(control)
    assert control.post(path + ":resume").expect(200)["state"] == "running"
    eventually(lambda: control.get(path).expect(200)["state"] == "ended", "its end", within=40)
    assert opened(control) == []


@pytest.mark.parametrize("member, values", [
    ("ratePerSecond", [0, -1, 5.584981425933862e-133, 5e-324, 0.0009, 100_001, 9.08e126, 1.7976931348623157e308]),
    ("jitterMs", [-1, 3_600_001, 1e18, 1.7e308]),
    ("deadlineMs", [-1, 86_400_001, 5.320639728400362e16, 1.7e308]),
    ("code", [-4096, 0, 999, 1005, 5000, 65536, 2**40]),
])
def test_numbers_beyond_all_sense_are_refused_and_nothing_is_drained(live, member, values):
    control, names = live(2)
    for value in values:
        answer = control.post("/v1/drains", {"all": True, member: value})
        assert answer.problem(422, "invalid-value")["errors"][0]["pointer"] == f"/{member}", value
    assert sorted(opened(control)) == sorted(names)
