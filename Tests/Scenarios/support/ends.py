"""The two ends of a bridge as streams of bytes, over raw connections or WebSocket messages."""

import os
import select

from . import websocket
from .deadlines import seconds
from .websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, Client, Ended, Listener, Server, Wire, close_payload


class RawEnd:
    def __init__(self, wire):
        self.wire = wire

    def send(self, data):
        self.wire.send(data)

    def receive(self, count):
        return self.wire.receive(count)

    def finish(self):
        self.wire.finish_sending()

    def expect_finish(self):
        """Expects a clean end of the other side."""
        self.wire.expect_end()

    def expect_failure(self):
        """Expects an abnormal end of the other side, which a raw peer sees as a reset."""
        self.wire.expect_reset()

    def fail(self):
        self.wire.reset()

    def close(self):
        self.wire.close()


class MessageEnd(RawEnd):
    """Bytes in binary messages whose boundaries are ignored, like in the framing `binary`."""

    def __init__(self, wire):
        super().__init__(wire)
        self.kept = bytearray()

    def send(self, data):
        for at in range(0, len(data), 1 << 20):
            self.wire.binary(data[at:at + (1 << 20)])

    def receive(self, count):
        while len(self.kept) < count:
            got = self.wire.read()
            if got.opcode == PING:
                self.wire.write(PONG, got.payload)
            elif got.opcode in (BINARY, CONTINUATION):
                self.kept += got.payload
            else:
                raise Ended(f"{count - len(self.kept)} more bytes were expected, not {got}")
        wanted = bytes(self.kept[:count])
        del self.kept[:count]
        return wanted

    def finish(self):
        self.wire.write(CLOSE, close_payload(1000))

    def expect_finish(self):
        self.wire.expect_close(1000)
        try:
            self.wire.write(CLOSE, close_payload(1000))
        except Ended:
            pass

    def expect_failure(self):
        """Expects a Close with an abnormal code, or an end without Close. Answers Pings until then."""
        try:
            while (got := self.wire.read()).opcode == PING:
                self.wire.write(PONG, got.payload)
        except Ended:
            return
        assert got.opcode == CLOSE and got.code not in (None, 1000, 1001), f"an abnormal end was expected, not {got}"


def end_of(wire):
    return MessageEnd(wire) if isinstance(wire, (Client, Server)) else RawEnd(wire)


def reach(gateway, kind, path="/", tls=None, **more):
    """Connects to the gateway's only listener with the protocol of its kind."""
    address = gateway.url().removeprefix("unix://") if kind == "unix" else gateway.address()
    secured = tls if kind in ("tls", "wss") else None
    if kind in ("ws", "wss"):
        return MessageEnd(websocket.connect(address, path, tls=secured, **more))
    return RawEnd(Wire.connect(address, tls=secured, **more))


def serve(listener, kind, **more):
    """Accepts the connection that the gateway opens to a target of this kind."""
    return MessageEnd(listener.accept_websocket(**more)) if kind in ("ws", "wss") else RawEnd(listener.accept())


class Bridged:
    """A gateway between two ends, with certificates for TLS."""

    def __init__(self, bridge, authority, certificate, folder, listen, target, *options, within=60.0):
        self.listen, self.target = listen, target
        self.authority = authority
        server_tls = authority.server_context(certificate) if target in ("tls", "wss") else None
        self.listener = Listener(path=folder / "target.sock" if target == "unix" else None, tls=server_tls, within=within)
        path = "/" if listen in ("ws", "wss") else ""
        here = f"unix://{folder / 'listen.sock'}" if listen == "unix" else f"{listen}://127.0.0.1:0{path}"
        words = list(options)
        if listen in ("tls", "wss"):
            words += ["--certificate", certificate[0], "--key", certificate[1]]
        if target in ("tls", "wss"):
            words += ["--ca", authority.certificate, "--server-name", "localhost"]
        self.gateway = bridge(here, self.listener.url(target, "/" if target in ("ws", "wss") else ""), *words)
        self.within = within

    def join(self, **more):
        """Opens a tunnel; returns its two ends, (near, far)."""
        import threading
        taken = []
        failure = []

        def take():
            try:
                taken.append(serve(self.listener, self.target))
            except BaseException as error:  # noqa: BLE001 - handed to the test's thread
                failure.append(error)

        # A WebSocket client receives 101 only after the target has answered, so both ends have to be opened at once.
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        tls = self.authority.client_context() if self.listen in ("tls", "wss") else None
        near = reach(self.gateway, self.listen, tls=tls, within=self.within, **more)
        thread.join(seconds(self.within))
        if failure:
            raise failure[0]
        assert taken, "the gateway never reached the target"
        return near, taken[0]

    def close(self):
        self.listener.close()


def random_bytes(count):
    return os.urandom(count)


def fill(wire, limit, quiet=1.0, block=bytes(65536)):
    """Sends `block` repeatedly until the socket blocks for `quiet` seconds; returns the number of bytes sent. Fails above `limit`."""
    sent = 0
    wire.socket.setblocking(False)
    try:
        while True:
            _, writable, _ = select.select([], [wire.socket], [], seconds(quiet))
            if not writable:
                return sent
            sent += wire.socket.send(block)
            assert sent <= limit, f"{sent} bytes were sent although the peer does not read"
    finally:
        wire.socket.settimeout(seconds(wire.within))
