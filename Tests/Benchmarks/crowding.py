#!/usr/bin/env python3
"""What one client may send to keep a gateway's loop busy, and how long a neighbour on the same loop waits meanwhile.

As a program it is that client: `crowding.py KIND PORT PATH` sends until it is ended, and fails when the gateway ends the connection.
"""

import base64
import os
import select
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import time
import zlib

KEY = b"\x37\xfa\x21\x3d"
# Of what is sent again and again: as much as a gateway takes in one read.
BLOCK = 256 << 10


def masked(payload):
    whole = (KEY * (len(payload) // 4 + 1))[:len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(payload), "big")


def frame(first, payload):
    """A client's frame, `first` with FIN, RSV1 and the opcode."""
    count = len(payload)
    head = struct.pack(">BB", first, 0x80 | count) if count < 126 else struct.pack(">BBH", first, 0xFE, count)
    return head + KEY + masked(payload)


def repeated(piece):
    return piece * (BLOCK // len(piece))


def zeros():
    """Messages of 1 MiB, each a thousandth of that on the wire."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    payload = squeeze.compress(bytes(1 << 20)) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    return repeated(frame(0xC2, payload[:-4]))


def noise():
    """Messages of 64 KiB that no compressor makes smaller, and that cost most to compress again."""
    return b"".join(frame(0x82, os.urandom(60_000)) for _ in range(BLOCK // 60_000))


def fragments():
    count = BLOCK // 7
    return frame(0x02, b"a") + frame(0x00, b"a") * (count - 2) + frame(0x80, b"a")


KINDS = {
    "zeros": zeros,
    "noise": noise,
    "fragments": fragments,
    "pings": lambda: repeated(frame(0x89, b"a")),
    "messages": lambda: repeated(frame(0x82, b"a")),
    "records": lambda: frame(0x82, b"a") * 1500,
    "lines": lambda: b"\n" * BLOCK,
    # In length-prefixed framing, empty messages.
    "bytes": lambda: bytes(BLOCK),
}
COMPRESSED = ("zeros", "noise")
STREAMS = ("lines", "bytes")


class Connection:
    """A client of the gateway. Under TLS each byte that is written is a record of its own."""

    def __init__(self, port, tls=False):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.secure = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.secure = context.wrap_bio(self.arrived, self.leaving)
            self._until(self.secure.do_handshake)

    def _until(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.socket.sendall(self.leaving.read())
                self.arrived.write(self.socket.recv(1 << 16))
            finally:
                self.socket.sendall(self.leaving.read())

    def encoded(self, data):
        """The bytes that go over the wire."""
        if self.secure is None:
            return data
        for byte in data:
            self.secure.write(bytes((byte,)))
        return self.leaving.read()

    def send(self, data):
        if self.secure is not None:
            self.secure.write(data)
            data = self.leaving.read()
        self.socket.sendall(data)

    def receive(self):
        return self._until(lambda: self.secure.read(1 << 16)) if self.secure else self.socket.recv(1 << 16)

    def open(self, path, offers=""):
        """The opening handshake; `offers` are further fields."""
        key = base64.b64encode(os.urandom(16)).decode()
        self.send((f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{offers}\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            piece = self.receive()
            if not piece:
                raise ConnectionError(f"the handshake was cut short: {head!r}")
            head += piece
        if not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(f"no WebSocket: {head!r}")
        return head


def crowd(kind, port, path):
    """Sends without end, and throws away what comes back."""
    connection = Connection(port, tls=kind == "records")
    if kind not in STREAMS:
        head = connection.open(path, "Sec-WebSocket-Extensions: permessage-deflate\r\n" if kind in COMPRESSED else "")
        if kind in COMPRESSED and b"permessage-deflate" not in head:
            raise ConnectionError("the gateway does not compress")
    block = KINDS[kind]()
    wire = connection.socket
    wire.setblocking(False)
    left = memoryview(connection.encoded(block))
    print("sending", flush=True)
    scratch = bytearray(1 << 20)
    while True:
        readable, writable, _ = select.select([wire], [wire], [], 30)
        if readable and not wire.recv_into(scratch):
            raise ConnectionError("the gateway ended the connection")
        if writable:
            left = left[wire.send(left):]
            if not left:
                left = memoryview(connection.encoded(block))


class Crowder:
    """The client in a process of its own."""

    def __init__(self, kind, port, path="/", wrapper=()):
        words = [*wrapper, sys.executable, __file__, kind, str(port), path]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.process.stdout.readline()

    def complaint(self):
        """Why it ended; `None` while it still sends."""
        return None if self.process.poll() is None else self.process.stderr.read().decode(errors="replace")[-400:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class Neighbour:
    """A well-behaved client of the same gateway: sends 16 bytes and waits for them."""

    def __init__(self, port, path="/", is_stream=False, tls=False):
        self.connection = Connection(port, tls=tls)
        # In any framing one message.
        self.said = b"\0\0\0\x0c0123456789a\n" if is_stream else frame(0x82, b"0123456789abcdef")
        # Of a server the head of a frame is two bytes.
        self.expected = 16 if is_stream else 18
        if not is_stream:
            self.connection.open(path)

    def round_trip(self):
        """In seconds."""
        began = time.perf_counter()
        self.connection.send(self.said)
        heard = 0
        while heard < self.expected:
            piece = self.connection.receive()
            if not piece:
                raise ConnectionError("the neighbour's connection ended")
            heard += len(piece)
        return time.perf_counter() - began

    def round_trips(self, seconds, pause=0.005):
        """As many as there is time for, at least one."""
        times = [self.round_trip()]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(pause)
            times.append(self.round_trip())
        return times

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.socket.close()


def median_and_worst(times):
    return statistics.median(times), max(times)


if __name__ == "__main__":
    crowd(sys.argv[1], int(sys.argv[2]), sys.argv[3])
