"""Targets that are down, refuse, hang or answer something else: a clear status before 101, an abnormal end after it."""

import socket
import threading

import pytest

from support import configuration, websocket
from support.programs import free_port
from support.websocket import Wire, accept_value, parse_head, request


def refusal(gateway, path="/", within=20):
    with Wire.connect(gateway.address(), within=within) as wire:
        wire.send(request(path))
        return parse_head(wire.receive_head())


def answering(listener, respond):
    """A target that answers every opening handshake with `respond(request)` until its listener closes."""
    def work():
        while True:
            try:
                peer, asked = listener.accept_request()
            except (AssertionError, OSError):
                return
            reply = respond(asked)
            if reply is not None:
                peer.send(reply)
                peer.close()
            else:
                peer.reset()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind, path", [("tcp", ""), ("ws", "/")])
def test_a_target_that_refuses_connections_is_a_502(bridge, kind, path):
    gateway = bridge("ws://127.0.0.1:0/", f"{kind}://127.0.0.1:{free_port()}{path}")
    assert refusal(gateway).status == 502


@pytest.mark.parametrize("kind, path", [("tcp", ""), ("ws", "/")])
def test_a_target_that_refuses_resets_a_raw_client(bridge, kind, path):
    gateway = bridge("tcp://127.0.0.1:0", f"{kind}://127.0.0.1:{free_port()}{path}")
    Wire.expect_refusal(gateway.address(), within=20)


def test_a_missing_unix_target_is_a_502(bridge, tmp_path):
    gateway = bridge("ws://127.0.0.1:0/", f"unix://{tmp_path / 'nowhere.sock'}")
    assert refusal(gateway).status == 502


def test_a_name_that_does_not_resolve_is_a_502(bridge):
    gateway = bridge("ws://127.0.0.1:0/", "tcp://nowhere.invalid:1", "--connect-timeout", "5s")
    assert refusal(gateway, within=40).status in (502, 504)


def test_a_target_that_does_not_accept_is_a_504(bridge):
    # The backlog of a socket that does not accept is full: connecting hangs.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        try:
            while True:
                filler = socket.socket()
                filler.settimeout(0.5)
                fillers.append(filler)
                filler.connect(full.getsockname())
        except (socket.timeout, TimeoutError):
            pass
        gateway = bridge("ws://127.0.0.1:0/", f"tcp://127.0.0.1:{full.getsockname()[1]}", "--connect-timeout", "500ms")
        assert refusal(gateway).status == 504
        for filler in fillers:
            filler.close()


def test_a_target_that_never_answers_the_upgrade_is_a_504(sluice, listener, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0", handshake_timeout="20s")],
        [configuration.route("app", "app", path="/")],
        [configuration.upstream("app", listener.url("ws", "/"), handshake_timeout="500ms", retries=0)])
    gateway = sluice("serve", "--config", file)
    assert refusal(gateway).status == 504


@pytest.mark.parametrize("status, passed", [(200, 502), (204, 502), (301, 502), (500, 502), (502, 502), (418, 502), (400, 502),
                                            (401, 401), (403, 403), (404, 404), (429, 429), (503, 503)])
def test_a_targets_status_instead_of_101_selects_the_response(bridge, listener, status, passed):
    answering(listener, lambda _: f"HTTP/1.1 {status} Whatever\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody".encode())
    gateway = bridge("ws://127.0.0.1:0/", listener.url("ws", "/"))
    assert refusal(gateway).status == passed


BROKEN = {
    "nothing": lambda asked: b"",
    "a reset": lambda asked: None,
    "noise": lambda asked: b"\x00\xff" * 50 + b"\r\n\r\n",
    "no accept": lambda asked: b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "a wrong accept": lambda asked: b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
    "no upgrade": lambda asked: f"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_value(asked.header('Sec-WebSocket-Key'))}\r\n\r\n".encode(),
    "a subprotocol that was not offered": lambda asked: f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_value(asked.header('Sec-WebSocket-Key'))}\r\nSec-WebSocket-Protocol: invented\r\n\r\n".encode(),
    "an extension that was not offered": lambda asked: f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_value(asked.header('Sec-WebSocket-Key'))}\r\nSec-WebSocket-Extensions: x-invented\r\n\r\n".encode(),
    "endless headers": lambda asked: b"HTTP/1.1 101 X\r\n" + b"X-Long: " + b"a" * 300_000,
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=list(BROKEN))
def test_an_invalid_handshake_response_is_a_502(bridge, listener, answer):
    def respond(asked):
        return answer(asked)

    answering(listener, respond)
    gateway = bridge("ws://127.0.0.1:0/", listener.url("ws", "/"))
    assert refusal(gateway).status == 502
    raw = bridge("tcp://127.0.0.1:0", listener.url("ws", "/"))
    Wire.expect_refusal(raw.address(), within=20)


# -- violations after 101: the connection to the target fails with a close code, the raw client is reset

BREACHES = {
    "a masked frame": (1002, websocket.frame(websocket.BINARY, b"x", key=b"abcd")),
    "a reserved bit": (1002, websocket.frame(websocket.BINARY, b"x", rsv=0x40, key=None)),
    "a reserved opcode": (1002, websocket.frame(0x3, b"x", key=None)),
    "a reserved control opcode": (1002, websocket.frame(0xB, b"x", key=None)),
    "a fragmented ping": (1002, websocket.frame(websocket.PING, b"x", fin=False, key=None)),
    "a long ping": (1002, websocket.frame(websocket.PING, b"x" * 126, key=None)),
    "a continuation of nothing": (1002, websocket.frame(websocket.CONTINUATION, b"x", key=None)),
    "a message in a message": (1002, websocket.frame(websocket.BINARY, b"x", fin=False, key=None) + websocket.frame(websocket.BINARY, b"y", key=None)),
    "a close of one byte": (1002, websocket.frame(websocket.CLOSE, b"\x03", key=None)),
    "a close code of the wrong kind": (1002, websocket.frame(websocket.CLOSE, b"\x03\xed", key=None)),
    "a close reason that is no text": (1007, websocket.frame(websocket.CLOSE, b"\x03\xe8\xff", key=None)),
    "a length that is too long a form": (1002, websocket.frame(websocket.BINARY, b"x", key=None, length_bytes=2)),
    "a length beyond 2^63": (1002, bytes([0x82, 0x7F]) + b"\xff" * 8),
}


@pytest.mark.parametrize("code, breach", BREACHES.values(), ids=list(BREACHES))
def test_a_protocol_violation_of_a_target_fails_the_connection(bridge, listener, code, breach):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("ws", "/"))
    with Wire.connect(gateway.address()) as near:
        far = listener.accept_websocket()
        far.binary(b"sound")
        assert near.receive(5) == b"sound"
        far.send(breach)
        got = far.read()
        assert (got.opcode, got.code) == (websocket.CLOSE, code), got
        # Bytes of a frame that was valid so far may have arrived; the end must be a reset.
        with pytest.raises(websocket.Reset):
            near.receive_all(limit=100)


# -- requests to targets

def test_a_websocket_target_receives_headers_and_forwarding_fields(bridge, listener):
    gateway = bridge("ws://127.0.0.1:0/", listener.url("ws", "/app?x=1"), "--header", "Authorization: Bearer abc", "--header", "X-Two: 2")
    seen = []

    def take():
        peer, asked = listener.accept_request()
        seen.append(asked)
        peer.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    assert refusal(gateway).status == 403
    thread.join(10)
    asked = seen[0]
    assert asked.start_line == "GET /app?x=1 HTTP/1.1"
    assert asked.header("Authorization") == "Bearer abc" and asked.header("X-Two") == "2"
    assert asked.header("X-Forwarded-For") == "127.0.0.1"
    assert asked.header("X-Forwarded-Proto") in ("http", "ws")
    assert asked.header("X-Forwarded-Host") == "localhost"
    assert "for=127.0.0.1" in asked.header("Forwarded").replace('"', "")


def test_forwarding_fields_of_an_untrusted_client_are_replaced(sluice, listener, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0", forwarding_trusted=["192.0.2.0/24"])],
        [configuration.route("app", "app", path="/")], [configuration.upstream("app", listener.url("ws", "/"))])
    gateway = sluice("serve", "--config", file)
    seen = []

    def take():
        peer, asked = listener.accept_request()
        seen.append(asked)
        peer.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    with Wire.connect(gateway.address()) as wire:
        wire.send(request("/", headers=[("X-Forwarded-For", "203.0.113.9"), ("Forwarded", "for=203.0.113.9"),
                                        ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.example")]))
        parse_head(wire.receive_head())
    thread.join(10)
    assert "203.0.113.9" not in seen[0].raw.decode() and "evil.example" not in seen[0].raw.decode(), seen[0].raw


# -- several endpoints

def echo_server(listener, name):
    def work():
        while True:
            try:
                wire = listener.accept()
            except (AssertionError, OSError):
                return
            wire.send(name)
            wire.finish_sending()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()


def test_round_robin_uses_every_endpoint_in_turn(sluice, tmp_path):
    listeners = [websocket.Listener(within=60) for _ in range(3)]
    for number, one in enumerate(listeners):
        echo_server(one, b"%d" % number)
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="all")],
        [configuration.route("all", "all")], [configuration.upstream("all", *(one.url("tcp") for one in listeners), policy="round-robin")],
        loops=1)
    gateway = sluice("serve", "--config", file)
    seen = []
    for _ in range(6):
        with Wire.connect(gateway.address()) as near:
            seen.append(near.receive_all())
    assert sorted(seen) == [b"0", b"0", b"1", b"1", b"2", b"2"], seen
    for one in listeners:
        one.close()


def test_failover_uses_the_next_endpoint_when_the_first_is_down(sluice, tmp_path):
    with websocket.Listener(within=60) as second:
        echo_server(second, b"second")
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="all")],
            [configuration.route("all", "all")],
            [configuration.upstream("all", f"tcp://127.0.0.1:{free_port()}", second.url("tcp"), policy="failover")])
        gateway = sluice("serve", "--config", file)
        for _ in range(3):
            with Wire.connect(gateway.address()) as near:
                assert near.receive_all() == b"second"
