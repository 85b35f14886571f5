"""The library's WebSocket client against correct and misbehaving servers: handshakes, compression, and reported ends."""

import asyncio
import contextlib
import os
import random
import zlib

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from support.deadlines import seconds, sized
from support.programs import refusing_port
from support.websocket import BINARY, CLOSE, PING, TEXT, accept_value, close_payload, parse_extension


@pytest.fixture
def echo_client(task_client, listener):
    """An echoing client that connects to the test's listener: (client, our end of the connection)."""
    def start(*words, **more):
        client = task_client("echo", listener.url("ws", "/"), *words)
        return client, listener.accept_websocket(**more)
    return start


def switching(asked, *lines, accept=None):
    """A 101 response with further header lines."""
    fields = [f"Sec-WebSocket-Accept: {accept or accept_value(asked.header('Sec-WebSocket-Key'))}", *lines]
    head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", *fields]
    return ("\r\n".join(head) + "\r\n\r\n").encode()


# -- reported ends

@pytest.mark.parametrize("code, reason", [(1000, ""), (1001, "going"), (4000, "é" * 61), (3000, ""), (1012, "restart")])
def test_the_servers_close_code_and_reason_are_reported(echo_client, code, reason):
    client, peer = echo_client()
    peer.text("once")
    peer.expect_text("once")
    peer.close_cleanly(code, reason)
    report = client.report()
    assert (report["clean"], report["code"], report["reason"], report["echoed"]) == (True, code, reason, 1)
    assert (report["closeCode"], report.get("closeReason", "")) == (code, reason) and "failure" not in report


def test_a_close_without_code_is_reported_as_1005(echo_client):
    client, peer = echo_client()
    peer.close_cleanly(None)
    report = client.report()
    assert (report["clean"], report.get("code"), report["closeCode"]) == (True, None, 1005)


@pytest.mark.parametrize("way", ["finish", "reset"])
def test_an_end_without_close_is_reported_as_unclean(echo_client, way):
    client, peer = echo_client()
    peer.text("once")
    peer.expect_text("once")
    peer.finish_sending() if way == "finish" else peer.reset()
    report = client.report()
    assert not report["clean"] and "closeCode" not in report and "code" not in report and report["failure"], report


@pytest.mark.parametrize("opcode, payload, code, words", [
    (0x3, b"", 1002, "protocol"), (TEXT, b"\xff", 1007, "protocol"), (BINARY, bytes(101), 1009, "limit of 100 bytes")])
def test_a_violation_is_reported_with_its_close_code(echo_client, opcode, payload, code, words):
    client, peer = echo_client("--max-size", 100)
    peer.write(opcode, payload)
    peer.expect_failure(code)
    peer.close()
    report = client.report()
    assert not report["clean"] and report["closeCode"] == code and words in report["failure"], report


def test_messages_in_one_segment_with_the_response_are_echoed_before_the_close(task_client, listener):
    client = task_client("echo", listener.url("ws", "/"))
    peer, asked = listener.accept_request()
    messages = [f"message {number}" for number in range(sized(100, 1000))]
    frames = b"".join(peer.frame(TEXT, text) + peer.frame(PING, text) for text in messages)
    peer.send(switching(asked) + frames + peer.frame(CLOSE, close_payload(1000, "enough")))
    pongs = []
    for text in messages:
        assert peer.read_message(pongs) == (TEXT, text.encode())
    while len(pongs) < len(messages):
        pongs.append(peer.read())
    assert [each.payload.decode() for each in pongs] == messages
    peer.expect_close(1000)
    peer.expect_end_after_close()
    report = client.report()
    assert (report["clean"], report["reason"], report["echoed"]) == (True, "enough", len(messages))


# -- refused opening handshakes

@pytest.mark.parametrize("lines, accept", [
    ((), "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), (("Sec-WebSocket-Protocol: unasked",), None),
    (("Sec-WebSocket-Extensions: permessage-deflate",), None), (("Sec-WebSocket-Extensions: x-unasked",), None)],
    ids=["wrong key", "unasked subprotocol", "unasked compression", "unasked extension"])
def test_an_invalid_101_response_fails_the_opening(task_client, listener, lines, accept):
    client = task_client("echo", listener.url("ws", "/"))
    peer, asked = listener.accept_request()
    peer.send(switching(asked, *lines, accept=accept) + peer.frame(TEXT, "never read"))
    peer.expect_any_end()
    peer.close()
    report = client.report()
    assert not report["opened"] and report["status"] == 101 and report["failure"] and report["echoed"] == 0, report


@pytest.mark.parametrize("status, reason, body", [
    (200, "OK", "hello"), (301, "Moved Permanently", ""), (401, "Unauthorized", "who are you"),
    (503, "Service Unavailable", "later")])
def test_a_refusal_is_reported_with_its_status_and_body(task_client, listener, status, reason, body):
    client = task_client("echo", listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    peer.expect_end()
    peer.close()
    report = client.report()
    assert not report["opened"] and report["status"] == status and report.get("body", "") == body, report
    assert str(status) in report["failure"], report


@pytest.mark.parametrize("head, body, said", [
    ("404 Not Found\r\nTransfer-Encoding: chunked", "8\r\nno such \r\n5\r\nthing\r\n0\r\n\r\n", "no such thing"),
    ("204 No Content", "", ""), ("304 Not Modified", "", "")])
def test_a_refusal_ends_where_its_body_does(task_client, listener, head, body, said):
    client = task_client("echo", listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    # The connection stays open, as that of a server which waits for the next request.
    peer.send(f"HTTP/1.1 {head}\r\n\r\n{body}".encode())
    report = client.report()
    assert not report["opened"] and report["status"] == int(head[:3]) and report.get("body", "") == said, report
    peer.expect_end()
    peer.close()


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 101 Switch", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\x16\x03\x01\x00\x05hello\r\n\r\n"])
def test_a_response_that_is_no_http_fails_the_opening(task_client, listener, answer):
    client = task_client("echo", listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(answer)
    peer.close()
    report = client.report()
    assert not report["opened"] and report["failure"], report


def test_a_refused_connection_is_reported(task_client):
    with refusing_port() as port:
        report = task_client("echo", f"ws://127.0.0.1:{port}/").report()
    assert not report["opened"] and "refused" in report["failure"], report


# -- permessage-deflate: offers, accepted and refused responses (RFC 7692 §7.1)

def samples(size, seed=1):
    chance = random.Random(seed)
    return ",".join(f'{{"id":{number},"price":{chance.random():.4f}}}' for number in range(size // 20 + 1)).encode()[:size]


@pytest.mark.parametrize("words, offer", [
    ([], "permessage-deflate; client_max_window_bits"),
    (["--own-window", 10], "permessage-deflate; client_max_window_bits=10"),
    (["--peer-window", 11],
     "permessage-deflate; server_max_window_bits=11; client_max_window_bits, permessage-deflate; client_max_window_bits"),
    (["--no-context-takeover"],
     "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits")])
def test_the_offer_has_the_requested_parameters(echo_client, words, offer):
    client, peer = echo_client("--deflate", *words)
    made = [parse_extension(each) for each in peer.request.header("Sec-WebSocket-Extensions").split(",")]
    assert made == [parse_extension(each) for each in offer.split(",")]
    # A declined offer is no failure.
    peer.text("uncompressed")
    peer.expect_text("uncompressed")
    peer.close_cleanly()
    assert "extensions" not in client.report()


ACCEPTED = [
    "", "server_no_context_takeover", "client_no_context_takeover", "client_no_context_takeover; server_no_context_takeover",
    *(f"client_max_window_bits={bits}" for bits in range(9, 16)), *(f"server_max_window_bits={bits}" for bits in range(9, 16)),
    'client_max_window_bits="10"', "server_max_window_bits=9; client_max_window_bits=9; server_no_context_takeover",
]


@pytest.mark.parametrize("parameters", ACCEPTED)
def test_accepted_parameters_are_honored(echo_client, parameters):
    client, peer = echo_client("--deflate", extensions="; ".join(filter(None, ["permessage-deflate", parameters])))
    # The repeated payload shows whether the context is kept as agreed; it is longer than any window.
    for payload in (samples(70_000), samples(70_000), b"", samples(300), samples(70_000, seed=2)):
        peer.write_compressed(BINARY, payload)
        peer.expect_binary(payload)
    peer.close_cleanly()
    assert client.report()["clean"]


def test_a_window_of_8_bits_is_honored(echo_client):
    client, peer = echo_client("--deflate", extensions="permessage-deflate; client_max_window_bits=8")
    payload = samples(5000)
    peer.binary(payload)
    got = peer.read()
    # Data with references beyond 256 bytes does not inflate with this window.
    body = zlib.decompressobj(-8).decompress(got.payload + b"\0\0\xff\xff") if got.rsv else got.payload
    assert got.fin and body == payload
    peer.close_cleanly()
    client.report()


# The second answer is that of servers which can do nothing else.
@pytest.mark.parametrize("answer", ["permessage-deflate; server_no_context_takeover", "permessage-deflate"])
def test_offered_parameters_of_the_client_bind_it_without_being_repeated(echo_client, answer):
    client, peer = echo_client("--deflate", "--own-window", 9, "--no-context-takeover", extensions=answer)
    peer.theirs_bits, peer.theirs_fresh = 9, True
    for _ in range(3):
        peer.write_compressed(BINARY, samples(70_000))
        peer.expect_binary(samples(70_000))
    peer.close_cleanly()
    client.report()


REFUSED = [
    "permessage-deflate; unknown", "permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=7",
    "permessage-deflate; client_max_window_bits=16", "permessage-deflate; client_max_window_bits=010",
    "permessage-deflate; server_max_window_bits", "permessage-deflate; server_max_window_bits=7",
    "permessage-deflate; server_max_window_bits=16", "permessage-deflate; server_no_context_takeover=1",
    "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
    "permessage-deflate; client_max_window_bits=10; client_max_window_bits=10", "permessage-deflate, permessage-deflate",
    "x-unknown", "permessage-deflate, x-unknown", "permessage-deflate;;", "permessage-deflate; =9",
]


@pytest.mark.parametrize("answer", REFUSED)
def test_a_forbidden_extension_response_fails_the_opening(task_client, listener, answer):
    client = task_client("echo", listener.url("ws", "/"), "--deflate")
    peer, asked = listener.accept_request()
    peer.send(switching(asked, f"Sec-WebSocket-Extensions: {answer}"))
    peer.expect_any_end()
    peer.close()
    report = client.report()
    assert not report["opened"] and report["failure"] and report["status"] == 101, report


def test_a_response_beyond_the_offered_limit_fails_the_opening(task_client, listener):
    client = task_client("echo", listener.url("ws", "/"), "--deflate", "--own-window", 10)
    peer, asked = listener.accept_request()
    peer.send(switching(asked, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=11"))
    peer.expect_any_end()
    peer.close()
    assert not client.report()["opened"]


# -- against Python's websockets

def against_websockets(task_client, conversation, scheme="ws", words=(), **settings):
    """Runs `conversation` as the handler of a server of the `websockets` package; returns the client's report and its result."""
    async def main():
        done = asyncio.get_running_loop().create_future()

        async def handler(connection):
            try:
                done.set_result(await conversation(connection))
            except BaseException as error:  # noqa: BLE001 - handed to the test
                done.set_exception(error)

        async with serve(handler, "127.0.0.1", 0, max_size=None, **settings) as server:
            port = server.sockets[0].getsockname()[1]
            client = task_client("echo", f"{scheme}://127.0.0.1:{port}/echo", "--max-size", 16 << 20, *words)
            ended = asyncio.get_running_loop().run_in_executor(None, client.report, 90)
            await asyncio.wait([done, ended], return_when=asyncio.FIRST_COMPLETED, timeout=seconds(90))
            return (await ended), (done.result() if done.done() else None)

    return asyncio.run(main())


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_the_client_echoes_messages_of_every_size(task_client, compression):
    sizes = [0, 1, 125, 126, 65535, 65536, 1 << 20, *([] if compression else [16 << 20])]

    async def conversation(connection):
        assert bool(connection.protocol.extensions) == (compression is not None)
        for size in sizes:
            for message in ("é" * (size // 2), os.urandom(size), samples(size)):
                await connection.send(message)
                assert await connection.recv() == message
        # A fragmented message, then many messages in flight.
        await connection.send(["one", "two", "three"])
        assert await connection.recv() == "onetwothree"
        many = [f"number {number} " * 20 for number in range(sized(500, 5000))]
        for text in many:
            await connection.send(text)
        assert [await connection.recv() for _ in many] == many
        pong = await connection.ping("are you there")
        await pong
        return "done"

    words = ["--deflate"] if compression else []
    report, answer = against_websockets(task_client, conversation, words=words, compression=compression)
    assert answer == "done" and (report["clean"], report["code"]) == (True, 1000)
    assert report["echoed"] == len(sizes) * 3 + 1 + sized(500, 5000)


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_the_client_echoes_messages_of_16_mebibytes(task_client, compression):
    async def conversation(connection):
        for message in (os.urandom(16 << 20), "x" * (16 << 20), samples(1 << 20) * 16):
            await connection.send(message)
            assert await connection.recv() == message
        # One byte more is refused, possibly before all of it was sent.
        with contextlib.suppress(ConnectionClosed):
            await connection.send(bytes((16 << 20) + 1))
        await connection.wait_closed()
        return connection.close_code

    words = ["--deflate"] if compression else []
    report, code = against_websockets(task_client, conversation, words=words, compression=compression)
    assert code == 1009 and report["echoed"] == 3 and "limit of 16777216" in report["failure"]


def test_a_subprotocol_is_negotiated(task_client):
    async def conversation(connection):
        return connection.subprotocol

    report, agreed = against_websockets(
        task_client, conversation, words=["--subprotocol", "first", "--subprotocol", "second"], subprotocols=["second"])
    assert agreed == "second" and report["subprotocol"] == "second" and report["clean"]


def test_the_client_echoes_under_tls(task_client, authority, server_certificate):
    async def conversation(connection):
        message = os.urandom(1 << 20)
        await connection.send(message)
        return await connection.recv() == message

    words = ["--ca", authority.certificate]
    report, same = against_websockets(
        task_client, conversation, "wss", words, ssl=authority.server_context(server_certificate))
    assert same and report["clean"]


@pytest.mark.parametrize("words", [["--server-name", "elsewhere.test"], None], ids=["wrong name", "unknown authority"])
def test_the_client_refuses_a_certificate_that_fails_verification(task_client, authority, server_certificate, words):
    trust = ["--ca", authority.certificate, *words] if words else []
    report, met = against_websockets(task_client, None, "wss", trust, ssl=authority.server_context(server_certificate))
    assert met is None and not report["opened"] and "status" not in report
    assert report["failure"].startswith("TLS failed: ") and ("mismatch" if words else "certificate") in report["failure"], report
