"""RFC 6455 §5 against the echo endpoint: lengths, control frames, reserved bits and opcodes, fragmentation."""

import itertools

import pytest

from support.deadlines import sized
from support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, RSV1, RSV2, RSV3, TEXT, close_payload, frame

PROTOCOL_ERROR = 1002


# -- lengths (§5.2)

@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 128, 65535, 65536])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_of_any_length_comes_back(client, opcode, length):
    payload = (b"*" if opcode == TEXT else b"\xfe") * length
    client.write(opcode, payload)
    client.expect_message(opcode, payload)
    client.close_cleanly()


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_in_many_segments_comes_back(client, opcode):
    payload = b"*" * 65536
    client.send_slowly(frame(opcode, payload), size=997)
    client.expect_message(opcode, payload)
    client.close_cleanly()


@pytest.mark.parametrize("length, form", [(0, 2), (125, 2), (0, 8), (126, 8), (65535, 8)])
def test_a_length_that_is_not_in_its_shortest_form_fails_the_connection(client, length, form):
    client.write(BINARY, bytes(length), length_bytes=form)
    client.expect_failure(PROTOCOL_ERROR)


def test_a_length_with_its_highest_bit_set_fails_the_connection(client):
    client.send(bytes([0x82, 0xFF]) + b"\xff" * 8 + b"\0" * 4)
    client.expect_failure(PROTOCOL_ERROR, 1009)


def test_a_masking_key_of_zero_is_a_key(client):
    client.write(TEXT, "Hello", key=bytes(4))
    client.expect_text("Hello")
    client.close_cleanly()


# -- masking (§5.1)

@pytest.mark.parametrize("opcode", [TEXT, BINARY, PING, CLOSE])
def test_a_frame_without_mask_fails_the_connection(client, opcode):
    client.write(opcode, b"\x03\xe8" if opcode == CLOSE else b"Hello", key=None)
    client.expect_failure(PROTOCOL_ERROR)


# -- pings and pongs (§5.5.2, §5.5.3)

@pytest.mark.parametrize("payload", [b"", b"Hello, world!", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", b"\xfe" * 125])
def test_a_ping_is_answered_with_its_payload(client, payload):
    client.write(PING, payload)
    client.expect_pong(payload)
    client.close_cleanly()


def test_a_ping_that_arrives_byte_by_byte_is_answered(client):
    client.send_slowly(frame(PING, b"\xfe" * 125))
    client.expect_pong(b"\xfe" * 125)
    client.close_cleanly()


@pytest.mark.parametrize("length", [126, 65536])
@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_control_frame_above_125_bytes_fails_the_connection(client, opcode, length):
    client.send(frame(opcode, b"\x03\xe8" + b"*" * (length - 2)))
    client.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("payload", [b"", b"unsolicited"])
def test_an_unsolicited_pong_is_ignored(client, payload):
    client.write(PONG, payload)
    client.write(PING, b"after")
    client.expect_pong(b"after")
    client.close_cleanly()


@pytest.mark.parametrize("slowly", [False, True])
def test_ten_pings_are_answered_in_order(client, slowly):
    pings = b"".join(frame(PING, f"payload-{number}") for number in range(10))
    client.send_slowly(pings) if slowly else client.send(pings)
    for number in range(10):
        client.expect_pong(f"payload-{number}".encode())
    client.close_cleanly()


# -- reserved bits (§5.2)

@pytest.mark.parametrize("rsv", [sum(bits) for count in (1, 2, 3) for bits in itertools.combinations((RSV1, RSV2, RSV3), count)])
@pytest.mark.parametrize("opcode", [TEXT, BINARY, PING, PONG, CLOSE])
def test_a_reserved_bit_without_extension_fails_the_connection(client, opcode, rsv):
    client.write(opcode, b"\x03\xe8" if opcode == CLOSE else b"Hello", rsv=rsv)
    client.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("slowly", [False, True])
def test_what_came_before_a_reserved_bit_is_answered_and_what_comes_after_is_not(client, slowly):
    data = frame(TEXT, "before") + frame(TEXT, "wrong", rsv=RSV2)
    client.send_slowly(data) if slowly else client.send(data + frame(PING, b"after"))
    client.expect_text("before")
    client.expect_failure(PROTOCOL_ERROR)


# -- opcodes (§5.2)

@pytest.mark.parametrize("payload", [b"", b"reserved opcode"])
@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF])
def test_a_reserved_opcode_fails_the_connection(client, opcode, payload):
    client.send(frame(TEXT, "before") + frame(opcode, payload) + frame(PING))
    client.expect_text("before")
    client.expect_failure(PROTOCOL_ERROR)


# -- fragmentation (§5.4)

@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_fragmented_control_frame_fails_the_connection(client, opcode):
    client.write(opcode, b"", fin=False)
    client.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("delivery", ["frame by frame", "at once", "byte by byte"])
def test_fragments_make_one_message(client, opcode, delivery):
    frames = [frame(opcode, "fragment1", fin=False), frame(CONTINUATION, "fragment2", fin=False), frame(CONTINUATION, "fragment3")]
    if delivery == "at once":
        client.send(b"".join(frames))
    else:
        for each in frames:
            client.send_slowly(each, 1 if delivery == "byte by byte" else len(each))
    client.expect_message(opcode, "fragment1fragment2fragment3")
    client.close_cleanly()


def test_empty_fragments_make_an_empty_message(client):
    client.send(frame(TEXT, b"", fin=False) + frame(CONTINUATION, b"", fin=False) + frame(CONTINUATION))
    client.expect_text("")
    client.close_cleanly()


@pytest.mark.parametrize("delivery", ["frame by frame", "at once", "byte by byte"])
def test_a_ping_between_fragments_is_answered_before_the_message(client, delivery):
    frames = [frame(TEXT, "fragment1", fin=False), frame(PING, "ping"), frame(CONTINUATION, "fragment2")]
    if delivery == "at once":
        client.send(b"".join(frames))
    else:
        for each in frames:
            client.send_slowly(each, 1 if delivery == "byte by byte" else len(each))
    # Fragments may be passed on before the message ends, so the pong stands before its end, not before its beginning.
    seen, payload = [], b""
    while True:
        got = client.read()
        if got.opcode == PONG:
            assert got.payload == b"ping"
            seen.append("pong")
            continue
        payload += got.payload
        if got.fin:
            seen.append("message")
            break
    assert (seen, payload) == (["pong", "message"], b"fragment1fragment2")
    client.close_cleanly()


@pytest.mark.parametrize("fin", [True, False])
@pytest.mark.parametrize("after_a_message", [False, True])
def test_a_continuation_of_nothing_fails_the_connection(client, fin, after_a_message):
    if after_a_message:
        client.send(frame(TEXT, "whole"))
        client.expect_text("whole")
    client.send(frame(CONTINUATION, "of nothing", fin=fin) + frame(TEXT, "after"))
    client.expect_failure(PROTOCOL_ERROR)


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_new_message_within_a_message_fails_the_connection(client, opcode):
    client.send(frame(TEXT, "fragment1", fin=False) + frame(opcode, "fragment2"))
    # Fragments already passed on are no fault of the endpoint.
    got = client.read()
    while got.opcode in (TEXT, CONTINUATION) and not got.fin:
        got = client.read()
    assert (got.opcode, got.code) == (CLOSE, PROTOCOL_ERROR), got


def test_many_fragments_with_pings_between_them(client):
    count = sized(64, 1000)
    data = b"".join(
        frame(TEXT if number == 0 else CONTINUATION, "x" * 10, fin=number == count - 1) + frame(PING, str(number))
        for number in range(count))
    client.send(data)
    pongs, payload, done = [], b"", False
    while len(pongs) < count or not done:
        got = client.read()
        if got.opcode == PONG:
            pongs.append(int(got.payload))
        else:
            payload += got.payload
            done = got.fin
    assert pongs == list(range(count)) and payload == b"x" * 10 * count
    client.close_cleanly()


@pytest.mark.parametrize("size", [1, 7, 125, 126, 1000, 65536])
def test_a_large_message_in_fragments_of_one_size(client, size):
    payload = bytes(number % 251 for number in range(min(size * 200, 1 << 20)))
    parts = [payload[at:at + size] for at in range(0, len(payload), size)]
    client.send(b"".join(
        frame(BINARY if at == 0 else CONTINUATION, part, fin=at == len(parts) - 1) for at, part in enumerate(parts)))
    client.expect_binary(payload)
    client.close_cleanly()


# -- many messages and large ones

@pytest.mark.parametrize("size", [0, 16, 64, 256, 1024, 4096, 16384, 65536])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_messages_come_back_in_order(client, opcode, size):
    rounds = sized(50, 1000)
    for number in range(rounds):
        payload = f"{number:08}".encode().ljust(size, b".")[:size]
        client.write(opcode, payload)
        client.expect_message(opcode, payload)
    client.close_cleanly()


@pytest.mark.parametrize("mebibytes", [1, 4, 16])
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_of_mebibytes_comes_back(client, opcode, mebibytes):
    payload = (b"*" if opcode == TEXT else b"\xfe") * (mebibytes << 20)
    client.write(opcode, payload)
    client.expect_message(opcode, payload)
    client.close_cleanly()


def test_a_message_above_the_limit_is_refused_with_1009(client):
    client.send(frame(BINARY, b"", length=(16 << 20) + 1, length_bytes=8))
    client.expect_failure(1009)


def test_fragments_above_the_limit_are_refused_with_1009(client):
    half = bytes(8 << 20)
    client.send(frame(BINARY, half, fin=False))
    client.send(frame(CONTINUATION, half, fin=False))
    client.send(frame(CONTINUATION, b"1"))
    got = client.read()
    while got.opcode in (BINARY, CONTINUATION):
        assert not got.fin, "the message came back although it is above the limit"
        got = client.read()
    assert (got.opcode, got.code) == (CLOSE, 1009), got


# -- a Close among them (§5.5.1)

def test_what_follows_a_close_is_ignored(client):
    client.send(frame(CLOSE, close_payload(1000)) + frame(TEXT, "after") + frame(PING) + b"\xff" * 100)
    client.expect_close(1000)
    client.expect_any_end()


def test_a_close_within_a_message_is_answered(client):
    client.send(frame(TEXT, "fragment", fin=False) + frame(CLOSE, close_payload(1000)))
    got = client.read()
    while got.opcode == TEXT and not got.fin:
        got = client.read()
    assert (got.opcode, got.code) == (CLOSE, 1000), got
    client.expect_end()
