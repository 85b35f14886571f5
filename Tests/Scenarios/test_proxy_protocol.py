"""The PROXY protocol in all its forms, received from clients and sent to targets."""

import socket
import struct

import pytest

from support import websocket
from support.configuration import listener as listening, route, upstream, write
from support.websocket import Wire, request

V2 = b"\r\n\r\n\x00\r\nQUIT\n"
FOUR = bytes([192, 0, 2, 7, 192, 0, 2, 1]) + struct.pack(">HH", 4711, 80)
SIX = (socket.inet_pton(socket.AF_INET6, "2001:db8::7") + socket.inet_pton(socket.AF_INET6, "2001:db8::1")
       + struct.pack(">HH", 4711, 80))
UNIX = b"/a".ljust(108, b"\0") + b"/b".ljust(108, b"\0")
# PP2_TYPE_ALPN "h2" and three bytes of PP2_TYPE_NOOP.
TLVS = b"\x01\x00\x02h2" + b"\x04\x00\x03\0\0\0"


def binary(command, family, body):
    return V2 + bytes([0x20 | command, family]) + len(body).to_bytes(2, "big") + body


TAKEN = {
    "v1 for IPv6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", "[2001:db8::7]:4711"),
    "v1 unknown": (b"PROXY UNKNOWN\r\n", None),
    "v1 unknown with more": (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None),
    "v1 of the greatest length": (b"PROXY UNKNOWN " + b"a" * 91 + b"\r\n", None),
    "v2 local": (binary(0, 0, b""), None),
    "v2 local with addresses": (binary(0, 0x11, FOUR), None),
    "v2 for IPv6": (binary(1, 0x21, SIX), "[2001:db8::7]:4711"),
    "v2 for Unix": (binary(1, 0x31, UNIX), "unix:/a"),
    "v2 over datagrams": (binary(1, 0x12, FOUR), None),
    "v2 with TLVs": (binary(1, 0x11, FOUR + TLVS), "192.0.2.7:4711"),
}


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize("header, client", TAKEN.values(), ids=list(TAKEN))
def test_a_header_of_a_trusted_peer_names_the_client(bridge, listener, header, client, slowly):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in")
    with Wire.connect(gateway.address()) as near:
        near.send_slowly(header + b"payload") if slowly else near.send(header + b"payload")
        with listener.accept() as far:
            assert far.receive(7) == b"payload"
        peer = "%s:%d" % near.socket.getsockname()
        line = gateway.wait_log("connection opened")
        assert f"client={client or peer}" in line, line
        assert (f"peer={peer}" in line) == (client is not None), line


REFUSED = {
    "addresses of the other family": b"PROXY TCP6 192.0.2.7 2001:db8::1 1 2\r\n",
    "a port with a leading zero": b"PROXY TCP4 192.0.2.7 192.0.2.1 01 2\r\n",
    "a port too large": b"PROXY TCP4 192.0.2.7 192.0.2.1 65536 2\r\n",
    "two spaces": b"PROXY TCP4  192.0.2.7 192.0.2.1 1 2\r\n",
    "a line too long": b"PROXY UNKNOWN " + b"a" * 92 + b"\r\n",
    "an unknown command": binary(2, 0x11, FOUR),
    "an unknown family": binary(1, 0x41, FOUR),
    "a TLV that ends outside": binary(1, 0x11, FOUR + b"\x01\x00\xffx"),
    "half a TLV": binary(1, 0x11, FOUR + b"\x01\x00"),
    "a checksum that is wrong": binary(1, 0x11, FOUR + b"\x03\x00\x04\0\0\0\0"),
    "64 KiB of padding": binary(1, 0x11, FOUR + b"\x04" + struct.pack(">H", 65520) + bytes(65520)),
}


@pytest.mark.parametrize("header", REFUSED.values(), ids=list(REFUSED))
def test_an_invalid_header_ends_its_connection(bridge, listener, header):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in")
    with Wire.connect(gateway.address()) as near:
        try:
            near.send(header)
        except websocket.Reset:
            pass
        else:
            near.expect_reset()
    assert "reason=downstream/proxy-protocol/proxy-header" in gateway.wait_log("connection closed")


def test_an_unfinished_header_times_out(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in", "--handshake-timeout", "500ms")
    with Wire.connect(gateway.address()) as near:
        near.send(b"PROXY TCP4 192.0.2.7")
        near.expect_reset()
    assert "reason=downstream/proxy-protocol/handshake-timeout" in gateway.wait_log("connection closed")


@pytest.mark.parametrize("mode, header, served", [
    ("accept", b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", "as payload or not at all"),
    ("require", b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", "not at all"), ("require", b"", "not at all")])
def test_a_header_of_an_untrusted_peer_is_not_used(sluice, tmp_path, mode, header, served):
    file = write(
        tmp_path / "sluice.yaml",
        [listening("raw", "tcp://127.0.0.1:0", route="echo", proxy_protocol=mode, proxy_protocol_trusted=["192.0.2.0/24"])],
        [route("echo", "echo")], control={"address": "none"})
    gateway = sluice("serve", "--config", file)
    try:
        with Wire.connect(gateway.address()) as near:
            near.send(header + b"payload")
            near.finish_sending()
            got = near.receive_all(limit=1000)
    except (websocket.Reset, OSError):
        got = None
    if served == "not at all":
        assert got is None
    else:
        assert got in (None, header + b"payload")
    assert "192.0.2.7" not in "".join(line for line in gateway.log.all() if "client=192" in line)


GIVEN = {
    "v1 for a client known by v2": ("v1", binary(1, 0x21, SIX), b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n"),
    "v2 for a client known by v1": ("v2", b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", binary(1, 0x11, FOUR)),
    "v2 for IPv6": ("out", binary(1, 0x21, SIX), binary(1, 0x21, SIX)),
    "v2 for Unix": ("v2", binary(1, 0x31, UNIX), binary(1, 0x31, UNIX)),
    "without the TLVs of the client's side": ("v2", binary(1, 0x11, FOUR + TLVS), binary(1, 0x11, FOUR)),
}


@pytest.mark.parametrize("word, came, wanted", GIVEN.values(), ids=list(GIVEN))
def test_the_header_to_the_target_has_the_configured_version(bridge, listener, word, came, wanted):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", f"in,{word}")
    with Wire.connect(gateway.address()) as near:
        near.send(came + b"payload")
        with listener.accept() as far:
            assert far.receive(len(wanted) + 7) == wanted + b"payload"


@pytest.mark.parametrize("version, wanted", [("v1", b"PROXY TCP4 127.0.0.1 127.0.0.1 "), ("v2", binary(1, 0x11, FOUR)[:16] + bytes([127, 0, 0, 1] * 2))])
def test_a_dual_stack_listener_reports_an_ipv4_client_as_ipv4(bridge, listener, version, wanted):
    gateway = bridge("tcp://*:0", listener.url("tcp"), "--proxy-protocol", version)
    with Wire.connect(gateway.address()) as near:
        with listener.accept() as far:
            assert far.receive(len(wanted)) == wanted
        own = near.socket.getsockname()[1]
    assert f"client=127.0.0.1:{own} " in gateway.wait_log("connection closed") + " "


def test_forwarding_fields_are_replaced_by_the_client_of_the_header(sluice, listener, tmp_path):
    file = write(
        tmp_path / "sluice.yaml", [listening("web", "ws://127.0.0.1:0", proxy_protocol="require")],
        [route("app", "app", path="/")], [upstream("app", listener.url("ws", "/"))], control={"address": "none"})
    gateway = sluice("serve", "--config", file)
    with Wire.connect(gateway.address()) as near:
        near.send(binary(1, 0x21, SIX) + request("/", headers=[("X-Forwarded-For", "203.0.113.9")]))
        far, asked = listener.accept_request()
        assert asked.header("X-Forwarded-For") == "2001:db8::7"
        assert 'for="[2001:db8::7]"' in asked.header("Forwarded")
        far.close()
