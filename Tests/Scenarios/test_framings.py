"""Streams and messages: every framing with every half-close policy, and violations of a framing."""

import base64
import threading

import pytest

from support import websocket
from support.deadlines import seconds
from support.ends import reach, serve
from support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Ended, close_payload, frame

FRAMINGS = ["binary", "text", "lines", "length-prefixed", "base64"]
TEXTUAL = ("text", "lines", "base64")
SAMPLE = "café, twice over".encode()


class Joined:
    """A tunnel between a stream and a WebSocket, either of them downstream."""

    def __init__(self, bridge, listener, listen, target, *options):
        self.gateway = bridge(
            f"{listen}://127.0.0.1:0{'/' if listen == 'ws' else ''}", listener.url(target, "/" if target == "ws" else ""),
            "--log-format", "json", *options)
        taken = []
        thread = threading.Thread(target=lambda: taken.append(serve(listener, target)), daemon=True)
        thread.start()
        near = reach(self.gateway, listen)
        thread.join(seconds(10))
        assert taken, "the gateway never reached the target"
        stream, other = (near, taken[0]) if listen == "tcp" else (taken[0], near)
        self.stream, self.socket = stream.wire, other.wire

    def reason(self):
        import json
        return json.loads(self.gateway.wait_log('"connection closed"'))["reason"]


@pytest.fixture
def joined(bridge, listener):
    return lambda *options, listen="tcp", target="ws": Joined(bridge, listener, listen, target, *options)


def on_the_stream(framing, payload):
    if framing == "length-prefixed":
        return len(payload).to_bytes(4, "big") + payload
    return payload + b"\n" if framing == "lines" else payload


def as_message(framing, payload):
    if framing == "base64":
        return TEXT, base64.b64encode(payload)
    return (TEXT if framing in TEXTUAL else BINARY), payload


def received(peer, framing, count):
    """Reads messages of the framing's kind until their payloads have `count` bytes."""
    got = b""
    while len(got) < count:
        one = peer.read()
        assert one.opcode in (TEXT if framing in TEXTUAL else BINARY, CONTINUATION), one
        got += base64.b64decode(one.payload) if framing == "base64" else one.payload
    return got


@pytest.mark.parametrize("framing, listed, offered, chosen", [
    ("base64", [], ["base64"], "base64"), ("base64", [], ["binary", "base64"], "base64"), ("base64", [], ["binary"], None),
    ("binary", [], ["base64", "binary"], "binary"), ("lines", [], ["lines", "binary"], None), ("base64", [], [], None),
    # The route's subprotocols come first.
    ("binary", ["mqtt"], ["binary", "mqtt"], "mqtt"), ("binary", ["mqtt"], ["binary"], "binary")])
def test_an_offered_subprotocol_named_after_the_framing_is_chosen(bridge, listener, framing, listed, offered, chosen):
    options = [word for name in listed for word in ("--subprotocol", name)]
    gateway = bridge("ws://127.0.0.1:0/", listener.url("tcp"), "--framing", framing, *options)
    with websocket.connect(gateway.address(), subprotocols=offered) as client:
        assert client.subprotocol == chosen


@pytest.mark.parametrize("half_close", ["close", "hold", "signal"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("listen, target", [("tcp", "ws"), ("ws", "tcp")])
@pytest.mark.parametrize("first", ["stream", "socket"])
def test_bytes_are_relayed_both_ways_and_ends_follow_the_half_close_policy(joined, listen, target, framing, half_close, first):
    if (framing, half_close) == ("length-prefixed", "signal"):
        return  # refused: an empty message is data there
    one = joined("--framing", framing, "--half-close", half_close, listen=listen, target=target)
    stream, peer = one.stream, one.socket
    opcode, payload = as_message(framing, SAMPLE)
    written = on_the_stream(framing, SAMPLE)

    def towards_the_socket():
        stream.send(written)
        assert received(peer, framing, len(SAMPLE)) == SAMPLE

    def towards_the_stream():
        peer.write(opcode, payload)
        assert stream.receive(len(written)) == written

    towards_the_socket()
    towards_the_stream()
    if first == "stream":
        stream.finish_sending()
        if half_close == "close":
            peer.expect_close(1000)
        elif half_close == "signal":
            assert peer.read_message() == (BINARY, b"")
            towards_the_stream()
            peer.binary(b"")
        else:
            peer.write(PING, b"are you there")
            peer.expect_pong(b"are you there")
            towards_the_stream()
    elif half_close == "signal":
        peer.binary(b"")
        stream.expect_end()
        towards_the_socket()
        stream.finish_sending()
        assert peer.read_message() == (BINARY, b"")
    if half_close == "signal":
        peer.expect_close(1000)
        peer.write(CLOSE, close_payload(1000))
    else:
        peer.write(CLOSE, close_payload(1000))
        if first == "socket" or half_close == "hold":
            peer.expect_close(1000)
    if (first, half_close) != ("socket", "signal"):
        stream.expect_end()


# -- violations of a framing: a close code for the WebSocket, a reset for the stream

FROM_THE_STREAM = {
    "text, no UTF-8": (1007, ["--framing", "text"], [b"ok\xff"], False),
    "text, a character cut by another": (1007, ["--framing", "text"], [b"ok\xe2", b"x"], False),
    "text, a surrogate": (1007, ["--framing", "text"], [b"\xed\xa0\x80"], False),
    "text, an overlong form": (1007, ["--framing", "text"], [b"\xc0\xaf"], False),
    "text, a character unfinished at the end": (1007, ["--framing", "text"], [b"a\xe2\x82"], True),
    "lines, no UTF-8": (1007, ["--framing", "lines"], [b"abc\xff\n"], False),
    "lines, a character cut by the line's end": (1007, ["--framing", "lines"], [b"\xe2\x82\n"], False),
    "lines, too long": (1009, ["--framing", "lines", "--max-message-size", "5"], [b"123456\n"], False),
    "lines, too long in pieces": (1009, ["--framing", "lines", "--max-message-size", "5"], [b"123", b"45", b"6"], False),
    "lengths, too long": (1009, ["--framing", "length-prefixed"], [b"\xff\xff\xff\xff"], False),
    "lengths, one more than the limit": (
        1009, ["--framing", "length-prefixed", "--max-message-size", "4"], [b"\0\0\0\5"], False),
    "lengths, the end within a length": (1011, ["--framing", "length-prefixed"], [b"\0\0\0"], True),
    "lengths, the end within a message": (1011, ["--framing", "length-prefixed"], [b"\0\0\0\5ab"], True),
}


@pytest.mark.parametrize("code, options, pieces, finish", FROM_THE_STREAM.values(), ids=list(FROM_THE_STREAM))
def test_a_stream_that_violates_its_framing_ends_both_sides_abnormally(joined, code, options, pieces, finish):
    one = joined(*options)
    # The last bytes may arrive after the reset, which the sender then sees first.
    met = not all([send_quietly(one.stream, bytes([byte])) for piece in pieces for byte in piece])
    if finish:
        one.stream.finish_sending()
    got = one.socket.read()
    while got.opcode in (TEXT, BINARY, CONTINUATION):
        got = one.socket.read()
    assert (got.opcode, got.code) == (CLOSE, code), got
    if not met:
        with pytest.raises(websocket.Reset):
            one.stream.receive_all(limit=100)
    assert one.reason() == f"downstream/relaying/violation({code})"


FROM_THE_SOCKET = {
    **{f"base64 {bad!r}": (1007, ["--framing", "base64"], frame(TEXT, bad, key=None))
       for bad in (b"aGV", b"aGV$", b"aGVs\n", b"aGk=aGk=", b"aGl=", b"a===", b"====", b"_-8=")},
    "text, a binary message that is none": (1007, ["--framing", "text"], frame(BINARY, b"\xff", key=None)),
    "text, a message that ends within a character": (1007, ["--framing", "text"], frame(TEXT, b"\xe2", key=None)),
    "lines, a binary message that is no text": (1007, ["--framing", "lines"], frame(BINARY, b"\xff", key=None)),
    "binary, a text message that is none": (1007, [], frame(TEXT, b"\xff", key=None)),
    "fragments that add up beyond the limit": (
        1009, ["--max-message-size", "5"], frame(BINARY, b"123", fin=False, key=None) + frame(CONTINUATION, b"456", key=None)),
    "lengths, a message that is not assembled": (
        1009, ["--framing", "length-prefixed"], frame(BINARY, bytes((1 << 20) + 1), key=None)),
    "base64, longer than the limit": (
        1009, ["--framing", "base64", "--max-message-size", "4"], frame(TEXT, b"aGVsbG8h", key=None)),
    "data after the end marker": (
        1002, ["--half-close", "signal"], frame(BINARY, b"", key=None) + frame(BINARY, b"y", key=None)),
}


@pytest.mark.parametrize("code, options, frames", FROM_THE_SOCKET.values(), ids=list(FROM_THE_SOCKET))
def test_messages_that_violate_their_framing_end_both_sides_abnormally(joined, code, options, frames):
    one = joined(*options)
    sender = threading.Thread(target=lambda: send_quietly(one.socket, frames), daemon=True)
    sender.start()
    got = one.socket.read()
    assert (got.opcode, got.code) == (CLOSE, code), got
    with pytest.raises(websocket.Reset):
        one.stream.receive_all(limit=1 << 21)
    sender.join(seconds(10))
    assert one.reason() == f"upstream/relaying/violation({code})"


def send_quietly(wire, data):
    """Sends the data; returns whether the connection was still open."""
    try:
        wire.send(data)
        return True
    except (AssertionError, OSError, Ended):
        return False


# -- ends of lines

@pytest.mark.parametrize("written, lines", [
    (b"a\nb\r\nc\rd\n\n\r\ne", [b"a", b"b", b"c\rd", b"", b"", b"e"]), (b"abc\r", [b"abc\r"]), (b"a\r\r\nb\n", [b"a\r", b"b"])])
@pytest.mark.parametrize("slowly", [False, True])
def test_lines_end_with_lf_or_crlf_and_the_last_may_have_no_end(joined, written, lines, slowly):
    one = joined("--framing", "lines")
    one.stream.send_slowly(written) if slowly else one.stream.send(written)
    one.stream.finish_sending()
    for line in lines:
        assert one.socket.read_message() == (TEXT, line)
    one.socket.expect_close(1000)


@pytest.mark.parametrize("limit", ["4", "1"])
def test_a_message_limit_does_not_split_a_character(joined, limit):
    one = joined("--framing", "text", "--max-message-size", limit)
    one.stream.send("€€€".encode())
    assert [one.socket.read_message() for _ in range(3)] == [(TEXT, "€".encode())] * 3
