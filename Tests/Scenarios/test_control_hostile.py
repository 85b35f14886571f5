"""HTTP/1.0 clients of the control plane, and request bodies that never end."""

import json
import socket
import time

import pytest

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds


@pytest.fixture
def serve(sluice, tmp_path):
    def start(**control):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")],
            control={"address": "http://127.0.0.1:0", "targets": ["127.0.0.1"], **control})
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


def exchange(control, head, body=b"", within=15.0):
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(within)) as one:
        one.sendall(head + body)
        received = b""
        try:
            while chunk := one.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
        return received


def response(one):
    """The parts of the next response on a connection that stays open."""
    received = b""
    while True:
        chunk = one.recv(65536)
        assert chunk, received
        received += chunk
        if b"\r\n\r\n" in received:
            status, fields, body = parts(received)
            if len(body) >= int(fields["content-length"]):
                return status, fields, body


def parts(received):
    """(status, header fields in lower case, body)"""
    head, _, body = received.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return int(line.split()[1]), {field.partition(":")[0].lower(): field.partition(":")[2].strip() for field in fields}, body


def test_an_http_1_0_client_gets_its_response_and_the_end_of_the_connection(serve):
    # An HTTP/1.0 client reads to the end of the connection: keeping it open would block the client.
    _, control = serve()
    start = time.monotonic()
    status, fields, body = parts(exchange(control, b"GET /livez HTTP/1.0\r\n\r\n"))
    assert (status, fields["connection"], json.loads(body)["status"]) == (200, "close", "ok")
    status, fields, body = parts(exchange(control, b"GET /v1/events?durationMs=10 HTTP/1.0\r\nHost: localhost\r\n\r\n"))
    assert status == 200 and "transfer-encoding" not in fields and body.startswith(b":\n\n")
    for option in (b"close", b"Close", b"TE, close"):
        status, fields, _ = parts(exchange(control, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: " + option + b"\r\n\r\n"))
        assert (status, fields["connection"]) == (200, "close"), option
    assert time.monotonic() - start < seconds(10)
    # With keep-alive, the connection stays open for the next request.
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(10)) as one:
        for _ in range(2):
            one.sendall(b"GET /livez HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
            status, fields, _ = response(one)
            assert (status, fields["connection"]) == (200, "keep-alive")


def test_two_idempotency_keys_are_refused(serve):
    _, control = serve()
    head = b"POST /v1/drains HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    status, _, body = parts(exchange(control, head + b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n", b"{}"))
    assert (status, json.loads(body)["code"]) == (400, "invalid-header")


def test_an_endless_body_is_cut_off(serve):
    gateway, control = serve()
    head = b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(20)) as one:
        one.sendall(head)
        start = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError, TimeoutError)):
            while time.monotonic() - start < seconds(15):
                one.sendall(chunk)
    assert gateway.memory() < 512 << 20
    eventually(lambda: control.get("/livez").status == 200, "alive")


def test_a_client_that_waits_before_its_body_is_asked_for_it(serve):
    # RFC 9110 §10.1.1: a client with Expect may wait for 100 forever.
    _, control = serve()
    head = b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    body = b"{}"
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(15)) as one:
        one.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body))
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            chunk = one.recv(65536)
            assert chunk, received
            received += chunk
        assert received == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(body)
        assert parts(one.recv(65536))[0] == 422
    # A request that is refused by its head has no use for the body.
    status, fields, _ = parts(exchange(control, head + b"Content-Length: 2000000\r\n\r\n"))
    assert (status, fields["connection"]) == (413, "close")
