"""Every kind of listener to every kind of target: bytes arrive unchanged, and each kind of end is kept."""

import hashlib
import threading

import pytest

from support.deadlines import sized
from support.ends import Bridged, random_bytes

KINDS = ["tcp", "tls", "unix", "ws", "wss"]


@pytest.fixture
def between(bridge, authority, server_certificate, tmp_path):
    made = []

    def make(listen, target, *options, **more):
        one = Bridged(bridge, authority, server_certificate, tmp_path, listen, target, *options, **more)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("listen", KINDS)
def test_bytes_arrive_both_ways_and_a_clients_end_reaches_the_target(between, listen, target):
    near, far = between(listen, target).join()
    up, down = random_bytes(300_000), random_bytes(300_000)
    sender = threading.Thread(target=near.send, args=(up,), daemon=True)
    sender.start()
    assert far.receive(len(up)) == up
    sender.join()
    sender = threading.Thread(target=far.send, args=(down,), daemon=True)
    sender.start()
    assert near.receive(len(down)) == down
    sender.join()
    if listen == "tls":
        return  # Python's TLS cannot half-close; test_tls.py tests the ends of TLS.
    near.finish()
    far.expect_finish()


@pytest.mark.parametrize("target", ["tcp", "unix", "ws"])
@pytest.mark.parametrize("listen", ["tcp", "unix", "ws"])
def test_a_targets_end_reaches_the_client(between, listen, target):
    near, far = between(listen, target).join()
    far.send(b"the last of it")
    far.finish()
    assert near.receive(14) == b"the last of it"
    near.expect_finish()


@pytest.mark.parametrize("target", ["tcp", "ws"])
@pytest.mark.parametrize("listen", ["tcp", "ws"])
def test_a_reset_is_relayed_as_a_reset(between, listen, target):
    one = between(listen, target)
    for ends in ((0, 1), (1, 0)):
        pair = one.join()
        # Only relayed bytes prove that the tunnel is open in the gateway too.
        pair[0].send(b"open")
        assert pair[1].receive(4) == b"open"
        pair[ends[0]].fail()
        pair[ends[1]].expect_failure()


@pytest.mark.parametrize("listen, target", [("tcp", "tcp"), ("tcp", "ws"), ("ws", "tcp"), ("ws", "ws")])
def test_single_bytes_arrive(between, listen, target):
    near, far = between(listen, target).join()
    data = random_bytes(sized(2000, 20000))

    def trickle():
        for byte in data:
            near.send(bytes([byte]))

    sender = threading.Thread(target=trickle, daemon=True)
    sender.start()
    assert far.receive(len(data)) == data
    sender.join()


@pytest.mark.parametrize("listen, target", [("tcp", "tcp"), ("tcp", "ws"), ("ws", "tcp"), ("ws", "ws")])
def test_bytes_sent_before_the_end_of_input_arrive_completely(between, listen, target):
    near, far = between(listen, target, within=30).join()
    data = random_bytes(8 << 20)

    def pour():
        near.send(data)
        near.finish()

    sender = threading.Thread(target=pour, daemon=True)
    sender.start()
    assert hashlib.sha256(far.receive(len(data))).digest() == hashlib.sha256(data).digest()
    far.expect_finish()
    sender.join()


# -- half-close

@pytest.mark.parametrize("target", ["tcp", "unix"])
def test_an_answer_arrives_after_a_raw_client_half_closed(between, target):
    near, far = between("tcp", target).join()
    near.send(b"question")
    near.finish()
    assert far.receive(8) == b"question"
    far.expect_finish()
    far.send(b"answer")
    assert near.receive(6) == b"answer"
    far.finish()
    near.expect_finish()


def test_close_begins_the_closing_handshake_when_the_raw_client_finishes(between):
    near, far = between("tcp", "ws", "--half-close", "close").join()
    near.send(b"all of it")
    near.finish()
    assert far.receive(9) == b"all of it"
    far.wire.expect_close(1000)
    # Until the answer, a WebSocket peer may still send (RFC 6455 §5.5.1).
    far.send(b"still")
    assert near.receive(5) == b"still"
    far.finish()
    near.expect_finish()


def test_hold_sends_no_close_when_the_raw_client_finishes(between):
    near, far = between("tcp", "ws", "--half-close", "hold").join()
    near.send(b"question")
    near.finish()
    assert far.receive(8) == b"question"
    far.wire.write(0x9, b"are you there")
    far.wire.expect_pong(b"are you there")  # and no Close before it
    far.send(b"answer")
    assert near.receive(6) == b"answer"
    far.finish()
    near.expect_finish()
    far.wire.expect_close(1000)


def test_signal_sends_an_empty_binary_message_at_the_end_of_a_direction(between):
    near, far = between("tcp", "ws", "--half-close", "signal").join()
    near.send(b"question")
    near.finish()
    assert far.receive(8) == b"question"
    assert far.wire.read_message() == (2, b"")
    far.send(b"answer")
    far.wire.binary(b"")
    assert near.receive(6) == b"answer"
    near.expect_finish()
    far.wire.expect_close(1000)


def test_signal_from_the_websocket_side_ends_only_that_direction(between):
    near, far = between("tcp", "ws", "--half-close", "signal").join()
    far.send(b"all")
    far.wire.binary(b"")
    assert near.receive(3) == b"all"
    near.expect_finish()
    near.send(b"more")
    assert far.receive(4) == b"more"
    near.finish()


# -- WebSocket to WebSocket

def test_type_boundaries_and_order_of_messages_are_kept(between):
    near, far = between("ws", "ws").join()
    for number in range(20):
        opcode, payload = (1, f"text {number} é") if number % 2 else (2, bytes([number]) * number * 1000)
        near.wire.write(opcode, payload)
        far.wire.expect_message(opcode, payload)
        far.wire.write(opcode, payload)
        near.wire.expect_message(opcode, payload)


@pytest.mark.parametrize("code, reason", [(1000, ""), (1001, "leaving"), (3000, "of our own"), (4999, "é" * 60), (1011, "broken")])
def test_close_code_and_reason_are_relayed(between, code, reason):
    near, far = between("ws", "ws").join()
    near.wire.write(8, code.to_bytes(2, "big") + reason.encode())
    got = far.wire.expect_close(code)
    assert got.payload[2:].decode() == reason
    far.wire.write(8, got.payload)
    near.wire.expect_close(code)


def test_a_close_without_code_is_relayed(between):
    near, far = between("ws", "ws").join()
    near.wire.write(8, b"")
    far.wire.expect_close(None)
    far.wire.write(8, b"")
    near.wire.expect_close(None)


def test_the_subprotocol_is_chosen_by_the_target(bridge, listener):
    import threading
    from support import websocket
    gateway = bridge("ws://127.0.0.1:0/", listener.url("ws", "/"))
    seen = []

    def take():
        peer = listener.accept_websocket(subprotocol="second")
        seen.append(peer)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    with websocket.connect(gateway.address(), "/", subprotocols=["first", "second"]) as client:
        thread.join(10)
        assert client.subprotocol == "second"
        offered = [word.strip() for word in seen[0].request.header("Sec-WebSocket-Protocol").split(",")]
        assert offered == ["first", "second"]
        seen[0].close()


def test_the_client_role_masks_frames_and_sends_the_required_fields(between):
    # `Listener.accept_websocket` checks the fields of the request, and the far end the mask of every frame it reads.
    near, far = between("tcp", "ws").join()
    keys = set()
    for number in range(50):
        near.send(b"x")
        first, second = far.wire.receive(2)
        assert second & 0x80
        length = second & 0x7F
        keys.add(far.wire.receive(4))
        far.wire.receive(length)
    assert len(keys) > 1, "every frame has the same masking key"
