"""Stalled, vanished and misbehaving peers, and exhausted system resources: no byte is lost or invented, and every
descriptor is released."""

import asyncio
import hashlib
import os
import random
import select
import socket
import threading

import pytest

from support import websocket
from support.deadlines import eventually, seconds, sized
from support.ends import RawEnd, fill, reach, serve
from support.websocket import BINARY, CONTINUATION, TEXT, Listener, Wire, frame, request

MEBIBYTE = 1 << 20


# -- backpressure: a reader that stalls stops the sender, in bounded memory, and loses nothing

@pytest.mark.parametrize("listen, target", [("tcp", "tcp"), ("tcp", "ws"), ("ws", "tcp")])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_stalled_reader_stops_the_sender(bridge, listener, listen, target, direction):
    gateway = bridge(f"{listen}://127.0.0.1:0{'/' if listen == 'ws' else ''}", listener.url(target, "/" if target == "ws" else ""))
    near, far = join(gateway, listener, listen, target)
    sender, reader = (near, far) if direction == "up" else (far, near)
    before = gateway.memory()
    if isinstance(sender, RawEnd) and type(sender) is RawEnd:
        sent = fill(sender.wire, limit=64 * MEBIBYTE)
        assert gateway.memory() - before < 16 * MEBIBYTE
        receive_nothing_but(reader, 0, sent)
    else:
        # Whole frames, until the socket blocks: the last frame is completed once the reader reads.
        data, taken = pour_frames(sender.wire, 64 * MEBIBYTE)
        assert gateway.memory() - before < 16 * MEBIBYTE
        finisher = threading.Thread(target=sender.wire.send, args=(data[taken:],), daemon=True)
        finisher.start()
        receive_nothing_but(reader, 0, (len(data) // FRAME) * 65536)
        finisher.join(seconds(10))


def test_a_stream_of_empty_lines_stays_within_its_memory_bound(bridge, listener):
    """Each byte becomes a message of six bytes."""
    listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # accepted sockets inherit it
    gateway = bridge("tcp://127.0.0.1:0", listener.url("ws", "/"), "--framing", "lines")
    tunnels = [join(gateway, listener, "tcp", "ws") for _ in range(20)]
    before = gateway.memory()
    for near, _ in tunnels:
        fill(near.wire, limit=64 * MEBIBYTE, quiet=0.2, block=b"\n" * 65536)
    assert (gateway.memory() - before) / len(tunnels) < MEBIBYTE
    _, far = tunnels[0]
    assert [far.wire.read_message() for _ in range(1000)] == [(TEXT, b"")] * 1000


FRAME = 65536 + 14  # a masked frame with an eight-byte length; unmasked ones are four bytes shorter


def pour_frames(wire, limit):
    """Sends frames of zeros until the socket blocks: (the bytes of all frames begun, the number of bytes sent)."""
    one = frame(BINARY, bytes(65536), key=bytes(4) if wire.masks else None, length_bytes=8)
    global FRAME
    FRAME = len(one)
    out = 0
    wire.socket.setblocking(False)
    try:
        while True:
            _, writable, _ = select.select([], [wire.socket], [], seconds(1))
            if not writable:
                whole = -(-out // len(one))
                return one * whole, out
            at = out % len(one)
            out += wire.socket.send(one[at:])
            assert out <= limit, f"{out} bytes were sent although the peer does not read"
    finally:
        wire.socket.settimeout(seconds(wire.within))


def receive_nothing_but(end, value, count):
    expected = bytes([value]) * 65536
    while count:
        size = min(count, 65536)
        assert end.receive(size) == expected[:size]
        count -= size


def join(gateway, listener, listen, target):
    taken = []
    thread = threading.Thread(target=lambda: taken.append(serve(listener, target)), daemon=True)
    thread.start()
    near = reach(gateway, listen)
    thread.join(seconds(10))
    assert taken, "the gateway never reached the target"
    return near, taken[0]


def test_a_client_of_echo_that_never_reads_is_stopped(bridge):
    gateway = bridge("ws://127.0.0.1:0/echo", "echo")
    client = websocket.connect(gateway.address(), "/echo")
    before = gateway.memory()
    data, taken = pour_frames(client, 64 * MEBIBYTE)
    assert gateway.memory() - before < 16 * MEBIBYTE
    finisher = threading.Thread(target=client.send, args=(data[taken:],), daemon=True)
    finisher.start()
    for _ in range(len(data) // FRAME):
        client.expect_binary(bytes(65536))
    finisher.join(seconds(10))
    client.close()


def test_a_chat_member_that_never_reads_does_not_delay_the_others(sluice, tmp_path):
    from support import configuration
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("chat", "chat", path="/chat/{room}")])
    gateway = sluice("serve", "--config", file)
    stalled = websocket.connect(gateway.address(), "/chat/x", receive_buffer=4096)
    reader, speaker = (websocket.connect(gateway.address(), "/chat/x") for _ in range(2))
    # A member is in its room when the gateway reads from it.
    reader.write(websocket.PING)
    reader.expect_pong()
    before = gateway.memory()
    payload = "x" * 50_000
    for _ in range(sized(1000, 5000)):
        speaker.text(payload)
        reader.expect_text(payload)
    assert gateway.memory() - before < 32 * MEBIBYTE
    stalled.close()


# -- bulk with pauses

@pytest.mark.parametrize("pair", [("tcp", "ws", "tcp"), ("ws", "tcp")], ids=lambda kinds: "→".join(kinds))
def test_256_mebibytes_are_relayed_each_way_with_pauses(bridge, listener, pair):
    total = 256 * MEBIBYTE
    if len(pair) == 3:
        inner = bridge("ws://127.0.0.1:0/", listener.url("tcp"))
        gateway = bridge("tcp://127.0.0.1:0", inner.url())
        near, far = join(gateway, listener, "tcp", "tcp")
    else:
        gateway = bridge("ws://127.0.0.1:0/", listener.url("tcp"))
        near, far = join(gateway, listener, "ws", "tcp")
    block = os.urandom(MEBIBYTE)
    failures = []

    def pattern(at):
        # Every mebibyte differs from every other, so that a lost, repeated or reordered one is detected.
        return at.to_bytes(8, "big") + block[8:]

    def send(end, seed):
        chance = random.Random(seed)
        pause = threading.Event()
        try:
            for at in range(total // MEBIBYTE):
                end.send(pattern(at))
                if chance.random() < 0.05:
                    pause.wait(chance.random() * 0.05)
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            failures.append(error)

    def receive(end, seed):
        chance = random.Random(seed)
        pause = threading.Event()
        got, wanted = hashlib.sha256(), hashlib.sha256()
        try:
            for at in range(total // MEBIBYTE):
                got.update(end.receive(MEBIBYTE))
                wanted.update(pattern(at))
                assert got.digest() == wanted.digest(), f"the bytes differ in mebibyte {at}"
                if chance.random() < 0.05:
                    pause.wait(chance.random() * 0.05)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    near.wire.socket.settimeout(seconds(60))
    far.wire.socket.settimeout(seconds(60))
    work = [(send, near, 1), (receive, far, 2), (send, far, 3), (receive, near, 4)]
    threads = [threading.Thread(target=what, args=(end, seed), daemon=True) for what, end, seed in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds(150))
        assert not thread.is_alive(), f"the transfer stalled; {failures}"
    assert not failures, failures[0]
    assert gateway.memory() < 128 * MEBIBYTE


# -- resets and vanishing peers, at every phase

PHASES = {
    "at once": b"",
    "within the request": request("/echo")[:40],
    "after the request": request("/echo"),
    "within a frame's head": request("/echo") + frame(BINARY, bytes(300))[:3],
    "within a frame": request("/echo") + frame(BINARY, bytes(300))[:100],
    "within a message": request("/echo") + frame(TEXT, "part", fin=False),
    "after a close": request("/echo") + frame(websocket.CLOSE, b"\x03\xe8"),
}


@pytest.mark.parametrize("end", ["reset", "close", "finish_sending"])
@pytest.mark.parametrize("sent", PHASES.values(), ids=list(PHASES))
def test_a_client_that_disconnects_in_any_phase_releases_its_descriptors(bridge, sent, end):
    gateway = bridge("ws://127.0.0.1:0/echo", "echo", "--handshake-timeout", "2s")
    before = gateway.descriptors()
    wires = []
    for _ in range(20):
        wire = Wire.connect(gateway.address())
        wire.send(sent)
        getattr(wire, end)()
        wires.append(wire)
    gateway.settle(before)
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("end", ["reset", "close"])
@pytest.mark.parametrize("kind", ["tcp", "ws"])
def test_a_target_that_disconnects_during_a_transfer_ends_the_client(bridge, listener, kind, end):
    gateway = bridge("tcp://127.0.0.1:0", listener.url(kind, "/" if kind == "ws" else ""))
    before = gateway.descriptors()
    rounds = 8
    for _ in range(rounds):
        near, far = join(gateway, listener, "tcp", kind)

        def pour(sender=near):
            try:
                while True:
                    sender.send(bytes(65536))
            except (AssertionError, OSError):
                pass

        thread = threading.Thread(target=pour, daemon=True)
        thread.start()
        far.receive(MEBIBYTE)
        getattr(far.wire, end)()
        thread.join(seconds(20))
        assert not thread.is_alive(), "the client never noticed"
        near.close()
    # A loop keeps one pipe for splicing; a leaked tunnel would hold two more descriptors for each round.
    gateway.settle(before + min(2 * os.cpu_count(), 2 * rounds - 1))


def test_a_websocket_peer_that_sends_no_pong_is_disconnected(sluice, tmp_path):
    from support import configuration
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo", path="/echo", ping_interval="1s", pong_timeout="1s")])
    gateway = sluice("serve", "--config", file)
    with websocket.connect(gateway.address(), "/echo", within=20) as client:
        assert client.read().opcode == websocket.PING
        # The client sends no pong. The gateway may send a Close, but the connection must end.
        try:
            client.receive_all(limit=4096)
        except websocket.Reset:
            pass
    with websocket.connect(gateway.address(), "/echo", within=20) as client:
        for _ in range(2):
            got = client.read()
            assert got.opcode == websocket.PING
            client.write(websocket.PONG, got.payload)
        client.text("alive")
        client.expect_text("alive")


def test_an_idle_tunnel_ends_at_its_timeout(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--idle-timeout", "1s")
    near, far = join(gateway, listener, "tcp", "tcp")
    near.wire.expect_any_end()
    far.wire.expect_any_end()


def test_a_message_above_the_limit_ends_a_tunnel_on_both_sides(bridge, listener):
    gateway = bridge("ws://127.0.0.1:0/", listener.url("tcp"), "--max-message-size", "1000")
    near, far = join(gateway, listener, "ws", "tcp")
    near.send(bytes(1000))
    assert far.receive(1000) == bytes(1000)
    near.wire.binary(bytes(1001))
    near.wire.expect_close(1009)
    with pytest.raises(websocket.Reset):
        far.wire.receive_all(limit=1001)


# -- admission

def test_connections_above_the_limit_are_refused_with_503(bridge):
    gateway = bridge("ws://127.0.0.1:0/echo", "echo", "--max-connections", "3")
    held = [websocket.connect(gateway.address(), "/echo") for _ in range(3)]
    with Wire.connect(gateway.address()) as wire:
        wire.send(request("/echo"))
        assert websocket.parse_head(wire.receive_head()).status == 503
    held.pop().close_cleanly()

    def admitted():
        try:
            held.append(websocket.connect(gateway.address(), "/echo"))
            return True
        except AssertionError:
            return False

    eventually(admitted, "the slot that became free")


def test_connections_of_one_client_above_its_limit_are_refused_with_429(sluice, tmp_path):
    from support import configuration
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0", max_connections_per_client=2)],
        [configuration.route("echo", "echo", path="/echo")])
    gateway = sluice("serve", "--config", file)
    held = [websocket.connect(gateway.address(), "/echo") for _ in range(2)]
    with Wire.connect(gateway.address()) as wire:
        wire.send(request("/echo"))
        assert websocket.parse_head(wire.receive_head()).status == 429
    assert len(held) == 2


# -- PROXY protocol, byte for byte

V2 = b"\r\n\r\n\x00\r\nQUIT\n"


@pytest.mark.parametrize("header", [
    b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n",
    V2 + b"\x21\x11\x00\x0c" + bytes([192, 0, 2, 7, 192, 0, 2, 1]) + (4711).to_bytes(2, "big") + (80).to_bytes(2, "big")], ids=["v1", "v2"])
@pytest.mark.parametrize("slowly", [False, True])
def test_a_proxy_header_is_removed_and_forwarded(bridge, listener, header, slowly):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in", "--proxy-protocol", "v1")
    with Wire.connect(gateway.address()) as near:
        near.send_slowly(header + b"payload") if slowly else near.send(header + b"payload")
        far = listener.accept()
        wanted = b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\npayload"
        assert far.receive(len(wanted)) == wanted


def test_proxy_protocol_v2_sends_the_binary_header(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "v2")
    with Wire.connect(gateway.address()) as near:
        near.send(b"payload")
        far = listener.accept()
        head = far.receive(16)
        assert head[:14] == V2 + b"\x21\x11", head
        rest = far.receive(int.from_bytes(head[14:16], "big"))
        assert rest[:4] == bytes([127, 0, 0, 1]) and int.from_bytes(rest[8:10], "big") == near.socket.getsockname()[1]
        assert far.receive(7) == b"payload"


def test_a_proxy_header_is_payload_without_the_option(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"))
    with Wire.connect(gateway.address()) as near:
        near.send(b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n")
        assert listener.accept().receive(40) == b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n"


@pytest.mark.parametrize("header", [
    b"PROXY TCP4 192.0.2.7 192.0.2.1 4711\r\n", b"PROXY TCP4 999.0.2.7 192.0.2.1 4711 80\r\n", b"PROXY " + b"A" * 200,
    V2 + b"\x31\x11\x00\x0c" + bytes(12), V2 + b"\x21\x11\x00\x02xx"], ids=["fields", "address", "endless", "version", "short"])
def test_a_malformed_proxy_header_ends_the_connection(bridge, listener, header):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in")
    with Wire.connect(gateway.address()) as near:
        near.send(header)
        near.expect_any_end()


# -- exhausted resources

def test_running_out_of_descriptors_pauses_accepting_and_recovers(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--max-connections", "1000", descriptors=48)
    near, far = join(gateway, listener, "tcp", "tcp")
    idle = gateway.descriptors()
    crowd = [Wire.connect(gateway.address()) for _ in range(60)]
    # Eight descriptors are the reserve.
    eventually(lambda: gateway.descriptors() >= 39, "no descriptor is left for clients")
    # Open tunnels keep relaying, and waiting for a descriptor uses little CPU.
    before = gateway.cpu()
    for number in range(100):
        near.send(b"%03d" % number)
        assert far.receive(3) == b"%03d" % number
    select.select([], [], [], 1.0)
    assert gateway.cpu() - before < 0.5, "the loop spins while it cannot accept"
    # With resets: after an orderly end the gateway rightly waits for the target's end.
    for wire in crowd:
        wire.reset()
    gateway.settle(idle)

    def served():
        # Older connections may still be queued before this one.
        with Wire.connect(gateway.address()) as wire:
            wire.send(b"marked")
            listener.socket.settimeout(0.5)
            try:
                for _ in range(100):
                    with listener.accept() as one:
                        one.socket.settimeout(0.5)
                        if one.receive_some() == b"marked":
                            return True
            except (AssertionError, OSError):
                return False

    eventually(served, "new connections are served again", within=30)
    near.send(b"end")
    assert far.receive(3) == b"end"


def test_a_full_disk_under_the_log_does_not_stop_tunnels(bridge, listener):
    with open("/dev/full", "wb") as full:
        gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), errors=full)
        for number in range(50):
            near, far = join(gateway, listener, "tcp", "tcp")
            near.send(b"%03d" % number)
            assert far.receive(3) == b"%03d" % number
            near.close()
            far.close()
        assert gateway.running()
        assert gateway.stop() == 0


def test_a_stalled_reader_of_the_log_does_not_stop_tunnels(bridge, listener):
    read, write = os.pipe()
    with os.fdopen(write, "wb") as errors:
        gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), errors=errors)
    for number in range(sized(400, 2000)):
        near, far = join(gateway, listener, "tcp", "tcp")
        near.send(b"x")
        assert far.receive(1) == b"x"
        near.close()
        far.close()
    assert gateway.running()
    gateway.kill()
    os.close(read)


# -- many tunnels

class EchoServer:
    """An echo server that exposes its connections, so that tests can abort them."""

    async def start(self):
        self.writers = set()
        self.server = await asyncio.start_server(self._echo, "127.0.0.1", 0, backlog=2048)
        return self.server.sockets[0].getsockname()[1]

    async def _echo(self, reader, writer):
        self.writers.add(writer)
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.writers.discard(writer)
            writer.close()


def abort(writer):
    writer.transport.abort()


def test_random_aborts_do_not_corrupt_other_tunnels(sluice):
    chance = random.Random(20)

    async def tunnel(port, number, alive, block_relayed):
        """Sends random bytes and reads their echo; true when all of them returned."""
        own = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        alive[number] = writer
        sent, got = hashlib.sha256(), hashlib.sha256()
        try:
            for _ in range(sized(60, 600)):
                block = own.randbytes(own.randrange(1, 30_000))
                sent.update(block)
                writer.write(block)
                await writer.drain()
                got.update(await reader.readexactly(len(block)))
                # Different bytes are a fault even on a tunnel that is aborted later.
                assert got.digest() == sent.digest(), f"tunnel {number} carries other bytes than were sent"
                block_relayed()
            writer.write_eof()
            assert await reader.read() == b"", f"tunnel {number} invented bytes at its end"
            return True
        except (ConnectionError, asyncio.IncompleteReadError):
            return False
        finally:
            alive.pop(number, None)
            writer.close()

    async def work():
        far = EchoServer()
        target = await far.start()
        inner = await asyncio.to_thread(sluice, "bridge", "ws://127.0.0.1:0/", f"tcp://127.0.0.1:{target}")
        outer = await asyncio.to_thread(sluice, "bridge", "tcp://127.0.0.1:0", inner.url())
        idle = [inner.descriptors(), outer.descriptors()]
        alive, killed = {}, 0
        blocks = 0

        def block_relayed():
            """Aborts after a number of blocks and not by the clock, so that data is in flight however fast the gateway is."""
            nonlocal blocks, killed
            blocks += 1
            if blocks % sized(100, 1000) == 0 and killed < 40:
                # The client's or the target's end of a tunnel.
                victims = list(alive.values()) if chance.random() < 0.5 else list(far.writers)
                if victims:
                    abort(chance.choice(victims))
                    killed += 1

        tasks = [asyncio.create_task(tunnel(outer.port(), number, alive, block_relayed)) for number in range(100)]
        results = await asyncio.gather(*tasks)
        assert killed >= 20 and sum(results) >= 100 - killed, f"{killed} were killed, {sum(results)} survived"
        for gateway, count in zip((inner, outer), idle):
            await asyncio.to_thread(gateway.settle, count)
        far.server.close()

    asyncio.run(asyncio.wait_for(work(), seconds(170)))


def test_ten_thousand_tunnels_leak_neither_descriptors_nor_memory(sluice):
    async def one(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 100)
        assert await reader.readexactly(100) == b"x" * 100
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()

    async def many(port, count):
        for _ in range(count // 50):
            await asyncio.gather(*(one(port) for _ in range(50)))

    async def work():
        far = EchoServer()
        target = await far.start()
        inner = await asyncio.to_thread(sluice, "bridge", "ws://127.0.0.1:0/", f"tcp://127.0.0.1:{target}", "--log-level", "error")
        outer = await asyncio.to_thread(sluice, "bridge", "tcp://127.0.0.1:0", inner.url(), "--log-level", "error")
        gateways = (inner, outer)
        idle = [gateway.descriptors() for gateway in gateways]
        # Memory that is allocated once, or freed at a deadline, is no leak: memory may grow, but the growth must stop.
        await many(outer.port(), 10_000)
        for _ in range(20):
            before = [gateway.memory() for gateway in gateways]
            await many(outer.port(), 2000)
            grown = [gateway.memory() - memory for gateway, memory in zip(gateways, before)]
            if max(grown) < 2000 * 64:
                break
        else:
            raise AssertionError(f"still {grown} bytes more for each 2000 tunnels")
        for gateway, count in zip(gateways, idle):
            await asyncio.to_thread(gateway.settle, count)
        far.server.close()

    asyncio.run(asyncio.wait_for(work(), seconds(170)))


# -- both ends at once: targets and clients that disconnect in every phase

STAGES = ["accepted", "within TLS", "within the request", "after the request", "within the answer", "after the answer", "within a frame"]


class FailingTarget:
    """A WebSocket target, with or without TLS, that resets or ends each of its connections at a random stage."""

    def __init__(self, listener, chance):
        self.listener, self.chance = listener, chance
        self.tls, listener.tls = listener.tls, None
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                wire = self.listener.accept()
            except (AssertionError, OSError):
                return
            stage, end = self.chance.choice(STAGES), self.chance.choice(["reset", "close"])
            threading.Thread(target=self._serve, args=(wire, stage, end), daemon=True).start()

    def _serve(self, wire, stage, end):
        try:
            self._reach(wire, stage)
        except (AssertionError, OSError):
            pass
        try:
            getattr(wire, end)()
        except OSError:
            pass

    def _reach(self, wire, stage):
        if stage == "accepted":
            return
        if stage in ("within TLS", "within the request"):
            wire.receive(20)
            return
        if self.tls:
            wire.socket = self.tls.wrap_socket(wire.socket, server_side=True)
        asked = websocket.parse_head(wire.receive_head())
        if stage == "after the request":
            return
        answer = ("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                  + websocket.accept_value(asked.header("Sec-WebSocket-Key")) + "\r\n\r\n").encode()
        wire.send(answer[:50] if stage == "within the answer" else answer)
        if stage == "within a frame":
            wire.send(frame(BINARY, bytes(300), key=None)[:100])


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_ends_in_every_phase_of_both_sides_leak_nothing_and_log_one_reason_each(bridge, authority, server_certificate, scheme):
    import json
    tls = authority.server_context(server_certificate) if scheme == "wss" else None
    with Listener(tls=tls, within=30) as target:
        FailingTarget(target, random.Random(5))
        options = ["--ca", authority.certificate, "--server-name", "localhost"] if tls else []
        gateway = bridge(
            "ws://127.0.0.1:0/", target.url(scheme, "/"), "--handshake-timeout", "500ms", "--connect-timeout", "2s",
            "--log-format", "json", *options)
        idle = gateway.descriptors()
        count = sized(20, 100)

        def come_and_go(seed):
            chance = random.Random(seed)
            whole = request("/") + frame(BINARY, bytes(100))
            for _ in range(20):
                try:
                    with Wire.connect(gateway.address()) as wire:
                        wire.send(whole[:chance.choice([0, 1, len(whole) // 2, len(whole) - 50, len(whole), len(whole)])])
                        if chance.random() < 0.5:
                            wire.receive_some()
                        if chance.random() < 0.5:
                            wire.reset()
                except (AssertionError, OSError):
                    pass

        clients = [threading.Thread(target=come_and_go, args=(seed,), daemon=True) for seed in range(count)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(seconds(120))
        gateway.settle(idle, within=40)

        def closed():
            return [line for line in map(json.loads, gateway.log.all()) if line["message"] == "connection closed"]

        eventually(lambda: len(closed()) == 20 * count, "the last line of every connection")
        assert len({line["id"] for line in closed()}) == 20 * count
        opened = {line["id"] for line in map(json.loads, gateway.log.all()) if line["message"] == "connection opened"}
        assert opened <= {line["id"] for line in closed()}
        assert gateway.running()
