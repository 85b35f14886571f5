"""Long-running operations: listed, awaited, cancelled and deleted."""

import hashlib
import secrets

import pytest

from support.configured import Configured
from support.control import Control
from support.deadlines import eventually
from support.websocket import Listener

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def configured(sluice, tmp_path):
    return Configured(sluice, tmp_path)


@pytest.fixture
def control(configured):
    return configured.control


def begin(control, body, **preference):
    """Starts to open a connection without waiting; returns the operation."""
    answer = control.post("/v1/connections", body, headers=preference or ASYNC)
    record = answer.expect(202)
    assert answer.headers["location"] == f"/v1/operations/{record['id']}"
    assert (record["operation"], record["caller"]) == ("openConnection", "local") or record["caller"].startswith("uid:")
    return record


def look(control, record, **headers):
    return control.request("GET", f"/v1/operations/{record['id']}", headers=headers).expect(200)


def test_an_asynchronous_opening_is_an_operation_until_it_succeeds(control, listener):
    record = begin(control, {"url": listener.url("ws")})
    assert record["state"] == "running" and control.show(record["connection"])["state"] == "opening"
    assert [one["id"] for one in control.get("/v1/operations").expect(200)["items"]] == [record["id"]]
    peer = listener.accept_websocket()
    done = look(control, record, Prefer="wait=10")
    assert (done["state"], done["status"], done["location"]) == ("succeeded", 201, f"/v1/connections/{record['connection']}")
    assert done["answer"]["id"] == record["connection"] and done["answer"]["state"] == "open" and done["endedAt"]
    assert control.show(record["connection"])["state"] == "open"
    assert control.request("DELETE", f"/v1/operations/{record['id']}").status == 204
    control.get(f"/v1/operations/{record['id']}").problem(404, "unknown-operation")
    # The connection it opened stays.
    assert control.show(record["connection"])["state"] == "open"
    peer.close()


def test_prefer_wait_returns_the_result_when_it_is_ready_in_time(control, listener):
    answer = control.post("/v1/connections", {"url": listener.url("tcp")}, headers={"Prefer": "wait=10"})
    assert answer.expect(201)["state"] == "open" and control.get("/v1/operations").expect(200)["items"] == []
    record = begin(control, {"url": listener.url("ws")}, Prefer="respond-async, wait=0")
    assert record["state"] == "running"


def test_an_operation_is_cancelled(control, listener):
    with Listener() as other:
        for body in ({"url": listener.url("ws")}, {"downstream": {"url": listener.url("ws")}, "upstream": {"url": other.url("ws")}}):
            record = begin(control, body)
            peer, _ = listener.accept_request()
            cancelled = control.request("DELETE", f"/v1/operations/{record['id']}").expect(200)
            assert cancelled["state"] == "cancelled"
            peer.expect_any_end()
            assert control.closed(record["connection"])["terminationReason"] == "operator/connecting/stopped"
            assert control.list() == []


def test_a_tunnel_is_opened_asynchronously(control, listener):
    record = begin(control, {"downstream": {"url": listener.url("tcp")}, "upstream": {"url": listener.url("ws")}})
    shown = control.show(record["connection"])
    assert shown["tunnelPartner"] == record["connection"] + "u"
    peers = listener.accept(), listener.accept_websocket()
    done = look(control, record, Prefer="wait=10")
    assert done["state"] == "succeeded" and done["answer"]["relayed"] is True
    for peer in peers:
        peer.close()


def test_operations_are_visible_to_callers_with_the_scope_to_start_them(sluice, tmp_path, listener):
    made = {}
    for name, scopes in (("ops", ["read", "operate"]), ("watch", ["read"]), ("config", ["read", "operate", "configure"])):
        secret = "slc_" + secrets.token_urlsafe(32)
        made[name] = (secret, {"name": name, "hash": "sha256:" + hashlib.sha256(secret.encode()).hexdigest(), "scopes": scopes})
    one = Configured(sluice, tmp_path, control={"tokens": [entry for _, entry in made.values()]})
    who = {name: Control(one.control.url, secret) for name, (secret, _) in made.items()}
    reload = who["config"].post("/v1/configuration:reload", headers=ASYNC).expect(202)
    opening = who["ops"].post("/v1/connections", {"url": listener.url("ws")}, headers=ASYNC).expect(202)
    assert opening["caller"] == "token:ops"
    for name, seen in (("watch", set()), ("ops", {opening["id"]}), ("config", {opening["id"], reload["id"]})):
        assert {each["id"] for each in who[name].get("/v1/operations").expect(200)["items"]} == seen, name
    who["watch"].get(f"/v1/operations/{opening['id']}").problem(404, "unknown-operation")
    who["watch"].request("DELETE", f"/v1/operations/{opening['id']}").problem(403, "insufficient-scope")
    who["ops"].request("DELETE", f"/v1/operations/{reload['id']}").problem(404, "unknown-operation")


def test_the_number_of_operations_is_limited(control, listener):
    """The oldest finished operation is replaced; if all are running, a new one is refused."""
    body = {"url": listener.url("ws"), "handshakeTimeoutMs": 600_000}
    with Listener() as other:
        # Connections of several loops to one listener arrive in any order.
        running = [begin(control, {**body, "url": other.url("ws")}), *(begin(control, body) for _ in range(255))]
        peer = expect_operations_to_be_limited(control, running, body, other)
    # The gateway ends without waiting for them.
    peer.close()


def expect_operations_to_be_limited(control, running, body, first):
    problem = control.post("/v1/connections", body, headers=ASYNC).problem(429, "too-many-operations")
    assert problem["retryable"] is True
    peer = first.accept_websocket()
    eventually(lambda: look(control, running[0])["state"] == "succeeded", "a finished operation")
    begin(control, body)
    control.get(f"/v1/operations/{running[0]['id']}").problem(404, "unknown-operation")
    return peer
