"""How an abnormal end of one connection appears on the other side of the tunnel, for every kind of listener and target."""

import os
import socket

import pytest

from support.ends import Bridged, MessageEnd
from support.websocket import CLOSE, Ended, Reset, Wire, connect

KINDS = ["tcp", "tls", "unix", "ws", "wss"]


@pytest.fixture
def between(bridge, authority, server_certificate, tmp_path):
    made = []

    def make(listen, target, *options):
        one = Bridged(bridge, authority, server_certificate, tmp_path, listen, target, *options)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def cut(end):
    """Sends FIN without the close_notify or Close that should precede it."""
    with socket.socket(fileno=os.dup(end.wire.socket.fileno())) as bare:
        bare.shutdown(socket.SHUT_WR)


def observed_end(end):
    """How the connection ended, as a peer of this kind sees it."""
    if isinstance(end, MessageEnd):
        try:
            got = end.wire.read()
        except (Ended, Reset):
            return "cut"
        return got.code if got.opcode == CLOSE else got
    try:
        end.wire.expect_end()
        return "end of file"
    except (AssertionError, OSError) as failure:
        return "reset" if isinstance(failure, Reset) else f"{failure!r}"


def joined(between, listen, target, near_fails):
    near, far = between(listen, target).join()
    near.send(b"open")
    assert far.receive(4) == b"open"
    return (near, far) if near_fails else (far, near)


def abnormal_end(kind):
    return {"ws": 1011, "wss": 1011, "unix": "end of file"}.get(kind, "reset")


@pytest.mark.parametrize("near_fails", [True, False], ids=["client", "target"])
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("listen", KINDS)
def test_a_reset_is_an_abnormal_end_on_the_other_side(between, listen, target, near_fails):
    failing, other = joined(between, listen, target, near_fails)
    failing.fail()
    kinds = (listen, target) if near_fails else (target, listen)
    if kinds[0] == "unix":
        # Unix sockets have no reset: closing one is an end of file.
        assert observed_end(other) == (1000 if kinds[1] in ("ws", "wss") else "end of file")
    else:
        assert observed_end(other) == abnormal_end(kinds[1])


@pytest.mark.parametrize("near_fails", [True, False], ids=["client", "target"])
@pytest.mark.parametrize("other_kind", KINDS)
@pytest.mark.parametrize("kind", ["tls", "ws", "wss"])
def test_a_fin_without_close_notify_or_close_is_an_abnormal_end_on_the_other_side(between, kind, other_kind, near_fails):
    listen, target = (kind, other_kind) if near_fails else (other_kind, kind)
    failing, other = joined(between, listen, target, near_fails)
    cut(failing)
    assert observed_end(other) == abnormal_end(other_kind)


def test_a_websocket_target_receives_no_bytes_after_the_request_before_its_response(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("ws", "/"))
    with Wire.connect(gateway.address()) as near:
        near.send(b"early")
        far, asked = listener.accept_request()
        assert asked.raw.endswith(b"\r\n\r\n") and not far.kept
        far.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            far.socket.recv(1)
        far.close()


def test_a_websocket_that_does_not_answer_a_close_is_relayed_until_it_is_silent_then_reset(bridge, listener):
    gateway = bridge("ws://127.0.0.1:0/", listener.url("tcp"))
    client = connect(gateway.address(), within=30)
    far = listener.accept()
    far.finish_sending()
    client.expect_close(1000)
    for number in range(3):
        client.binary(b"%d" % number)
        assert far.receive(1) == b"%d" % number
    client.expect_reset()
    assert "reason=downstream/closing/unresponsive" in gateway.wait_log("connection closed")
