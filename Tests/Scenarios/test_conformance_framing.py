"""RFC 6455 §5 in both roles: lengths, control frames, reserved bits and opcodes, fragmentation."""

import itertools

import pytest

from support.deadlines import sized
from support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, RSV1, RSV2, RSV3, TEXT, close_payload

PROTOCOL_ERROR = 1002


# -- lengths (§5.2)

@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 128, 65535, 65536])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_of_any_length_is_echoed(peer, opcode, length):
    payload = (b"*" if opcode == TEXT else b"\xfe") * length
    peer.write(opcode, payload)
    peer.expect_message(opcode, payload)
    peer.close_cleanly()


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_in_many_tcp_segments_is_echoed(peer, opcode):
    payload = b"*" * 65536
    peer.send_slowly(peer.frame(opcode, payload), size=997)
    peer.expect_message(opcode, payload)
    peer.close_cleanly()


@pytest.mark.parametrize("length, form", [(0, 2), (125, 2), (0, 8), (126, 8), (65535, 8)])
def test_a_length_not_in_its_shortest_form_fails_the_connection(peer, length, form):
    peer.write(BINARY, bytes(length), length_bytes=form)
    peer.expect_failure(PROTOCOL_ERROR)


def test_a_length_with_the_highest_bit_set_fails_the_connection(peer):
    peer.send(bytes([0x82, 0xFF]) + b"\xff" * 8 + b"\0" * 4)
    peer.expect_failure(PROTOCOL_ERROR, 1009)


@pytest.mark.parametrize("subject", ["server"], indirect=True)
def test_a_masking_key_of_zero_is_accepted(peer):
    peer.write(TEXT, "Hello", key=bytes(4))
    peer.expect_text("Hello")
    peer.close_cleanly()


# -- masking (§5.1)

@pytest.mark.parametrize("opcode", [TEXT, BINARY, PING, CLOSE])
def test_a_frame_masked_for_the_wrong_role_fails_the_connection(peer, opcode):
    peer.write(opcode, b"\x03\xe8" if opcode == CLOSE else b"Hello", key=None if peer.masks else b"\x37\xfa\x21\x3d")
    peer.expect_failure(PROTOCOL_ERROR)


# -- pings and pongs (§5.5.2, §5.5.3)

@pytest.mark.parametrize("payload", [b"", b"Hello, world!", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", b"\xfe" * 125])
def test_a_ping_is_answered_with_its_payload(peer, payload):
    peer.write(PING, payload)
    peer.expect_pong(payload)
    peer.close_cleanly()


def test_a_ping_that_arrives_byte_by_byte_is_answered(peer):
    peer.send_slowly(peer.frame(PING, b"\xfe" * 125))
    peer.expect_pong(b"\xfe" * 125)
    peer.close_cleanly()


@pytest.mark.parametrize("length", [126, 65536])
@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_control_frame_above_125_bytes_fails_the_connection(peer, opcode, length):
    peer.send(peer.frame(opcode, b"\x03\xe8" + b"*" * (length - 2)))
    peer.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("payload", [b"", b"unsolicited"])
def test_an_unsolicited_pong_is_ignored(peer, payload):
    peer.write(PONG, payload)
    peer.write(PING, b"after")
    peer.expect_pong(b"after")
    peer.close_cleanly()


@pytest.mark.parametrize("slowly", [False, True])
def test_ten_pings_are_answered_in_order(peer, slowly):
    pings = b"".join(peer.frame(PING, f"payload-{number}") for number in range(10))
    peer.send_slowly(pings) if slowly else peer.send(pings)
    for number in range(10):
        peer.expect_pong(f"payload-{number}".encode())
    peer.close_cleanly()


# -- reserved bits (§5.2)

@pytest.mark.parametrize("rsv", [sum(bits) for count in (1, 2, 3) for bits in itertools.combinations((RSV1, RSV2, RSV3), count)])
@pytest.mark.parametrize("opcode", [TEXT, BINARY, PING, PONG, CLOSE])
def test_a_reserved_bit_without_extension_fails_the_connection(peer, opcode, rsv):
    peer.write(opcode, b"\x03\xe8" if opcode == CLOSE else b"Hello", rsv=rsv)
    peer.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("slowly", [False, True])
def test_frames_before_a_reserved_bit_are_answered_and_later_ones_are_not(peer, slowly):
    data = peer.frame(TEXT, "before") + peer.frame(TEXT, "wrong", rsv=RSV2)
    peer.send_slowly(data) if slowly else peer.send(data + peer.frame(PING, b"after"))
    peer.expect_text("before")
    peer.expect_failure(PROTOCOL_ERROR)


# -- opcodes (§5.2)

@pytest.mark.parametrize("payload", [b"", b"reserved opcode"])
@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF])
def test_a_reserved_opcode_fails_the_connection(peer, opcode, payload):
    peer.send(peer.frame(TEXT, "before") + peer.frame(opcode, payload) + peer.frame(PING))
    peer.expect_text("before")
    peer.expect_failure(PROTOCOL_ERROR)


# -- fragmentation (§5.4)

@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_fragmented_control_frame_fails_the_connection(peer, opcode):
    peer.write(opcode, b"", fin=False)
    peer.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("delivery", ["frame by frame", "at once", "byte by byte"])
def test_fragments_are_assembled_into_one_message(peer, opcode, delivery):
    frames = [peer.frame(opcode, "fragment1", fin=False), peer.frame(CONTINUATION, "fragment2", fin=False), peer.frame(CONTINUATION, "fragment3")]
    if delivery == "at once":
        peer.send(b"".join(frames))
    else:
        for each in frames:
            peer.send_slowly(each, 1 if delivery == "byte by byte" else len(each))
    peer.expect_message(opcode, "fragment1fragment2fragment3")
    peer.close_cleanly()


def test_empty_fragments_are_assembled_into_an_empty_message(peer):
    peer.send(peer.frame(TEXT, b"", fin=False) + peer.frame(CONTINUATION, b"", fin=False) + peer.frame(CONTINUATION))
    peer.expect_text("")
    peer.close_cleanly()


@pytest.mark.parametrize("delivery", ["frame by frame", "at once", "byte by byte"])
def test_a_ping_between_fragments_is_answered_before_the_message(peer, delivery):
    frames = [peer.frame(TEXT, "fragment1", fin=False), peer.frame(PING, "ping"), peer.frame(CONTINUATION, "fragment2")]
    if delivery == "at once":
        peer.send(b"".join(frames))
    else:
        for each in frames:
            peer.send_slowly(each, 1 if delivery == "byte by byte" else len(each))
    # Fragments may be forwarded before the message ends, so the pong comes before the message's end, not its beginning.
    seen, payload = [], b""
    while True:
        got = peer.read()
        if got.opcode == PONG:
            assert got.payload == b"ping"
            seen.append("pong")
            continue
        payload += got.payload
        if got.fin:
            seen.append("message")
            break
    assert (seen, payload) == (["pong", "message"], b"fragment1fragment2")
    peer.close_cleanly()


@pytest.mark.parametrize("fin", [True, False])
@pytest.mark.parametrize("after_a_message", [False, True])
def test_a_continuation_without_a_message_fails_the_connection(peer, fin, after_a_message):
    if after_a_message:
        peer.send(peer.frame(TEXT, "whole"))
        peer.expect_text("whole")
    peer.send(peer.frame(CONTINUATION, "of nothing", fin=fin) + peer.frame(TEXT, "after"))
    peer.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_new_data_frame_within_a_message_fails_the_connection(peer, opcode):
    peer.send(peer.frame(TEXT, "fragment1", fin=False) + peer.frame(opcode, "fragment2"))
    # Fragments may be forwarded before the violation arrives.
    got = peer.read()
    while got.opcode in (TEXT, CONTINUATION) and not got.fin:
        got = peer.read()
    assert (got.opcode, got.code) == (CLOSE, PROTOCOL_ERROR), got


def test_pings_between_many_fragments_are_answered(peer):
    count = sized(64, 1000)
    data = b"".join(
        peer.frame(TEXT if number == 0 else CONTINUATION, "x" * 10, fin=number == count - 1) + peer.frame(PING, str(number))
        for number in range(count))
    peer.send(data)
    pongs, payload, done = [], b"", False
    while len(pongs) < count or not done:
        got = peer.read()
        if got.opcode == PONG:
            pongs.append(int(got.payload))
        else:
            payload += got.payload
            done = got.fin
    assert pongs == list(range(count)) and payload == b"x" * 10 * count
    peer.close_cleanly()


@pytest.mark.parametrize("size", [1, 7, 125, 126, 1000, 65536])
def test_a_large_message_in_fragments_of_one_size_is_echoed(peer, size):
    payload = bytes(number % 251 for number in range(min(size * 200, 1 << 20)))
    parts = [payload[at:at + size] for at in range(0, len(payload), size)]
    peer.send(b"".join(
        peer.frame(BINARY if at == 0 else CONTINUATION, part, fin=at == len(parts) - 1) for at, part in enumerate(parts)))
    peer.expect_binary(payload)
    peer.close_cleanly()


# -- many messages and large ones

@pytest.mark.parametrize("size", [0, 16, 64, 256, 1024, 4096, 16384, 65536])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_messages_are_echoed_in_order(peer, opcode, size):
    rounds = sized(50, 1000)
    for number in range(rounds):
        payload = f"{number:08}".encode().ljust(size, b".")[:size]
        peer.write(opcode, payload)
        peer.expect_message(opcode, payload)
    peer.close_cleanly()


@pytest.mark.parametrize("mebibytes", [1, 4, 16])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_of_mebibytes_is_echoed(peer, opcode, mebibytes):
    payload = (b"*" if opcode == TEXT else b"\xfe") * (mebibytes << 20)
    peer.write(opcode, payload)
    peer.expect_message(opcode, payload)
    peer.close_cleanly()


def test_a_message_above_the_limit_is_refused_with_1009(peer):
    peer.send(peer.frame(BINARY, b"", length=(16 << 20) + 1, length_bytes=8))
    peer.expect_failure(1009)


def test_fragments_above_the_limit_are_refused_with_1009(peer):
    half = bytes(8 << 20)
    peer.send(peer.frame(BINARY, half, fin=False))
    peer.send(peer.frame(CONTINUATION, half, fin=False))
    peer.send(peer.frame(CONTINUATION, b"1"))
    got = peer.read()
    while got.opcode in (BINARY, CONTINUATION):
        assert not got.fin, "the message came back although it is above the limit"
        got = peer.read()
    assert (got.opcode, got.code) == (CLOSE, 1009), got


# -- Close frames among others (§5.5.1)

def test_frames_after_a_close_are_ignored(peer):
    peer.send(peer.frame(CLOSE, close_payload(1000)) + peer.frame(TEXT, "after") + peer.frame(PING) + b"\xff" * 100)
    peer.expect_close(1000)
    if not peer.masks:
        peer.finish_sending()
    peer.expect_any_end()


def test_a_close_between_fragments_is_answered(peer):
    peer.send(peer.frame(TEXT, "fragment", fin=False) + peer.frame(CLOSE, close_payload(1000)))
    got = peer.read()
    while got.opcode == TEXT and not got.fin:
        got = peer.read()
    assert (got.opcode, got.code) == (CLOSE, 1000), got
    peer.expect_end_after_close()
