"""A WebSocket peer in both roles that can violate the protocol: tests choose every bit of a frame, and received frames are
returned unchanged. It shares no code with Sluice and is checked with the RFC's examples."""

import base64
import hashlib
import os
import socket
import ssl
import struct
import zlib
from dataclasses import dataclass

from .deadlines import seconds
from .shared_tls import SharedTLSSocket

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
RSV1, RSV2, RSV3 = 0x40, 0x20, 0x10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Ended(AssertionError):
    """The connection ended while more was expected."""


class Reset(Ended):
    """The connection ended with a reset."""


def accept_value(key):
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


def mask(payload, key):
    if not payload:
        return payload
    n = len(payload)
    whole = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(n, "big")


def frame(opcode, payload=b"", fin=True, rsv=0, key=b"\x37\xfa\x21\x3d", length=None, length_bytes=None):
    """A frame's bytes. `key` None leaves it unmasked; `length` lies about the length; `length_bytes` (0, 2, 8) forces its form."""
    if isinstance(payload, str):
        payload = payload.encode()
    stated_length = len(payload) if length is None else length
    if length_bytes is None:
        length_bytes = 0 if stated_length < 126 else 2 if stated_length < 65536 else 8
    head = bytes([(0x80 if fin else 0) | rsv | opcode])
    masked = 0x80 if key is not None else 0
    head += {0: lambda: bytes([masked | stated_length]), 2: lambda: bytes([masked | 126]) + struct.pack(">H", stated_length),
             8: lambda: bytes([masked | 127]) + struct.pack(">Q", stated_length)}[length_bytes]()
    return head + (key + mask(payload, key) if key is not None else payload)


def close_payload(code, reason=b""):
    return struct.pack(">H", code) + (reason.encode() if isinstance(reason, str) else reason)


@dataclass(frozen=True)
class Frame:
    opcode: int
    payload: bytes
    fin: bool
    rsv: int
    masked: bool

    @property
    def code(self):
        """The close code, or None when the frame has none."""
        return struct.unpack(">H", self.payload[:2])[0] if len(self.payload) >= 2 else None


@dataclass(frozen=True)
class Response:
    """The parsed head of a request or response."""
    status: int
    start_line: str
    headers: list
    raw: bytes

    def header(self, name):
        """The value of a field, several joined as RFC 9110 §5.3 says; None when there is none."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(found) if found else None


def parse_head(raw):
    lines = raw.decode("latin-1").split("\r\n")
    headers = []
    for line in lines[1:]:
        if line:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
    words = lines[0].split(" ")
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    return Response(status, lines[0], headers, raw)


class Wire:
    """A connected socket with a deadline on every wait, and a buffer of bytes that were read too far."""

    def __init__(self, sock, within=60.0):
        self.socket = sock
        self.within = within
        self.kept = bytearray()
        self.tls = SharedTLSSocket(sock) if isinstance(sock, ssl.SSLSocket) else None
        sock.settimeout(seconds(within))
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def connect(cls, address, tls=None, server_name="localhost", within=60.0, receive_buffer=None, source=None):
        """`address` is (host, port) or the path of a Unix socket; `tls` an `ssl.SSLContext`; `source` the client's address."""
        family = socket.AF_UNIX if isinstance(address, (str, os.PathLike)) else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(seconds(within))
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            if source is not None:
                sock.bind((source, 0))
            sock.connect(os.fspath(address) if family == socket.AF_UNIX else address)
            return cls(tls.wrap_socket(sock, server_hostname=server_name, suppress_ragged_eofs=False) if tls else sock, within)
        except BaseException:
            sock.close()
            raise

    @classmethod
    def expect_refusal(cls, address, data=b"", within=60.0, source=None):
        """Connects and sends `data`: the peer must reset the connection, at the earliest before `connect` returns."""
        try:
            with cls.connect(address, within=within, source=source) as wire:
                wire.send(data)
                wire.expect_reset()
        except (ConnectionResetError, Reset):
            pass

    def send(self, data):
        try:
            self.tls.send_all(data) if self.tls else self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError) as reset:
            raise Reset(f"the peer closed while {len(data)} bytes were sent: {reset}") from None

    def send_slowly(self, data, size=1):
        """Sends pieces of `size` bytes, each in its own segment."""
        for at in range(0, len(data), size):
            self.send(data[at:at + size])

    def receive_some(self, limit=65536):
        """The next bytes; empty at the end of the stream."""
        if self.kept:
            piece = bytes(self.kept[:limit])
            del self.kept[:limit]
            return piece
        try:
            return self.tls.receive(limit) if self.tls else self.socket.recv(limit)
        except ssl.SSLEOFError:
            raise Reset("TLS ended without close_notify") from None
        except (ConnectionResetError, BrokenPipeError) as reset:
            raise Reset(f"reset by the peer: {reset}") from None
        except (socket.timeout, TimeoutError):
            raise AssertionError(f"nothing came within {seconds(self.within):g} s") from None

    def receive(self, count):
        while len(self.kept) < count:
            have, self.kept = self.kept, bytearray()
            try:
                piece = self.receive_some(max(65536, min(count - len(have), 1 << 20)))
            finally:
                self.kept = have
            self.kept += piece
            if not piece:
                raise Ended(f"the stream ended after {bytes(self.kept)[:200]!r}, {count} bytes were expected")
        wanted = bytes(memoryview(self.kept)[:count])
        del self.kept[:count]
        return wanted

    def receive_all(self, limit=1 << 30):
        """Everything up to the end of the stream."""
        everything = bytearray()
        while piece := self.receive_some():
            everything += piece
            assert len(everything) <= limit, f"more than {limit} bytes came"
        return bytes(everything)

    def receive_head(self, limit=65536):
        """The bytes up to and including an empty line; later bytes stay for the next read."""
        head = bytearray()
        while b"\r\n\r\n" not in head:
            piece = self.receive_some()
            if not piece:
                raise Ended(f"the stream ended within the head: {bytes(head)!r}")
            head += piece
            assert len(head) < limit + 65536, "the head does not end"
        end = head.index(b"\r\n\r\n") + 4
        self.kept = bytearray(head[end:]) + self.kept
        return bytes(head[:end])

    def expect_end(self):
        """The stream must end here cleanly, without another byte."""
        rest = self.receive_some()
        assert rest == b"", f"the end was expected, not {rest[:200]!r}"

    def expect_reset(self):
        """The stream must end with a reset."""
        try:
            rest = self.receive_some()
        except Reset:
            return
        raise AssertionError(f"a reset was expected, not {rest[:200]!r}" if rest else "a reset was expected, not a clean end")

    def expect_any_end(self):
        """The stream must end, cleanly or not, without another byte."""
        try:
            self.expect_end()
        except Reset:
            pass

    def finish_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class Peer(Wire):
    """One end of an established WebSocket connection."""

    masks = True
    extensions = None
    subprotocol = None

    def frame(self, opcode, payload=b"", **more):
        """A frame's bytes, masked as our role requires; for the arguments see `frame` of this module."""
        if not self.masks:
            more.setdefault("key", None)
        return frame(opcode, payload, **more)

    def write(self, opcode, payload=b"", **more):
        self.send(self.frame(opcode, payload, **more))

    def text(self, payload):
        self.write(TEXT, payload)

    def binary(self, payload):
        self.write(BINARY, payload)

    def read(self):
        """The next frame of any kind, with the checks that hold in every test."""
        first, second = self.receive(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", self.receive(2))[0]
            assert length >= 126, f"a length of {length} in three bytes (RFC 6455 §5.2: the shortest form)"
        elif length == 127:
            length = struct.unpack(">Q", self.receive(8))[0]
            assert length >= 65536, f"a length of {length} in nine bytes (RFC 6455 §5.2: the shortest form)"
        masked = bool(second & 0x80)
        assert masked != self.masks, "masked towards a client" if masked else "not masked towards a server"
        key = self.receive(4) if masked else None
        payload = self.receive(length)
        opcode = first & 0x0F
        if opcode >= 8:
            assert first & 0x80 and length <= 125, "a control frame fragmented or too long"
        return Frame(opcode, mask(payload, key) if key else payload, bool(first & 0x80), first & 0x70, masked)

    def expect_pings_then_any_end(self):
        """The peer must send at least one Ping, and then end the stream, cleanly or not, without another frame."""
        assert self.read().opcode == PING
        try:
            while True:
                assert self.read().opcode == PING
        except (Ended, Reset):
            pass

    def read_message(self, control=None):
        """The next data message as (opcode, payload), assembled; pings are answered, other control frames go to `control`."""
        opcode, payload, inflate = None, bytearray(), False
        while True:
            got = self.read()
            if got.opcode == PING:
                self.write(PONG, got.payload)
            elif got.opcode >= 8:
                assert control is not None, f"a message was expected, not {got}"
                control.append(got)
            else:
                assert (got.opcode == CONTINUATION) == (opcode is not None), f"the fragments are out of order: {got}"
                opcode = got.opcode if opcode is None else opcode
                inflate = inflate or bool(got.rsv & RSV1)
                payload += got.payload
                if got.fin:
                    return opcode, self._inflated(bytes(payload)) if inflate else bytes(payload)

    def _inflated(self, payload):
        raise AssertionError("RSV1 without permessage-deflate")

    def expect_text(self, payload):
        self.expect_message(TEXT, payload)

    def expect_binary(self, payload):
        self.expect_message(BINARY, payload)

    def expect_message(self, opcode, payload):
        if isinstance(payload, str):
            payload = payload.encode()
        got, body = self.read_message()
        assert (got, len(body)) == (opcode, len(payload)), f"opcode {got} with {len(body)} bytes, not {opcode} with {len(payload)}"
        assert body == payload, "the payload differs"

    def expect_pong(self, payload=b""):
        got = self.read()
        assert (got.opcode, got.payload) == (PONG, payload), f"a pong with {payload[:40]!r} was expected, not {got}"

    def expect_close(self, *codes):
        """The next frame must be a Close with one of `codes` (None: without a code)."""
        got = self.read()
        assert got.opcode == CLOSE, f"a Close was expected, not {got}"
        assert got.code in codes, f"close code {got.code}, expected one of {codes}; reason {got.payload[2:]!r}"
        if got.code is not None:
            got.payload[2:].decode()
        return got

    def expect_failure(self, *codes):
        """The peer must fail the connection (RFC 6455 §7.1.7): a Close with one of `codes`, then the end."""
        got = self.expect_close(*codes)
        try:
            self.write(CLOSE, got.payload)
        except Reset:
            pass
        self.expect_any_end()

    def close_cleanly(self, code=1000, reason=b""):
        """Our closing handshake: the answer has the same code, and the stream ends cleanly."""
        self.write(CLOSE, close_payload(code, reason) if code is not None else b"")
        self.expect_close(code)
        self.expect_end_after_close()

    def expect_end_after_close(self):
        """Both Close frames were exchanged: the server ends the stream, the client follows (RFC 6455 §7.1.1)."""
        if not self.masks:
            self.finish_sending()
        self.expect_end()


class Deflation:
    """Mixin for peers that can agree on permessage-deflate (RFC 7692 §7.2)."""

    def agree(self, parameters, ours, theirs):
        """`parameters`: as agreed; `ours`, `theirs`: the prefixes of the two sides, `client` or `server`."""
        bits = int(parameters.get(f"{ours}_max_window_bits") or 15)
        self.ours_fresh = f"{ours}_no_context_takeover" in parameters
        self.theirs_fresh = f"{theirs}_no_context_takeover" in parameters
        self.theirs_bits = int(parameters.get(f"{theirs}_max_window_bits") or 15)
        # zlib cannot compress with a window of 2^8.
        self._new_deflater = lambda: zlib.compressobj(6, zlib.DEFLATED, -max(bits, 9))
        self._deflater, self._inflater = self._new_deflater(), self._new_inflater()

    def _new_inflater(self):
        return zlib.decompressobj(-max(self.theirs_bits, 9))

    def deflated(self, payload):
        if self.ours_fresh:
            self._deflater = self._new_deflater()
        made = self._deflater.compress(payload) + self._deflater.flush(zlib.Z_SYNC_FLUSH)
        return made[:-4]

    def _inflated(self, payload):
        if self.theirs_fresh:
            self._inflater = self._new_inflater()
        return self._inflater.decompress(payload + b"\x00\x00\xff\xff")

    def write_compressed(self, opcode, payload, pieces=1):
        """Sends a compressed message in about `pieces` frames, with RSV1 only on the first."""
        body = self.deflated(payload.encode() if isinstance(payload, str) else payload)
        step = max(1, -(-len(body) // pieces))
        parts = [body[at:at + step] for at in range(0, len(body), step)] or [b""]
        for index, part in enumerate(parts):
            self.write(opcode if index == 0 else CONTINUATION, part, rsv=RSV1 if index == 0 else 0, fin=index == len(parts) - 1)


class Client(Deflation, Peer):
    masks = True

    def _inflated(self, payload):
        assert self.extensions, "RSV1 without permessage-deflate"
        return Deflation._inflated(self, payload)


def request(path="/", host="localhost", key="dGhlIHNhbXBsZSBub25jZQ==", version="13", headers=()):
    """The bytes of an opening handshake."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Key: {key}", f"Sec-WebSocket-Version: {version}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def parse_extension(text):
    """One element of Sec-WebSocket-Extensions as (name, parameters); flags have None."""
    name, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for part in rest:
        key, _, value = part.partition("=")
        assert key.strip() not in parameters, f"the parameter {key} occurs twice"
        parameters[key.strip()] = value.strip().strip('"') if value else None
    return name, parameters


def connect(address, path="/", headers=(), subprotocols=(), deflate=None, tls=None, server_name="localhost", within=60.0,
            host="localhost", receive_buffer=None):
    """Opens a connection as a client and checks the response (RFC 6455 §4.1); `deflate` is a complete offer."""
    client = Client.connect(address, tls=tls, server_name=server_name, within=within, receive_buffer=receive_buffer)
    try:
        key = base64.b64encode(os.urandom(16)).decode()
        fields = list(headers)
        if subprotocols:
            fields.append(("Sec-WebSocket-Protocol", ", ".join(subprotocols)))
        if deflate:
            fields.append(("Sec-WebSocket-Extensions", deflate))
        client.send(request(path, host, key, headers=fields))
        answer = parse_head(client.receive_head())
        assert answer.status == 101, f"the upgrade was refused: {answer.raw!r}"
        assert answer.start_line.startswith("HTTP/1.1 101"), answer.start_line
        assert (answer.header("Upgrade") or "").lower() == "websocket", answer.raw
        assert "upgrade" in (answer.header("Connection") or "").lower().replace(" ", "").split(","), answer.raw
        assert answer.header("Sec-WebSocket-Accept") == accept_value(key), answer.raw
        client.response = answer
        client.subprotocol = answer.header("Sec-WebSocket-Protocol")
        assert client.subprotocol is None or client.subprotocol in subprotocols, f"subprotocol {client.subprotocol} was not offered"
        client.extensions = answer.header("Sec-WebSocket-Extensions")
        if client.extensions:
            assert deflate, f"an extension that was not offered: {client.extensions}"
            name, client.parameters = parse_extension(client.extensions)
            assert name == "permessage-deflate", client.extensions
            client.agree(client.parameters, "client", "server")
        return client
    except BaseException:
        client.close()
        raise


class Server(Deflation, Peer):
    """The server's end, as returned by `Listener.accept_websocket`."""
    masks = False

    def _inflated(self, payload):
        assert self.extensions, "RSV1 without permessage-deflate"
        return Deflation._inflated(self, payload)


class Listener:
    """A listening socket whose accepted connections have deadlines."""

    def __init__(self, path=None, tls=None, backlog=1024, within=60.0, host="127.0.0.1"):
        self.within = within
        self.host = host
        self.tls = tls
        family = socket.AF_UNIX if path else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(seconds(within))
        self.socket.bind(str(path) if path else (host, 0))
        self.socket.listen(backlog)
        self.path = path

    @property
    def port(self):
        return self.socket.getsockname()[1]

    def url(self, scheme, path=""):
        return f"unix://{self.path}" if scheme == "unix" else f"{scheme}://{self.host}:{self.port}{path}"

    def accept(self, kind=Wire):
        try:
            accepted, _ = self.socket.accept()
        except (socket.timeout, TimeoutError):
            raise AssertionError("no connection came") from None
        accepted.settimeout(seconds(self.within))
        if self.tls:
            accepted = self.tls.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False)
        return kind(accepted, self.within)

    def accept_request(self, kind=Server):
        """An accepted connection whose opening handshake has been read but not answered: (peer, request)."""
        peer = self.accept(kind)
        return peer, parse_head(peer.receive_head())

    def accept_websocket(self, subprotocol=None, extensions=None, then=b""):
        """Accepts a connection, checks the request (RFC 6455 §4.2.1), and answers 101, with `then` in the same segment."""
        peer, asked = self.accept_request()
        words = asked.start_line.split(" ")
        assert words[0] == "GET" and words[2] == "HTTP/1.1", asked.start_line
        assert (asked.header("Upgrade") or "").lower() == "websocket", asked.raw
        assert "upgrade" in (asked.header("Connection") or "").lower(), asked.raw
        assert asked.header("Sec-WebSocket-Version") == "13", asked.raw
        assert asked.header("Host"), asked.raw
        key = asked.header("Sec-WebSocket-Key")
        assert key and len(base64.b64decode(key)) == 16, asked.raw
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Accept: {accept_value(key)}"]
        if subprotocol:
            lines.append(f"Sec-WebSocket-Protocol: {subprotocol}")
        if extensions:
            lines.append(f"Sec-WebSocket-Extensions: {extensions}")
            peer.extensions = extensions
            peer.agree(parse_extension(extensions)[1], "server", "client")
        peer.send(("\r\n".join(lines) + "\r\n\r\n").encode() + then)
        peer.request = asked
        peer.path = words[1]
        return peer

    def close(self):
        try:
            # Wakes a thread that waits in `accept`.
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
