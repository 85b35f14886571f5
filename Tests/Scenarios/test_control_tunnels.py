"""Tunnels opened over REST between two peers: both sides are opened, joined, shown and closed together."""

import re
import signal
import threading

import pytest
import websockets.sync.server

from support.client import Client
from support.configured import Configured
from support.deadlines import eventually, seconds
from support.events import Events
from support.programs import refusing_port
from support.websocket import CLOSE, Listener


@pytest.fixture
def control(sluice, tmp_path):
    return Configured(sluice, tmp_path).control


@pytest.fixture
def other():
    with Listener() as one:
        yield one


class PendingRequest:
    """A request running on a thread, whose response is awaited later."""

    def __init__(self, *call, **more):
        def run():
            self.answer = call[0](*call[1:], **more)

        self.answer = None
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def wait(self):
        self.thread.join(seconds(20))
        assert self.answer is not None, "no answer came"
        return self.answer


def request(control, downstream, upstream, **more):
    sides = [one if isinstance(one, dict) else {"url": one} for one in (downstream, upstream)]
    return control.post("/v1/connections", {"downstream": sides[0], "upstream": sides[1], **more})


def pair(answer):
    """The ids of both sides of an open tunnel."""
    body = answer.expect(201)
    assert answer.headers["location"] == f"/v1/connections/{body['id']}"
    assert body["tunnelPartner"] == body["id"] + "u"
    return body["id"], body["tunnelPartner"]


def test_two_streams_are_joined(control, listener, other):
    with Events(control, "/v1/events?type=opened,closed") as events:
        name, partner = pair(request(
            control, {"url": listener.url("tcp"), "labels": {"end": "a"}, "description": "one end"},
            {"url": other.url("tcp"), "labels": {"end": "b"}}))
        left, right = listener.accept(), other.accept()
        left.send(b"from the left")
        assert right.receive(13) == b"from the left"
        right.send(b"back")
        assert left.receive(4) == b"back"

        down, up = control.show(name), control.show(partner)
        assert (down["tunnelPartner"], up["tunnelPartner"]) == (partner, name)
        assert (down["direction"], up["direction"], down["relayed"], up["relayed"]) == ("opened", "opened", True, True)
        assert (down["url"], up["url"]) == (listener.url("tcp"), other.url("tcp"))
        assert (down["receivedBytes"], down["sentBytes"], up["receivedBytes"], up["sentBytes"]) == (13, 4, 4, 13)
        assert (down["labels"], up["labels"], down["description"]) == ({"end": "a"}, {"end": "b"}, "one end")
        assert [one["id"] for one in control.list(label="end:b")] == [partner]
        assert {one["id"] for one in control.list()} == {name, partner}
        opened = events.wait_type("opened", connection=name)
        assert (opened["url"], opened["upstream"]) == (listener.url("tcp"), other.url("tcp"))

        # Each direction ends separately.
        left.finish_sending()
        right.expect_end()
        right.send(b"rest")
        assert left.receive(4) == b"rest"
        right.finish_sending()
        left.expect_end()
        assert events.wait_type("closed", connection=name)["reason"].startswith("downstream/relaying/clean")
    for one in (name, partner):
        over = control.closed(one)
        assert over["terminationReason"].startswith("downstream/relaying/clean")
        control.get(f"/v1/connections/{one}").problem(410, "closed")


def test_two_websockets_are_joined(control, listener, other):
    asked = PendingRequest(
        request, control, {"url": listener.url("ws", "/a"), "subprotocols": ["x"], "headers": {"X-Side": "left"}},
        {"url": other.url("ws", "/b"), "headers": {"X-Side": "right"}})
    left = listener.accept_websocket(subprotocol="x")
    right = other.accept_websocket()
    name, partner = pair(asked.wait())
    assert [one.request.header("X-Side") for one in (left, right)] == ["left", "right"]
    assert (left.path, right.path) == ("/a", "/b")
    left.text("grüße")
    right.expect_text("grüße")
    right.text("zurück")
    left.expect_text("zurück")
    down, up = control.show(name), control.show(partner)
    assert (down["subprotocol"], down["receivedMessages"], up["sentMessages"]) == ("x", 1, 1)
    # The Close is relayed, and its answer back.
    left.write(CLOSE, b"\x0f\xa1" + b"enough")
    frame = right.read()
    assert (frame.opcode, frame.code, frame.payload[2:]) == (CLOSE, 4001, b"enough")
    right.write(CLOSE, frame.payload)
    answer = left.read()
    assert (answer.opcode, answer.code) == (CLOSE, 4001)
    # The server's side ends the transport first (RFC 6455 §7.1.1), and these are both.
    left.close()
    right.close()
    assert control.closed(partner)["closeCode"] == 4001


def test_a_websocket_and_a_stream_are_joined(control, listener):
    def upper(connection):
        for message in connection:
            connection.send(message.upper())

    with websockets.sync.server.serve(upper, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        for downstream, upstream in ((listener.url("tcp"), f"ws://127.0.0.1:{port}"), (f"ws://127.0.0.1:{port}", listener.url("tcp"))):
            name, _ = pair(request(control, downstream, upstream, framing="lines"))
            peer = listener.accept()
            peer.send(b"hello\nworld\n")
            assert peer.receive(12) == b"HELLO\nWORLD\n"
            control.request("DELETE", f"/v1/connections/{name}", headers={"Prefer": "wait=0"}).expect(202)
            peer.expect_any_end()
            peer.close()
            control.closed(name)
        server.shutdown()


def test_the_latency_added_by_the_relay_is_sampled(control, listener, other):
    def count():
        text = control.get("/metrics").body.decode()
        return int(re.search(r"^sluice_added_latency_seconds_count (\d+)$", text, re.MULTILINE).group(1))

    assert count() == 0
    pair(request(control, listener.url("tcp"), other.url("tcp")))
    left, right = listener.accept(), other.accept()
    for _ in range(200):
        left.send(b"ping")
        assert right.receive(4) == b"ping"
    # The first read of a side, and every 64th after it.
    assert count() == 4
    right.send(b"pong")
    assert left.receive(4) == b"pong"
    assert count() == 5
    text = control.get("/metrics").body.decode()
    assert "sluice_added_latency_seconds_bucket{le=" in text and "# TYPE sluice_added_latency_seconds histogram" in text


def test_a_large_transfer_is_relayed_completely_and_counted(control, listener, other):
    name, partner = pair(request(control, listener.url("tcp"), other.url("tcp")))
    left, right = listener.accept(), other.accept()
    block, count = bytes(range(256)) * 256, 256

    def pour():
        for _ in range(count):
            left.send(block)
        left.finish_sending()

    thread = threading.Thread(target=pour)
    thread.start()
    whole = right.receive_all()
    thread.join()
    assert whole == block * count
    assert control.show(name)["receivedBytes"] == control.show(partner)["sentBytes"] == len(whole)
    right.finish_sending()
    left.expect_end()


@pytest.mark.parametrize("failing", ["downstream", "upstream"])
def test_a_side_that_cannot_be_opened_ends_the_other(control, listener, failing):
    with refusing_port() as port:
        sides = {"downstream": listener.url("ws"), "upstream": listener.url("ws"), failing: f"tcp://127.0.0.1:{port}"}
        problem = request(control, **sides).problem(502, "cannot-connect")
    assert problem["errors"][0]["pointer"] == f"/{failing}/url" and failing in problem["detail"] and problem["retryable"]
    assert problem["connection"]["terminationReason"] == f"{failing}/connecting/unreachable"
    assert control.list() == []
    name = problem["connection"]["id"]
    assert {one["id"] for one in control.list(state="closed")} == {name.rstrip("u"), name.rstrip("u") + "u"}


def test_an_open_side_is_closed_with_1014_when_the_other_fails(control, listener, other):
    asked = PendingRequest(request, control, listener.url("ws"), other.url("ws"))
    left = listener.accept_websocket()
    right, _ = other.accept_request()
    eventually(lambda: any(one["state"] == "open" for one in control.list()), "one side")
    right.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    problem = asked.wait().problem(502, "handshake-refused")
    assert problem["errors"][0]["pointer"] == "/upstream/url" and "403" in problem["detail"]
    frame = left.read()
    assert (frame.opcode, frame.code) == (CLOSE, 1014)


def test_messages_received_before_the_join_are_relayed(control, listener, other):
    asked = PendingRequest(request, control, listener.url("ws"), other.url("ws"))
    left = listener.accept_websocket()
    for number in range(3):
        left.text(f"{number}")
    right = other.accept_websocket()
    pair(asked.wait())
    for number in range(3):
        right.expect_text(f"{number}")


def test_closing_either_side_ends_both(control, listener, other):
    for side in (0, 1):
        asked = PendingRequest(request, control, listener.url("ws"), other.url("tcp"))
        left, right = listener.accept_websocket(), other.accept()
        names = pair(asked.wait())
        closing = PendingRequest(control.close, names[side], code=4003, reason="over")
        frame = left.read()
        assert (frame.opcode, frame.code, frame.payload[2:]) == (CLOSE, 4003, b"over")
        left.write(CLOSE, frame.payload)
        left.close()
        right.expect_any_end()
        right.close()
        assert closing.wait()["state"] == "closed"
        assert {control.closed(one)["terminationReason"] for one in names} == {"operator/relaying/stopped"}


def test_targets_are_checked_for_each_side(sluice, tmp_path, listener, other):
    one = Configured(sluice, tmp_path, control={"targets": [f"127.0.0.0/8:{listener.port}"]})
    for side in ("downstream", "upstream"):
        sides = {"downstream": listener.url("tcp"), "upstream": listener.url("tcp"), side: other.url("tcp")}
        problem = request(one.control, **sides).problem(403, "target-not-allowed")
        assert problem["errors"][0]["pointer"] == f"/{side}/url"
        assert one.control.list() == []
    other.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        other.socket.accept()


def test_an_invalid_tunnel_is_refused_with_its_pointer(control):
    problem = control.post("/v1/connections", {"downstream": {}, "upstream": {"url": "tcp://127.0.0.1:1"}})
    assert problem.status == 422 and problem.json["errors"][0]["pointer"] == "/downstream/url", problem.json
    assert control.list() == []


def test_a_tunnel_ends_at_its_maximum_age(control, listener, other):
    name, _ = pair(request(control, listener.url("tcp"), other.url("tcp"), maximumAgeMs=1000))
    left, right = listener.accept(), other.accept()
    for peer in (left, right):
        peer.expect_any_end()
        peer.close()
    assert "age" in control.closed(name)["terminationReason"]


def test_a_shutdown_drains_tunnels_opened_over_rest(sluice, tmp_path, listener, other):
    one = Configured(sluice, tmp_path, close_spread="0s", drain_timeout="1s")
    pair(request(one.control, listener.url("tcp"), other.url("tcp")))
    left, right = listener.accept(), other.accept()
    one.gateway.signal(signal.SIGTERM)
    for peer in (left, right):
        peer.expect_any_end()
        peer.close()
    assert one.gateway.wait() == 0


def test_the_command_line_opens_a_tunnel_with_and_without_waiting(control, listener, other):
    client = Client(control.url)
    name = client("open", listener.url("tcp"), "--to", other.url("tcp"), "--label", "of=mine").strip()
    left, right = listener.accept(), other.accept()
    left.send(b"across")
    assert right.receive(6) == b"across"
    assert control.show(name)["tunnelPartner"] == name + "u" and control.show(name)["labels"] == {"of": "mine"}
    # The id is printed before the peer has answered.
    later = client("open", listener.url("ws"), "--no-wait").strip()
    assert control.show(later)["state"] == "opening"
    peer = listener.accept_websocket()
    eventually(lambda: control.show(later)["state"] == "open", "the opening")
    for one in (left, right, peer):
        one.close()
