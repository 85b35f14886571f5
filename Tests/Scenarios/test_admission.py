"""Admission limits: a refused connection has a status or a close code, a reason in the log and a counter."""

import http.client
import json
import signal
import threading

import pytest

from support import websocket
from support.configured import Configured
from support.configuration import listener as listening, route, upstream
from support.deadlines import eventually, seconds
from support.events import Events
from support.websocket import CLOSE, PING, PONG, Wire, parse_head, request

LISTENERS = [listening("web", "ws://127.0.0.1:0"), listening("raw", "tcp://127.0.0.1:0", route="raw")]
ROUTES = [route("echo", "echo", path="/echo"), route("raw", "echo")]


def request_echo(gateway, path="/echo"):
    """Sends an opening handshake; returns (connection, status)."""
    wire = Wire.connect(gateway.address())
    wire.send(request(path))
    return wire, parse_head(wire.receive_head()).status


def counter(one, cause):
    lines = one.control.get("/metrics").body.decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines
               if line.startswith("sluice_connections_ended_total{") and f'cause="{cause}"' in line)


@pytest.mark.parametrize("keys, gateway_keys, status, cause", [
    ({"max_connections": 2}, {}, 503, "listener-limit"),
    ({}, {"max_connections": 2}, 503, "total-limit"),
    ({"max_connections_per_client": 2}, {}, 429, "client-limit"),
    ({"accept_rate": "1/s", "accept_burst": 2}, {}, 503, "accept-rate")], ids=lambda value: value if isinstance(value, str) else "")
def test_client_above_the_limit_is_refused_and_counted(sluice, tmp_path, keys, gateway_keys, status, cause):
    one = Configured(sluice, tmp_path, [listening("web", "ws://127.0.0.1:0", **keys)], ROUTES[:1], **gateway_keys)
    held = [request_echo(one.gateway) for _ in range(2)]
    assert [got for _, got in held] == [101, 101]
    refused, got = request_echo(one.gateway)
    # On a slow machine, another second of the rate has begun.
    while cause == "accept-rate" and got == 101:
        refused, got = request_echo(one.gateway)
    assert got == status
    refused.close()
    one.gateway.wait_log(cause)
    eventually(lambda: counter(one, cause) == 1, "the counter of the refusal")
    held[0][0].reset()
    eventually(lambda: request_echo(one.gateway)[1] == 101, "a free slot, or a new second of the rate")


@pytest.mark.parametrize("keys, allowed, refused", [
    ({"allow_clients": ["127.0.0.2/32"]}, "127.0.0.2", "127.0.0.3"),
    ({"deny_clients": ["127.0.0.3/32"]}, "127.0.0.2", "127.0.0.3")])
def test_client_of_another_address_is_refused_and_counted(sluice, tmp_path, keys, allowed, refused):
    one = Configured(
        sluice, tmp_path, [listening("web", "ws://127.0.0.1:0", **keys), listening("raw", "tcp://127.0.0.1:0", route="raw", **keys)],
        ROUTES)
    statuses = []
    for source in (allowed, refused):
        with Wire.connect(one.gateway.address(0), source=source) as wire:
            wire.send(request("/echo"))
            statuses.append(parse_head(wire.receive_head()).status)
    assert statuses == [101, 403]
    with Wire.connect(one.gateway.address(1), source=allowed) as wire:
        wire.send(b"here")
        assert wire.receive(4) == b"here"
    Wire.expect_refusal(one.gateway.address(1), source=refused)
    eventually(lambda: counter(one, "client-address") == 2, "the counter of the refusals")


@pytest.mark.parametrize("plain_and_tls", [False, True])
def test_client_of_a_denied_address_gets_no_tls_handshake(sluice, authority, server_certificate, tmp_path, plain_and_tls):
    certificate, key = map(str, server_certificate)
    one = Configured(sluice, tmp_path, [listening(
        "web", "wss://127.0.0.1:0", tls={"certificate": certificate, "key": key}, deny_clients=["127.0.0.3"],
        **({"plain_and_tls": True} if plain_and_tls else {}))], ROUTES[:1])
    for source in ("127.0.0.2", "127.0.0.3"):
        try:
            with Wire.connect(one.gateway.address(), tls=authority.client_context(), source=source) as wire:
                wire.send(request("/echo"))
                assert (source, parse_head(wire.receive_head()).status) == ("127.0.0.2", 101)
        except ConnectionResetError:
            assert source == "127.0.0.3"
    assert "gateway/accepting/client-address" in one.gateway.wait_log("connection closed.*client=127.0.0.3")


def test_client_that_a_reload_denies_is_refused_on_its_open_connection(sluice, tmp_path):
    one = Configured(sluice, tmp_path, LISTENERS[:1], [route("page", "page", path="/")])
    connection = http.client.HTTPConnection(*one.gateway.address(), timeout=seconds(20))
    connection.request("GET", "/")
    response = connection.getresponse()
    assert response.status == 200 and response.read()
    open_socket = connection.sock
    one.write(listeners=[listening("web", "ws://127.0.0.1:0", deny_clients=["127.0.0.1"])])
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("reloaded")
    assert connection.sock is open_socket
    with Events(one.control, "/v1/events") as events:
        connection.request("GET", "/")
        assert connection.getresponse().status == 403
        events.wait_type("limitHit", listener="web", reason="client-address")
    connection.close()


@pytest.mark.parametrize("keys", [{"max_connections": 1}, {"max_connections_per_client": 1}])
def test_stream_above_the_limit_is_reset(sluice, tmp_path, keys):
    one = Configured(sluice, tmp_path, [listening("raw", "tcp://127.0.0.1:0", route="raw", **keys)], ROUTES[1:])
    with Wire.connect(one.gateway.address()) as held:
        held.send(b"here")
        assert held.receive(4) == b"here"
        Wire.expect_refusal(one.gateway.address())
        held.send(b"still")
        assert held.receive(5) == b"still"


@pytest.mark.parametrize("target", ["echo", "chat", "ws"])
@pytest.mark.parametrize("key, reason, cause", [
    ("idle_timeout", b"idle timeout", "idle-timeout"), ("max_age", b"maximum age", "maximum-age-timeout")])
def test_websocket_is_closed_with_1001_and_a_reason_at_its_timeout(sluice, listener, tmp_path, target, key, reason, cause):
    one = Configured(
        sluice, tmp_path, LISTENERS[:1], [route("app", "app" if target == "ws" else target, path="/echo", **{key: "1s"})],
        **({"upstreams": [upstream("app", listener.url("ws", "/"))]} if target == "ws" else {}))
    peers = []
    thread = threading.Thread(target=lambda: peers.append(listener.accept_websocket()), daemon=True)
    if target == "ws":
        thread.start()
    peers.append(websocket.connect(one.gateway.address(), "/echo"))
    if target == "ws":
        thread.join(10)
    for peer in peers:
        got = peer.read()
        assert (got.opcode, got.code, got.payload[2:]) == (CLOSE, 1001, reason)
        peer.write(CLOSE, got.payload)
    assert cause in one.gateway.wait_log("connection closed")
    assert len(peers) == (2 if target == "ws" else 1)


def test_pings_do_not_keep_an_idle_tunnel_alive(sluice, tmp_path):
    one = Configured(sluice, tmp_path, LISTENERS[:1], [route("echo", "echo", path="/echo", idle_timeout="1s")])
    client = websocket.connect(one.gateway.address(), "/echo")
    while True:
        client.write(PING, b"here")
        got = client.read()
        if got.opcode == CLOSE:
            assert got.code == 1001
            return
        assert (got.opcode, got.payload) == (PONG, b"here")


def test_every_connection_logs_one_closing_line_with_one_reason(sluice, tmp_path):
    one = Configured(sluice, tmp_path, LISTENERS, ROUTES, log_format="json")
    for data in (b"", b"GET", b"GET /no HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 40 + b"\r\n\r\n", request("/echo"),
                 b"GET /\"\\\xff HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\"b\x1b\r\n\r\n"):
        for end in ("reset", "close"):
            wire = Wire.connect(one.gateway.address())
            wire.send(data)
            getattr(wire, end)()
    eventually(lambda: sum("connection closed" in line for line in one.gateway.log.all()) == 14, "all ends in the log")
    lines = [json.loads(line) for line in one.gateway.log.all()]
    ends = [line for line in lines if line["message"] == "connection closed"]
    assert len({line["id"] for line in ends}) == 14
    assert all(len(line["reason"].split("/")) == 3 for line in ends), ends
    assert {line["id"] for line in lines if line["message"] == "connection opened"} <= {line["id"] for line in ends}
