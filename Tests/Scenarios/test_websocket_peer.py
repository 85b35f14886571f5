"""Checks the WebSocket peer of the scenarios with the examples of RFC 6455 §5.7 and §1.3, and RFC 7692 §7.2.3."""

import socket
import threading

import pytest

from support.websocket import BINARY, PING, PONG, TEXT, Client, Frame, Listener, Server, Wire, accept_value, frame, mask, parse_extension

KEY = bytes.fromhex("37fa213d")

EXAMPLES = [
    ("810548656c6c6f", dict(opcode=TEXT, payload="Hello", key=None)),
    ("818537fa213d7f9f4d5158", dict(opcode=TEXT, payload="Hello", key=KEY)),
    ("010348656c", dict(opcode=TEXT, payload="Hel", fin=False, key=None)),
    ("80026c6f", dict(opcode=0, payload="lo", key=None)),
    ("890548656c6c6f", dict(opcode=PING, payload="Hello", key=None)),
    ("8a8537fa213d7f9f4d5158", dict(opcode=PONG, payload="Hello", key=KEY)),
]


@pytest.mark.parametrize("wanted, parts", EXAMPLES)
def test_encoded_frames_equal_those_of_the_rfc(wanted, parts):
    assert frame(**parts).hex() == wanted


def test_lengths_are_encoded_like_in_the_rfc():
    assert frame(BINARY, bytes(256), key=None)[:4].hex() == "827e0100"
    assert frame(BINARY, bytes(65536), key=None)[:10].hex() == "827f0000000000010000"


def test_the_accept_value_equals_that_of_the_rfc():
    assert accept_value("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 63])
def test_masking_is_exclusive_or_with_the_repeated_key(length):
    payload = bytes(range(length))
    assert mask(payload, KEY) == bytes(byte ^ KEY[at % 4] for at, byte in enumerate(payload))


def pair():
    ours, theirs = socket.socketpair()
    return Client(ours), Server(theirs)


def test_a_frame_is_read_whole_and_byte_by_byte():
    client, server = pair()
    with client, server:
        server.send(bytes.fromhex("810548656c6c6f"))
        assert client.read() == Frame(TEXT, b"Hello", True, 0, False)
        server.send_slowly(bytes.fromhex("810548656c6c6f"))
        assert client.read() == Frame(TEXT, b"Hello", True, 0, False)


def test_a_wire_under_tls_sends_and_receives_at_once(authority, server_certificate):
    data = bytes(range(256)) * (128 << 10)
    with Listener(tls=authority.server_context(server_certificate)) as listener:
        ends, ours = [], authority.client_context()
        reaching = threading.Thread(target=lambda: ends.append(Wire.connect(("127.0.0.1", listener.port), tls=ours)))
        reaching.start()
        ends.append(listener.accept())
        reaching.join()
    senders = [threading.Thread(target=end.send, args=(data,), daemon=True) for end in ends]
    got = []
    receivers = [threading.Thread(target=lambda end=end: got.append(end.receive(len(data)) == data), daemon=True) for end in ends]
    for thread in senders + receivers:
        thread.start()
    for thread in senders + receivers:
        thread.join()
    assert got == [True, True]


def test_a_masked_frame_towards_a_client_is_detected():
    client, server = pair()
    with client, server:
        server.write(TEXT, "Hello", key=KEY)
        with pytest.raises(AssertionError, match="masked towards a client"):
            client.read()


def test_compressed_messages_of_the_rfc_are_inflated():
    client, server = pair()
    with client, server:
        client.extensions = "permessage-deflate"
        client.agree({}, "client", "server")
        # §7.2.3.2: the second message refers back to the first.
        server.send(bytes.fromhex("c107f248cdc9c90700") + bytes.fromhex("c105f200110000"))
        client.expect_text("Hello")
        client.expect_text("Hello")
        # §7.2.3.1: in two fragments; §7.2.3.3: a block without compression. The window still contains the messages before.
        server.send(bytes.fromhex("4103f248cd") + bytes.fromhex("8004c9c90700"))
        client.expect_text("Hello")
        server.send(bytes.fromhex("c10b000500faff48656c6c6f00"))
        client.expect_text("Hello")


def test_extension_parameters_are_parsed():
    name, parameters = parse_extension('permessage-deflate; client_max_window_bits; server_max_window_bits="10"')
    assert (name, parameters) == ("permessage-deflate", {"client_max_window_bits": None, "server_max_window_bits": "10"})
