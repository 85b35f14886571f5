"""The chat endpoint sends every message to the other members of the room, WebSockets and raw streams alike."""
import contextlib
import re
import threading
import time

import pytest
from support import configuration
from support.brokers import only
from support.deadlines import eventually, seconds, sized
from support.websocket import BINARY, PING, PONG, TEXT, Reset, Wire, connect, frame

MEBIBYTE = 1 << 20

CONFIGURATION = """
loops: 2
listeners:
  - name: web
    listen: ws://127.0.0.1:0
  - name: raw
    listen: tcp://127.0.0.1:0
    route: lobby
routes:
  - name: rooms
    path: /chat/{room}
    target: chat
  - name: lobby
    target: chat
    framing: lines
  - name: echo
    path: /echo
    target: echo
"""


@pytest.fixture
def gateway(sluice, tmp_path, broker):
    file = tmp_path / "chat.yaml"
    file.write_text(configuration.extended(CONFIGURATION, broker()))
    return sluice("serve", "--config", file)


def enter(gateway, path):
    """A member, which is in its room when the gateway reads from it."""
    member = connect(gateway.address(0), path)
    member.write(PING, b"")
    # Messages of the room may come before.
    while member.read().opcode != PONG:
        pass
    return member


def test_a_message_reaches_the_other_members_of_its_room_only(gateway):
    ann, bob, eve = [enter(gateway, path) for path in ("/chat/a", "/chat/a", "/chat/b")]
    ann.text("hello")
    bob.expect_text("hello")
    bob.binary(b"\x00\x01")
    ann.expect_binary(b"\x00\x01")
    eve.text("alone")
    ann.text("again")
    bob.expect_text("again")
    eve.close_cleanly()


def test_a_raw_stream_exchanges_lines_with_the_room(gateway):
    web = enter(gateway, "/chat/lobby")
    raw = Wire.connect(gateway.address(1))
    raw.send(b"from the ra")
    raw.send(b"w side\r\nand one more\n")
    web.expect_text("from the raw side")
    web.expect_text("and one more")
    web.text("from the web")
    assert raw.receive(13) == b"from the web\n"
    raw.finish_sending()
    raw.expect_end()


# -- floods

@contextlib.contextmanager
def flooding(wire, piece):
    """Sends `piece` repeatedly, as fast as the gateway reads; yields a function that returns the number of bytes sent."""
    sent, stopped = [0], threading.Event()
    # So that the thread stops although the gateway reads nothing more.
    wire.socket.settimeout(0.2)

    def flood():
        view = memoryview(piece)
        while not stopped.is_set():
            try:
                count = wire.socket.send(view)
            except TimeoutError:
                continue
            except OSError:
                return
            sent[0] += count
            view = view[count:] or memoryview(piece)

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    try:
        yield lambda: sent[0]
    finally:
        stopped.set()
        thread.join(seconds(10))


@contextlib.contextmanager
def reading(wires):
    """Reads and discards everything that arrives on the wires."""
    stopped = threading.Event()

    def read(wire):
        wire.socket.settimeout(0.2)
        space = bytearray(MEBIBYTE)
        while not stopped.is_set():
            try:
                if not wire.socket.recv_into(space):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    threads = [threading.Thread(target=read, args=(wire,), daemon=True) for wire in wires]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(seconds(10))


def most_memory(gateway, length):
    most, end = 0, time.monotonic() + length
    while time.monotonic() < end and most < 1024 * MEBIBYTE:
        most = max(most, gateway.memory())
        time.sleep(0.01)
    return most


def join(gateway, loop):
    """A member whose connection is on loop 0 or 1 of two; the connection's number in the log says which."""
    while True:
        start = len(gateway.log.all())
        wire = connect(gateway.address(), "/chat/a")
        line = gateway.wait_log("connection opened", start=start)
        if int(re.search(r"\bid=(\d+)", line)[1]) % 2 == loop:
            return wire
        start = len(gateway.log.all())
        wire.close()
        gateway.wait_log("connection closed", start=start)


@only("alone", "Only there does a loop hand messages to another one.")
@pytest.mark.parametrize("size", [1, 256, 64 << 10], ids=["1B", "256B", "64KiB"])
def test_a_flood_from_one_loop_to_another_keeps_memory_bounded(gateway, size):
    speaker, *members = [join(gateway, loop) for loop in [0] + [1] * 8]
    stalled = join(gateway, 1)
    before = gateway.memory()
    message = frame(BINARY, bytes(size))
    with reading(members), flooding(speaker, message * max(1, MEBIBYTE // len(message))) as sent:
        most = most_memory(gateway, sized(5, 30))
        assert sent() > MEBIBYTE
    # 4 MiB for a member that does not read, a channel of 1 MiB between loops, and the buffers of ten connections.
    assert most - before < 48 * MEBIBYTE
    for wire in [speaker, *members, stalled]:
        wire.close()


@only("alone", "A message over Redis takes a debug binary a hundred times its share of a turn.")
def test_a_flood_of_a_room_does_not_delay_other_connections(gateway):
    members = [connect(gateway.address(), "/chat/a") for _ in range(24)]
    neighbours = [connect(gateway.address(), "/echo") for _ in range(4)]

    def longest_wait(count):
        """Longest time of an echo and of a new connection."""
        longest = 0
        for number in range(count):
            began = time.monotonic()
            neighbours[number % 4].text("hello")
            neighbours[number % 4].expect_text("hello")
            answered = time.monotonic()
            connect(gateway.address(), "/echo").close()
            longest = max(longest, answered - began, time.monotonic() - answered)
        return longest

    with reading(members[1:]):
        with flooding(members[0], frame(TEXT, "x") * 30_000) as sent:
            eventually(lambda: sent() > 4 * MEBIBYTE, "a flood")
            during = longest_wait(20)
        members[0].close()
        after = longest_wait(20)
    assert during < seconds(1) and after < seconds(1), (during, after)


@pytest.mark.alone
def test_a_room_delivers_messages_after_a_flood(gateway):
    members = [connect(gateway.address(), "/chat/a") for _ in range(6)]
    with reading(members[2:]), flooding(members[0], frame(BINARY, bytes(32 << 10)) * 32) as sent:
        eventually(lambda: sent() > 64 * MEBIBYTE or gateway.memory() > 1024 * MEBIBYTE, "a flood", within=60)
    members[0].socket.settimeout(seconds(60))
    with reading(members[2:]), contextlib.suppress(Reset):
        members[0].finish_sending()
        # The gateway ends the connection when it has read the whole flood; until then it could disconnect a slow new member.
        members[0].receive_all()
    one, two = (enter(gateway, "/chat/a") for _ in range(2))
    with reading(members[1:]):
        one.text("still here")
        # Messages of the flood may still arrive first.
        eventually(lambda: two.read().payload == b"still here", "a message in the room", within=30)
    assert gateway.stop() == 0
