"""RFC 7692 in both roles: context takeover, window sizes, fragments, violations; and the server's negotiation."""

import random
import zlib

import pytest

from support import websocket
from support.deadlines import sized
from support.subjects import FRESH_HERE, NO_TAKEOVER, SMALL, TAKEOVER
from support.websocket import BINARY, CLOSE, CONTINUATION, PING, RSV1, RSV2, TEXT

ACCEPTED = {
    "permessage-deflate": set(),
    "permessage-deflate; client_no_context_takeover": {"client_no_context_takeover"},
    "permessage-deflate; server_no_context_takeover": {"server_no_context_takeover"},
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover": {"server_no_context_takeover"},
    "permessage-deflate; client_max_window_bits": set(),
    "permessage-deflate; client_max_window_bits=9": set(),
    "permessage-deflate; client_max_window_bits=15": set(),
    "permessage-deflate; server_max_window_bits=9": {"server_max_window_bits"},
    "permessage-deflate; server_max_window_bits=12; client_max_window_bits": {"server_max_window_bits"},
    'permessage-deflate; server_max_window_bits="10"': {"server_max_window_bits"},
    "permessage-deflate; server_max_window_bits=15": set(),
    "x-unknown, permessage-deflate": set(),
    "permessage-deflate; unknown_parameter, permessage-deflate": set(),
    "permessage-deflate; server_max_window_bits=99, permessage-deflate": set(),
}
DECLINED = [
    "x-unknown", "permessage-deflate; unknown_parameter", "permessage-deflate; server_max_window_bits",
    "permessage-deflate; server_max_window_bits=7", "permessage-deflate; server_max_window_bits=16",
    "permessage-deflate; server_max_window_bits=010", "permessage-deflate; client_max_window_bits=7",
    "permessage-deflate; client_max_window_bits=16", "permessage-deflate; client_no_context_takeover=1",
    "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
]


def samples(kind, size):
    """Typical payloads: repetitive text, records, noise."""
    chance = random.Random(size)
    if kind == "text":
        words = ["lorem", "ipsum", "dolor", "sit", "amet", "gewöhnlich", "κόσμε", "日本語"]
        made = " ".join(chance.choice(words) for _ in range(size // 4 + 1))
        return made.encode()[:size].decode(errors="ignore").encode()
    if kind == "records":
        made = ",".join(f'{{"id":{number},"price":{chance.random():.4f}}}' for number in range(size // 20 + 1))
        return made.encode()[:size]
    return chance.randbytes(size)


@pytest.mark.parametrize("offer", ACCEPTED)
def test_a_valid_offer_is_accepted(echo, offer):
    with websocket.connect(echo.address(), "/echo", deflate=offer) as client:
        assert client.extensions, f"the offer was declined: {offer}"
        parameters = client.parameters
        assert ACCEPTED[offer] <= set(parameters), client.extensions
        assert set(parameters) <= {
            "server_no_context_takeover", "client_no_context_takeover", "server_max_window_bits", "client_max_window_bits"}
        # §7.1.2.2: the answer may name the client's window only if the offer did, and no larger one.
        if "client_max_window_bits" in parameters:
            assert "client_max_window_bits" in offer
            assert 8 <= int(parameters["client_max_window_bits"]) <= 15
        if "server_max_window_bits=" in offer and "99" not in offer:
            asked = int(offer.split("server_max_window_bits=")[1].split(";")[0].strip('"'))
            assert int(parameters.get("server_max_window_bits") or 15) <= asked
        for number in range(5):
            client.write_compressed(TEXT, f"message {number} " * 50)
            client.expect_text(f"message {number} " * 50)
        client.close_cleanly()


@pytest.mark.parametrize("offer", DECLINED)
def test_an_invalid_offer_is_declined_and_the_connection_is_uncompressed(echo, offer):
    with websocket.connect(echo.address(), "/echo", deflate=offer) as client:
        assert client.extensions is None, client.extensions
        client.text("uncompressed")
        client.expect_text("uncompressed")
        client.close_cleanly()


def test_a_window_of_8_bits_is_honored_or_declined(echo):
    # zlib cannot compress with this window; accepting the parameter and using a larger window would break the RFC.
    with websocket.connect(echo.address(), "/echo", deflate="permessage-deflate; server_max_window_bits=8") as client:
        payload = samples("records", 5000)
        client.write_compressed(BINARY, payload) if client.extensions else client.binary(payload)
        if client.extensions:
            got = client.read()
            assert got.fin and zlib.decompressobj(-9).decompress(got.payload + b"\0\0\xff\xff") == payload
        else:
            client.expect_binary(payload)


@pytest.mark.parametrize("size", [0, 1, 16, 64, 256, 1024, 8192, 65536, 131072])
@pytest.mark.parametrize("kind", ["text", "records", "noise"])
@pytest.mark.parametrize("agreement", [TAKEOVER, NO_TAKEOVER, SMALL])
def test_compressed_messages_are_echoed(subject, agreement, kind, size):
    opcode = TEXT if kind == "text" else BINARY
    with subject.connect(agreement) as peer:
        for number in range(sized(10, 1000)):
            payload = samples(kind, size)
            peer.write_compressed(opcode, payload)
            peer.expect_message(opcode, payload)
        peer.close_cleanly()


def test_echoed_messages_are_compressed(subject):
    with subject.connect(TAKEOVER) as peer:
        peer.write_compressed(TEXT, "repeat " * 1000)
        got = peer.read()
        assert got.rsv == RSV1 and len(got.payload) < 1000, got


@pytest.mark.parametrize("pieces", [2, 3, 100])
def test_a_fragmented_compressed_message_is_echoed(subject, pieces):
    with subject.connect(TAKEOVER) as peer:
        payload = samples("records", 20000)
        for _ in range(3):
            peer.write_compressed(BINARY, payload, pieces=pieces)
            peer.expect_binary(payload)
        peer.close_cleanly()


def test_a_ping_between_compressed_fragments_is_answered(subject):
    with subject.connect(TAKEOVER) as peer:
        body = peer.deflated(b"a message " * 100)
        peer.send(peer.frame(TEXT, body[:5], fin=False, rsv=RSV1) + peer.frame(PING, "ping") + peer.frame(CONTINUATION, body[5:]))
        control = []
        opcode, payload = peer.read_message(control)
        assert (opcode, payload) == (TEXT, b"a message " * 100)
        assert [each.payload for each in control] == [b"ping"]


def test_uncompressed_messages_between_compressed_ones_are_echoed(subject):
    with subject.connect(TAKEOVER) as peer:
        for number in range(6):
            text = f"number {number} " * 30
            peer.write_compressed(TEXT, text) if number % 2 else peer.text(text)
            peer.expect_text(text)
        peer.close_cleanly()


def test_an_empty_compressed_message_is_echoed(subject):
    with subject.connect(TAKEOVER) as peer:
        # §7.2.3.6: a single byte 00.
        peer.send(peer.frame(TEXT, b"\x00", rsv=RSV1))
        peer.expect_text("")
        peer.close_cleanly()


def test_a_message_with_a_final_deflate_block_is_inflated(subject):
    with subject.connect(FRESH_HERE) as peer:
        # §7.2.3.4: a block with BFINAL set, then one byte 00 in place of the empty block.
        peer.send(peer.frame(TEXT, bytes.fromhex("f348cdc9c9070000"), rsv=RSV1))
        peer.expect_text("Hello")
        peer.close_cleanly()


def test_a_message_of_two_deflate_blocks_is_inflated(subject):
    with subject.connect(TAKEOVER) as peer:
        # §7.2.3.5
        peer.send(peer.frame(TEXT, bytes.fromhex("f248050000 00ffffcac9c90700".replace(" ", "")), rsv=RSV1))
        peer.expect_text("Hello")
        peer.close_cleanly()


# -- violations

def test_rsv1_on_a_continuation_fails_the_connection(subject):
    with subject.connect(TAKEOVER) as peer:
        body = peer.deflated(b"a message " * 100)
        peer.send(peer.frame(TEXT, body[:5], fin=False, rsv=RSV1) + peer.frame(CONTINUATION, body[5:], rsv=RSV1))
        fail_after_fragments(peer, 1002)


@pytest.mark.parametrize("opcode", [PING, websocket.PONG, CLOSE])
def test_rsv1_on_a_control_frame_fails_the_connection(subject, opcode):
    with subject.connect(TAKEOVER) as peer:
        peer.write(opcode, b"", rsv=RSV1)
        peer.expect_failure(1002)


@pytest.mark.parametrize("rsv", [RSV2, RSV1 | RSV2, websocket.RSV3])
def test_rsv2_and_rsv3_fail_the_connection(subject, rsv):
    with subject.connect(TAKEOVER) as peer:
        peer.write(TEXT, b"Hello", rsv=rsv)
        peer.expect_failure(1002)


@pytest.mark.parametrize("body", ["ff", "06", "f248ffffffffff"], ids=["last reserved block", "reserved block", "noise"])
def test_an_invalid_deflate_stream_fails_the_connection(subject, body):
    with subject.connect(TAKEOVER) as peer:
        peer.send(peer.frame(BINARY, bytes.fromhex(body), rsv=RSV1))
        fail_after_fragments(peer, 1007, 1002)


def test_a_back_reference_into_a_discarded_context_fails_the_connection(subject):
    with subject.connect(FRESH_HERE) as peer:
        peer.send(peer.frame(TEXT, bytes.fromhex("f248cdc9c90700"), rsv=RSV1))
        peer.expect_text("Hello")
        # The second message of §7.2.3.2 refers to the first, whose context is discarded without context takeover.
        peer.send(peer.frame(TEXT, bytes.fromhex("f200110000"), rsv=RSV1))
        fail_after_fragments(peer, 1007, 1002)


def test_text_that_inflates_to_invalid_utf8_fails_the_connection(subject):
    with subject.connect(TAKEOVER) as peer:
        peer.write_compressed(TEXT, b"Hello \xff")
        fail_after_fragments(peer, 1007)


def test_a_deflate_bomb_is_refused_with_1009_in_bounded_memory(subject):
    with subject.connect(FRESH_HERE) as peer:
        before = subject.memory()
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(512)) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert len(body) < 1 << 20
        try:
            peer.send(peer.frame(BINARY, body[:-4], rsv=RSV1))
        except AssertionError:
            pass
        fail_after_fragments(peer, 1009)
        assert subject.memory() - before < 80 << 20


def fail_after_fragments(peer, *codes):
    got = peer.read()
    while got.opcode != CLOSE:
        assert not got.fin, f"the message came back: {got.opcode} {len(got.payload)}"
        got = peer.read()
    assert got.code in codes, got
    peer.expect_any_end()
