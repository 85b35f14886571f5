"""RFC 6455 §7 in both roles: the closing handshake, its codes and its reasons."""

import pytest

from support import websocket
from support.websocket import CLOSE, CONTINUATION, PING, TEXT, close_payload


def test_a_close_is_answered_with_its_code_and_the_stream_ends(peer):
    peer.close_cleanly(1000)


def test_a_close_without_code_is_answered_without_code(peer):
    peer.close_cleanly(None)


def test_a_message_before_the_close_is_echoed_first(peer):
    peer.send(peer.frame(TEXT, "last words") + peer.frame(CLOSE, close_payload(1000)))
    peer.expect_text("last words")
    peer.expect_close(1000)
    peer.expect_end_after_close()


def test_a_second_close_is_not_answered(peer):
    peer.send(peer.frame(CLOSE, close_payload(1000)) * 2)
    peer.expect_close(1000)
    if not peer.masks:
        peer.finish_sending()
    peer.expect_any_end()


@pytest.mark.parametrize("after", [(TEXT, "late"), (PING, ""), (CONTINUATION, "late"), None])
def test_frames_after_a_close_are_not_answered(peer, after):
    peer.send(peer.frame(CLOSE, close_payload(1000)))
    peer.expect_close(1000)
    try:
        peer.send(peer.frame(*after) if after else b"\xff" * 64)
        if not peer.masks:
            peer.finish_sending()
    except (AssertionError, OSError):
        pass
    peer.expect_any_end()


@pytest.mark.parametrize("payload", [b"\x03", b"\x00"])
def test_a_close_payload_of_one_byte_is_refused(peer, payload):
    peer.write(CLOSE, payload)
    peer.expect_failure(1002)


@pytest.mark.parametrize("reason", ["", "Hello World!", "*" * 123, "κόσμε", "\U0001F600" * 30])
def test_a_close_reason_of_up_to_123_bytes_is_accepted(peer, reason):
    peer.close_cleanly(1000, reason)


def test_a_close_reason_of_124_bytes_is_refused(peer):
    peer.send(peer.frame(CLOSE, close_payload(1000, "*" * 124)))
    peer.expect_failure(1002)


@pytest.mark.parametrize("reason", [b"\xff", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64", b"cut \xe2\x82"])
def test_a_close_reason_that_is_not_utf8_is_refused(peer, reason):
    peer.write(CLOSE, close_payload(1000, reason))
    peer.expect_failure(1007)


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])
@pytest.mark.parametrize("reason", ["", "reason"])
def test_an_allowed_close_code_is_answered(peer, code, reason):
    peer.close_cleanly(code, reason)


@pytest.mark.parametrize(
    "code", [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1017, 1099, 1100, 1999, 2000, 2999, 5000, 10000, 65535])
@pytest.mark.parametrize("reason", ["", "reason"])
def test_a_reserved_close_code_is_refused(peer, code, reason):
    peer.write(CLOSE, close_payload(code, reason))
    peer.expect_failure(1002)


def test_a_client_that_ends_without_close_releases_its_descriptors(echo):
    before = echo.descriptors()
    client = websocket.connect(echo.address(), "/echo")
    client.close()
    echo.settle(before)


def test_a_client_that_resets_releases_its_descriptors(echo):
    before = echo.descriptors()
    client = websocket.connect(echo.address(), "/echo")
    client.reset()
    echo.settle(before)


def test_a_peer_that_half_closes_after_its_close_receives_the_close(peer):
    peer.send(peer.frame(CLOSE, close_payload(1000)))
    peer.finish_sending()
    peer.expect_close(1000)
    peer.expect_end()
