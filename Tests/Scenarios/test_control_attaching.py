"""Attaching to a live connection, tapping it, and closing or draining many at once."""

import base64
import datetime
import contextlib
import json

import pytest
import websockets.exceptions
import websockets.sync.client

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds
from support.events import Events


@pytest.fixture
def serve(sluice, tmp_path):
    def start(routes=(), **more):
        routes = list(routes) or [configuration.route("echo", "echo", path="/echo")]
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], routes,
            control={"address": "http://127.0.0.1:0"}, **more)
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


class Pieces(Events):
    """Events of a tap, which have no numbers."""

    @staticmethod
    def _body(event):
        return json.loads(event["data"])


def attach(control, name, verb="stream"):
    return websockets.sync.client.connect(control.url.replace("http://", "ws://") + f"/v1/connections/{name}/{verb}")


def refused(control, name, verb="stream"):
    with pytest.raises(websockets.exceptions.InvalidStatus) as info:
        attach(control, name, verb)
    return info.value.response.status_code


def test_an_attached_client_exchanges_the_messages_of_a_websocket(serve):
    gateway, control = serve()
    name = control.open(gateway.url())
    with attach(control, name) as client:
        client.send("hello")
        assert client.recv(timeout=seconds(10)) == "hello"
        client.send(b"\0\xff")
        assert client.recv(timeout=seconds(10)) == b"\0\xff"
        assert refused(control, name) == 409
    # The connection stays open.
    assert control.show(name)["state"] == "open"
    control.send(name, "later")
    assert control.receive(name) == "later"
    with attach(control, name) as client:
        control.close(name, code=4002, reason="over")
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            client.recv(timeout=seconds(10))
        assert (client.close_code, client.close_reason) == (4002, "over")
    assert refused(control, name) == 410


def test_an_attached_client_exchanges_the_bytes_of_a_stream(serve, listener):
    _, control = serve()
    name = control.open(listener.url("tcp"))
    peer = listener.accept().socket
    with attach(control, name) as client:
        client.send(b"ping\n")
        assert peer.recv(100) == b"ping\n"
        peer.sendall(b"pong\n")
        assert client.recv(timeout=seconds(10)) == b"pong\n"
        large = bytes(range(256)) * 4096
        client.send(large)
        got = b""
        while len(got) < len(large):
            got += peer.recv(65536)
        assert got == large
        peer.close()
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            while True:
                client.recv(timeout=seconds(10))


def test_a_relayed_connection_can_be_tapped_but_not_attached(serve):
    gateway, control = serve()
    with websockets.sync.client.connect(gateway.url()) as client:
        (one,) = control.list()
        assert refused(control, one["id"]) == 409
        control.get(f"/v1/connections/{one['id']}/stream").problem(426, "upgrade-required")
        with Pieces(control, f"/v1/connections/{one['id']}/tap") as tap:
            eventually(lambda: tap.comments, "the tap")
            eventually(lambda: client.send("seen") or client.recv() and tap.all, "pieces")
            piece = tap.all[0]
            assert (piece["content"], piece["text"], piece["sizeBytes"], piece["endsMessage"]) == ("text", "seen", 4, True)
            assert {piece["way"] for piece in tap.all} <= {"received", "sent"}


def test_a_tap_samples_and_counts_the_pieces_it_skips(serve, listener):
    _, control = serve()
    name = control.open(listener.url("tcp"))
    peer = listener.accept().socket
    with Pieces(control, f"/v1/connections/{name}/tap?sample=3&maxBytes=2") as tap:
        eventually(lambda: tap.comments, "the tap")

        def send():
            control.send(name, b"abcdef")
            assert peer.recv(6) == b"abcdef"
            return len(tap.all) >= 3

        eventually(send, "three pieces")
        assert all(base64.b64decode(piece["data"]) == b"ab" and piece["sizeBytes"] == 6 for piece in tap.all)
        assert [piece["skipped"] for piece in tap.all[1:3]] == [2, 2]
        # The numbers count skipped pieces too; the times are those of the pieces.
        assert [piece["number"] for piece in tap.all[:3]] == [1, 4, 7]
        times = [datetime.datetime.fromisoformat(piece["at"]) for piece in tap.all[:3]]
        assert times == sorted(times) and abs(times[0] - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=1)
        control.close(name)
        eventually(lambda: tap.ended, "the end of the tap")
        end = tap.all[-1]
        assert set(end) == {"skipped"} and end["skipped"] < 3


def test_a_tap_over_a_websocket_ends_with_the_count_of_skipped_pieces(serve, listener):
    _, control = serve()
    name = control.open(listener.url("tcp"))
    peer = listener.accept().socket
    with attach(control, name, "tap?sample=1000000") as client:
        def send():
            # The sample includes the first piece.
            control.send(name, b"abcdef")
            assert peer.recv(6) == b"abcdef"
            with contextlib.suppress(TimeoutError):
                return client.recv(timeout=0.1)

        assert json.loads(eventually(send, "the first piece"))["skipped"] == 0
        for _ in range(3):
            control.send(name, b"more")
        control.close(name)
        end = json.loads(client.recv(timeout=seconds(10)))
        assert set(end) == {"skipped"} and end["skipped"] >= 3


def test_an_unread_tap_does_not_slow_the_connection(serve):
    gateway, control = serve()
    name = control.open(gateway.url())
    (accepted,) = control.list(direction="accepted")
    connection = control.connection()
    connection.request("GET", f"/v1/connections/{accepted['id']}/tap?maxBytes=65536")
    response = connection.getresponse()
    assert response.status == 200
    with attach(control, name) as client:
        payload = b"x" * 65536
        for _ in range(400):
            client.send(payload)
            assert client.recv(timeout=seconds(10)) == payload
    connection.close()
    assert control.show(name)["stalled"] is False


def test_a_selector_closes_many_connections_and_may_not_be_empty(serve, listener):
    _, control = serve()
    blue = [control.open(listener.url("tcp"), labels={"team": "blue"}) for _ in range(3)]
    red = control.open(listener.url("tcp"), labels={"team": "red"})
    close = "/v1/connections:close"
    control.post(close, {}).problem(422, "invalid-value")
    control.post(close, {"selector": {}}).problem(422, "invalid-value")
    assert control.post(close, {"selector": {"tem": "x"}}).problem(422, "invalid-value")["errors"][0]["pointer"] == "/selector/tem"
    assert control.post(close, {"selector": {"label": "team:blue"}, "preview": True}).expect(200) == {"matched": 3, "notified": 0}
    assert control.post(close, {"selector": {"label": "team:blue"}}).expect(200) == {"matched": 3, "notified": 3}
    for name in blue:
        control.closed(name)
    assert [one["id"] for one in control.list()] == [red]
    assert control.post(close, {"all": True, "abort": True}).expect(200)["notified"] == 1
    eventually(lambda: control.list() == [], "the end of all connections")


def test_a_drain_resets_the_remaining_connections_at_its_deadline(serve):
    gateway, control = serve()
    name = control.open(gateway.url())
    control.verb(name, "suspend").expect(200)
    answer = control.post(
        "/v1/drains", {"selector": {"direction": "accepted"}, "code": 4005, "deadlineMs": 300}, headers={"Prefer": "wait=10"})
    ended = answer.expect(200)
    assert (ended["state"], ended["cut"]) == ("ended", 1)
