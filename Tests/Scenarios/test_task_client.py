"""The library's WebSocket client against servers right and wrong: what it accepts, what it refuses, and how it tells its end."""

import asyncio
import contextlib
import os
import random
import zlib

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from support.deadlines import seconds, sized
from support.websocket import BINARY, CLOSE, PING, TEXT, Listener, accept_value, close_payload, parse_extension


@pytest.fixture
def echo_client(task_client, listener):
    """The client that echoes, on its way to the test's listener: (client, our end of the connection)."""
    def start(*words, **more):
        client = task_client("echo", listener.url("ws", "/"), *words)
        return client, listener.accept_websocket(**more)
    return start


def switching(asked, *lines, accept=None):
    """A 101, with further lines."""
    fields = [f"Sec-WebSocket-Accept: {accept or accept_value(asked.header('Sec-WebSocket-Key'))}", *lines]
    head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", *fields]
    return ("\r\n".join(head) + "\r\n\r\n").encode()


# -- the end, as the task tells it

@pytest.mark.parametrize("code, reason", [(1000, ""), (1001, "going"), (4000, "é" * 61), (3000, ""), (1012, "restart")])
def test_code_and_reason_of_the_server_are_told(echo_client, code, reason):
    client, peer = echo_client()
    peer.text("once")
    peer.expect_text("once")
    peer.close_cleanly(code, reason)
    told = client.report()
    assert (told["clean"], told["code"], told["reason"], told["echoed"]) == (True, code, reason, 1)
    assert (told["closeCode"], told.get("closeReason", "")) == (code, reason) and "failure" not in told


def test_a_close_without_code_is_told_as_1005(echo_client):
    client, peer = echo_client()
    peer.close_cleanly(None)
    told = client.report()
    assert (told["clean"], told.get("code"), told["closeCode"]) == (True, None, 1005)


@pytest.mark.parametrize("way", ["finish", "reset"])
def test_an_end_without_close_is_no_clean_end(echo_client, way):
    client, peer = echo_client()
    peer.text("once")
    peer.expect_text("once")
    peer.finish_sending() if way == "finish" else peer.reset()
    told = client.report()
    assert not told["clean"] and "closeCode" not in told and "code" not in told and told["failure"], told


@pytest.mark.parametrize("opcode, payload, code, words", [
    (0x3, b"", 1002, "protocol"), (TEXT, b"\xff", 1007, "protocol"), (BINARY, bytes(101), 1009, "limit of 100 bytes")])
def test_a_violation_is_told_with_its_code(echo_client, opcode, payload, code, words):
    client, peer = echo_client("--max-size", 100)
    peer.write(opcode, payload)
    peer.expect_failure(code)
    peer.close()
    told = client.report()
    assert not told["clean"] and told["closeCode"] == code and words in told["failure"], told


def test_what_came_in_one_segment_with_the_answer_is_echoed_before_the_close(task_client, listener):
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
    peer.expect_end_behind_close()
    told = client.report()
    assert (told["clean"], told["reason"], told["echoed"]) == (True, "enough", len(messages))


# -- the opening handshake: what the client refuses

@pytest.mark.parametrize("lines, accept", [
    ((), "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), (("Sec-WebSocket-Protocol: unasked",), None),
    (("Sec-WebSocket-Extensions: permessage-deflate",), None), (("Sec-WebSocket-Extensions: x-unasked",), None)],
    ids=["wrong key", "unasked subprotocol", "unasked compression", "unasked extension"])
def test_a_wrong_acceptance_fails_the_opening(task_client, listener, lines, accept):
    client = task_client("echo", listener.url("ws", "/"))
    peer, asked = listener.accept_request()
    peer.send(switching(asked, *lines, accept=accept) + peer.frame(TEXT, "never looked at"))
    peer.expect_any_end()
    peer.close()
    told = client.report()
    assert not told["opened"] and told["status"] == 101 and told["failure"] and told["echoed"] == 0, told


@pytest.mark.parametrize("status, reason, body", [
    (200, "OK", "hello"), (301, "Moved Permanently", ""), (401, "Unauthorized", "who are you"),
    (503, "Service Unavailable", "later")])
def test_a_refusal_is_told_with_its_status_and_body(task_client, listener, status, reason, body):
    client = task_client("echo", listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    peer.expect_end()
    peer.close()
    told = client.report()
    assert not told["opened"] and told["status"] == status and told.get("body", "") == body, told
    assert str(status) in told["failure"], told


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 101 Switch", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\x16\x03\x01\x00\x05hello\r\n\r\n"])
def test_an_answer_that_is_none_fails_the_opening(task_client, listener, answer):
    client = task_client("echo", listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(answer)
    peer.close()
    told = client.report()
    assert not told["opened"] and told["failure"], told


def test_nobody_there_is_told(task_client):
    with Listener() as gone:
        url = gone.url("ws", "/")
    told = task_client("echo", url).report()
    assert not told["opened"] and "refused" in told["failure"], told


# -- permessage-deflate: what the client offers, accepts and refuses (RFC 7692 §7.1)

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
def test_the_offer_is_what_was_asked_for(echo_client, words, offer):
    client, peer = echo_client("--deflate", *words)
    made = [parse_extension(each) for each in peer.request.header("Sec-WebSocket-Extensions").split(",")]
    assert made == [parse_extension(each) for each in offer.split(",")]
    # Declined is no failure.
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
def test_an_acceptance_is_kept_to(echo_client, parameters):
    client, peer = echo_client("--deflate", extensions="; ".join(filter(None, ["permessage-deflate", parameters])))
    # The same twice shows whether context is kept as agreed; long enough to leave any window.
    for payload in (samples(70_000), samples(70_000), b"", samples(300), samples(70_000, seed=2)):
        peer.write_compressed(BINARY, payload)
        peer.expect_binary(payload)
    peer.close_cleanly()
    assert client.report()["clean"]


def test_a_window_of_8_bits_is_kept_to(echo_client):
    client, peer = echo_client("--deflate", extensions="permessage-deflate; client_max_window_bits=8")
    payload = samples(5000)
    peer.binary(payload)
    got = peer.read()
    # What refers back further than 256 bytes does not inflate here.
    body = zlib.decompressobj(-8).decompress(got.payload + b"\0\0\xff\xff") if got.rsv else got.payload
    assert got.fin and body == payload
    peer.close_cleanly()
    client.report()


def test_what_the_offer_said_of_our_own_side_binds_without_being_repeated(echo_client):
    client, peer = echo_client(
        "--deflate", "--own-window", 9, "--no-context-takeover", extensions="permessage-deflate; server_no_context_takeover")
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
def test_an_acceptance_that_the_rfc_forbids_fails_the_opening(task_client, listener, answer):
    client = task_client("echo", listener.url("ws", "/"), "--deflate")
    peer, asked = listener.accept_request()
    peer.send(switching(asked, f"Sec-WebSocket-Extensions: {answer}"))
    peer.expect_any_end()
    peer.close()
    told = client.report()
    assert not told["opened"] and told["failure"] and told["status"] == 101, told


def test_an_acceptance_without_what_was_insisted_on_fails_the_opening(task_client, listener):
    client = task_client("echo", listener.url("ws", "/"), "--deflate", "--no-context-takeover")
    peer, asked = listener.accept_request()
    peer.send(switching(asked, "Sec-WebSocket-Extensions: permessage-deflate"))
    peer.expect_any_end()
    peer.close()
    assert not client.report()["opened"]


# -- against a server that is not ours

def against_websockets(task_client, conversation, scheme="ws", words=(), **settings):
    """Runs `conversation` as the handler of a server of the `websockets` package; what the client told at its end."""
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
def test_messages_of_every_size_come_back_from_the_client(task_client, compression):
    sizes = [0, 1, 125, 126, 65535, 65536, 1 << 20, *([] if compression else [16 << 20])]

    async def conversation(connection):
        assert bool(connection.protocol.extensions) == (compression is not None)
        for size in sizes:
            for message in ("é" * (size // 2), os.urandom(size), samples(size)):
                await connection.send(message)
                assert await connection.recv() == message
        # Fragments make one message, many messages may be under way.
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
    told, answer = against_websockets(task_client, conversation, words=words, compression=compression)
    assert answer == "done" and (told["clean"], told["code"]) == (True, 1000)
    assert told["echoed"] == len(sizes) * 3 + 1 + sized(500, 5000)


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_messages_of_16_mebibytes_come_back_from_the_client(task_client, compression):
    async def conversation(connection):
        for message in (os.urandom(16 << 20), "x" * (16 << 20), samples(1 << 20) * 16):
            await connection.send(message)
            assert await connection.recv() == message
        # One byte more is refused, maybe before all of it was sent.
        with contextlib.suppress(ConnectionClosed):
            await connection.send(bytes((16 << 20) + 1))
        await connection.wait_closed()
        return connection.close_code

    words = ["--deflate"] if compression else []
    told, code = against_websockets(task_client, conversation, words=words, compression=compression)
    assert code == 1009 and told["echoed"] == 3 and "limit of 16777216" in told["failure"]


def test_a_subprotocol_is_agreed_on(task_client):
    async def conversation(connection):
        return connection.subprotocol

    told, agreed = against_websockets(
        task_client, conversation, words=["--subprotocol", "first", "--subprotocol", "second"], subprotocols=["second"])
    assert agreed == "second" and told["subprotocol"] == "second" and told["clean"]


def test_a_client_echoes_under_tls(task_client, authority, server_certificate):
    async def conversation(connection):
        message = os.urandom(1 << 20)
        await connection.send(message)
        return await connection.recv() == message

    words = ["--ca", authority.certificate]
    told, same = against_websockets(
        task_client, conversation, "wss", words, ssl=authority.server_context(server_certificate))
    assert same and told["clean"]


@pytest.mark.parametrize("words", [["--server-name", "elsewhere.test"], None], ids=["wrong name", "unknown authority"])
def test_a_client_refuses_a_certificate(task_client, authority, server_certificate, words):
    trust = ["--ca", authority.certificate, *words] if words else []
    told, met = against_websockets(task_client, None, "wss", trust, ssl=authority.server_context(server_certificate))
    assert met is None and not told["opened"] and "status" not in told
    assert told["failure"].startswith("TLS failed: ") and ("mismatch" if words else "certificate") in told["failure"], told
