"""Between two WebSockets, frames of any size are relayed unchanged: the gateway never writes its own bytes inside a frame."""

import hashlib
import threading

import pytest

from support.deadlines import sized
from support.ends import Bridged, random_bytes
from support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Ended, close_payload, frame

WAYS = ["up", "down"]


@pytest.fixture
def joined(bridge, authority, server_certificate, tmp_path):
    """(sender, receiver): the WebSockets at both ends of a tunnel, for one direction of frames."""
    made = []

    def join(way, *options, listen="ws", target="ws", **more):
        one = Bridged(bridge, authority, server_certificate, tmp_path, listen, target, *options, within=30.0)
        made.append(one)
        near, far = one.join(**more)
        return (near.wire, far.wire) if way == "up" else (far.wire, near.wire)

    yield join
    for one in made:
        one.close()


def encoded(sender, opcode, payload=b"", fin=True):
    return frame(opcode, payload, fin=fin, **({} if sender.masks else {"key": None}))


def in_background(work, *arguments):
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def send_until_pings(sender, data, pings):
    """Sends `data` in `pings` parts, each followed by a ping of the gateway; a ping cannot be answered inside a frame."""
    step = -(-len(data) // pings)
    for at in range(0, len(data), step):
        sender.send(data[at:at + step])
        got = sender.read()
        assert got.opcode == PING, f"a ping was expected, not {got}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("listen, target", [("ws", "ws"), ("wss", "wss")])
def test_fragments_sent_in_single_bytes_are_relayed_unchanged(joined, way, listen, target):
    sender, receiver = joined(way, listen=listen, target=target)
    frames = []
    for number, length in enumerate([0, 1, 2, 125, 126, 127, 300, sized(2000, 70_000)]):
        frames += [(BINARY, random_bytes(length), False), (CONTINUATION, b"", False), (CONTINUATION, random_bytes(number), True)]
        text = ("é€𝄞" * (length + 1))[:length + 1].encode()
        frames += [(TEXT, text[:1], False), (CONTINUATION, text[1:], True)]
    data = b"".join(encoded(sender, *one) for one in frames)
    thread = in_background(sender.send_slowly, data)
    for opcode, payload, fin in frames:
        got = receiver.read()
        assert (got.opcode, got.payload, got.fin, got.rsv) == (opcode, payload, fin, 0)
    thread.join()


@pytest.mark.parametrize("way", WAYS)
def test_a_large_frame_is_relayed_whole_before_our_pings(joined, way):
    payload = random_bytes(8 << 20)
    wanted = hashlib.sha256(payload).digest()
    sender, receiver = joined(way, "--ping-interval", "3s")
    thread = in_background(send_until_pings, sender, encoded(sender, BINARY, payload), 3)
    got = receiver.read()
    assert (got.opcode, got.fin, len(got.payload)) == (BINARY, True, 8 << 20)
    assert hashlib.sha256(got.payload).digest() == wanted
    assert receiver.read().opcode == PING
    thread.join()


@pytest.mark.parametrize("way", WAYS)
def test_a_ping_received_during_a_frame_is_answered_after_it(joined, way):
    sender, receiver = joined(way, "--ping-interval", "1h")
    data = encoded(sender, BINARY, random_bytes(200_000))
    sender.send(data[:100_000])
    receiver.receive(100_000)
    receiver.write(PING, b"first")
    receiver.write(PING, b"second")
    # A message in the other direction proves that the pings were read.
    receiver.write(TEXT, "read")
    sender.expect_text("read")
    sender.send(data[100_000:])
    receiver.receive(len(data) - 100_000)
    receiver.expect_pong(b"second")


@pytest.mark.parametrize("way", WAYS)
def test_a_close_against_a_half_relayed_frame_lets_the_frame_finish(joined, way):
    sender, receiver = joined(way)
    data = encoded(sender, BINARY, random_bytes(200_000))
    sender.send(data[:100_000])
    receiver.receive(100_000)
    receiver.write(CLOSE, close_payload(4000, "enough"))
    assert sender.expect_close(4000).payload[2:] == b"enough"
    sender.send(data[100_000:])
    sender.write(CLOSE, close_payload(4000, "enough"))
    receiver.receive(len(data) - 100_000)
    receiver.expect_close(4000)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("closes", [False, True])
def test_a_failure_inside_a_frame_resets_the_other_side(joined, way, closes):
    sender, receiver = joined(way)
    head = encoded(sender, BINARY, bytes(200_000))[:50_000]
    sender.send(head)
    receiver.receive(50_000)
    if closes:
        receiver.write(CLOSE, close_payload(1000))
        sender.expect_close(1000)
    sender.reset()
    receiver.expect_reset()


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_between_frames_closes_the_other_side_abnormally(joined, way):
    sender, receiver = joined(way)
    sender.write(BINARY, b"whole", fin=False)
    got = receiver.read()
    assert (got.opcode, got.payload, got.fin) == (BINARY, b"whole", False)
    sender.reset()
    receiver.expect_close(1011)


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_receiver_closes_the_sender_with_1011(joined, way):
    sender, receiver = joined(way)
    sender.send(encoded(sender, BINARY, bytes(200_000))[:50_000])
    receiver.receive(50_000)
    receiver.reset()
    sender.expect_close(1011)


@pytest.mark.parametrize("way", WAYS)
def test_a_message_above_the_limit_is_refused_at_its_frame_header(joined, way):
    sender, receiver = joined(way, "--max-message-size", "1KiB")
    sender.write(BINARY, bytes(1000), fin=False)
    assert len(receiver.read().payload) == 1000
    sender.send(encoded(sender, CONTINUATION, bytes(25))[:6])
    sender.expect_close(1009)
    receiver.expect_close(1011)


@pytest.mark.parametrize("way", WAYS)
def test_invalid_text_is_refused_before_the_frame_ends(joined, way):
    sender, receiver = joined(way)
    data = encoded(sender, TEXT, b"good" + b"\xff" + bytes(100))
    sender.send(data[:-101])
    receiver.receive(len(data) - 101)
    sender.send(data[-101:-90])
    sender.expect_close(1007)
    receiver.expect_reset()


def test_relayed_frames_are_masked_with_a_new_key(joined):
    near, far = joined("up")
    for _ in range(20):
        near.write(BINARY, b"GET / HTTP/1.1\r\n", key=bytes(4))
        raw = far.receive(2 + 4 + 16)
        assert raw[:2] == b"\x82\x90" and raw[2:6] != bytes(4) and raw[6:] != b"GET / HTTP/1.1\r\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("near_deflates", [False, True])
def test_messages_are_unchanged_with_compression_on_one_side(joined, way, near_deflates):
    offer = {"deflate": "permessage-deflate"} if near_deflates else {}
    sender, receiver = joined(way, "--compress", **offer)
    assert bool((sender if way == "up" else receiver).extensions) == near_deflates
    for payload in (b"", b"short", b"long " * 10_000, random_bytes(300_000)):
        thread = in_background(sender.write, BINARY, payload)
        receiver.expect_binary(payload)
        thread.join()


def test_large_frames_are_relayed_in_both_directions_at_once(joined):
    near, far = joined("up", "--ping-interval", "1s")
    payloads = [random_bytes(sized(8, 64) << 20) for _ in range(2)]

    def take(wire, wanted):
        while (got := wire.read()).opcode in (PING, PONG):
            pass
        assert hashlib.sha256(got.payload).digest() == hashlib.sha256(wanted).digest()
        taken.append(wire)

    taken = []
    work = [in_background(near.write, BINARY, payloads[0]), in_background(far.write, BINARY, payloads[1]),
            in_background(take, near, payloads[1]), in_background(take, far, payloads[0])]
    for thread in work:
        thread.join(60)
    assert set(taken) == {near, far}
    near.write(CLOSE, close_payload(1000))
    while (got := far.read()).opcode != CLOSE:
        assert got.opcode in (PING, PONG)
    far.write(CLOSE, close_payload(1000))
    with pytest.raises(Ended):
        while near.read().opcode in (PING, PONG, CLOSE):
            pass
