"""RFC 6455 §8.1 in both roles: text is valid UTF-8, and the connection fails at the first byte that is not."""

import pytest

from support.websocket import CLOSE, CONTINUATION, PING, TEXT

INVALID = 1007

# Named after their content; the sections of Markus Kuhn's decoder stress test.
VALID = {
    "ascii": "48656c6c6f",
    "greek": "cebae1bdb9cf83cebcceb5",
    "first of 1 byte": "00", "first of 2 bytes": "c280", "first of 3 bytes": "e0a080", "first of 4 bytes": "f0908080",
    "last of 1 byte": "7f", "last of 2 bytes": "dfbf", "last of 3 bytes": "efbfbf", "last of 4 bytes": "f48fbfbf",
    "before the surrogates": "ed9fbf", "after the surrogates": "ee8080", "replacement character": "efbfbd",
    "noncharacter FFFE": "efbfbe", "noncharacter FFFF": "efbfbf", "noncharacter 1FFFE": "f09fbfbe",
    "noncharacter 10FFFF": "f48fbfbf", "byte order mark": "efbbbf", "mixed": "68c3a96cc3b820f09f9880",
}
REFUSED = {
    "lonely continuation 80": "80", "lonely continuation bf": "bf", "two continuations": "80bf", "seven continuations": "80bf80bf80bf80",
    "all continuations": bytes(range(0x80, 0xC0)).hex(),
    "2-byte starts with spaces": "".join(f"{byte:02x}20" for byte in range(0xC0, 0xE0)),
    "3-byte starts with spaces": "".join(f"{byte:02x}20" for byte in range(0xE0, 0xF0)),
    "4-byte starts with spaces": "".join(f"{byte:02x}20" for byte in range(0xF0, 0xF8)),
    "5-byte start": "f888808080", "6-byte start": "fc8480808080", "fe": "fe", "ff": "ff", "fe fe ff ff": "fefeffff",
    "last byte of 2 missing": "c0", "last byte of 3 missing": "e080", "last byte of 4 missing": "f08080",
    "cut 2 of df": "df", "cut 3 of efbf": "efbf", "cut 4 of f48fbf": "f48fbf",
    "overlong slash in 2": "c0af", "overlong slash in 3": "e080af", "overlong slash in 4": "f08080af",
    "overlong slash in 5": "f8808080af", "overlong slash in 6": "fc80808080af",
    "largest overlong in 2": "c1bf", "largest overlong in 3": "e09fbf", "largest overlong in 4": "f08fbfbf",
    "overlong zero in 2": "c080", "overlong zero in 3": "e08080", "overlong zero in 4": "f0808080",
    "surrogate D800": "eda080", "surrogate DB7F": "edadbf", "surrogate DB80": "edae80", "surrogate DBFF": "edafbf",
    "surrogate DC00": "edb080", "surrogate DF80": "edbe80", "surrogate DFFF": "edbfbf", "surrogate pair": "eda080edb080",
    "110000": "f4908080", "1FFFFF": "f7bfbfbf", "start in place of a continuation": "e2e2", "c3 28": "c328",
    "f5": "f5808080",
}


def table(entries):
    return pytest.mark.parametrize("payload", [bytes.fromhex(text) for text in entries.values()], ids=list(entries))


@table(VALID)
def test_valid_text_is_echoed(peer, payload):
    peer.write(TEXT, payload)
    peer.expect_text(payload)
    peer.close_cleanly()


@table(VALID)
def test_valid_text_is_echoed_however_it_is_fragmented(peer, payload):
    frames = [peer.frame(TEXT, b"", fin=False), *(peer.frame(CONTINUATION, bytes([byte]), fin=False) for byte in payload), peer.frame(CONTINUATION)]
    peer.send(b"".join(frames))
    peer.expect_text(payload)
    peer.send_slowly(b"".join(frames))
    peer.expect_text(payload)
    peer.close_cleanly()


@table(REFUSED)
def test_invalid_text_fails_the_connection(peer, payload):
    peer.write(TEXT, payload)
    peer.expect_failure(INVALID)


@table(REFUSED)
def test_invalid_text_after_valid_text_fails_the_connection(peer, payload):
    peer.write(TEXT, b"Hello " * 20 + payload)
    peer.expect_failure(INVALID)


@table(REFUSED)
def test_invalid_text_in_one_byte_fragments_fails_the_connection(peer, payload):
    frames = [peer.frame(TEXT, b"", fin=False), *(peer.frame(CONTINUATION, bytes([byte]), fin=False) for byte in payload), peer.frame(CONTINUATION)]
    try:
        peer.send(b"".join(frames))
    except AssertionError:
        pass
    expect_failure_after_fragments(peer)


def expect_failure_after_fragments(peer):
    """The Close may follow fragments that were valid when they were forwarded."""
    got = peer.read()
    while got.opcode != CLOSE:
        assert not got.fin, f"the message came back: {got}"
        got = peer.read()
    assert got.code == INVALID, got
    peer.expect_any_end()


# -- failing at the first bad byte, not at the end of the message: the tests send nothing more before the Close

# "κόσμε" and then a surrogate, in which ed is still valid and a0 is not.
POSSIBLE, IMPOSSIBLE = bytes.fromhex("cebae1bdb9cf83cebcceb5ed"), bytes.fromhex("a0")
# And then a code point above 10FFFF, in which f4 is still valid and 90 is not.
POSSIBLE_4, IMPOSSIBLE_4 = bytes.fromhex("cebae1bdb9cf83cebcceb5f4"), bytes.fromhex("90")


@pytest.mark.parametrize("good, bad", [(POSSIBLE, IMPOSSIBLE), (POSSIBLE_4, IMPOSSIBLE_4)])
def test_the_first_bad_byte_of_a_fragment_fails_the_connection(peer, good, bad):
    peer.send(peer.frame(TEXT, good, fin=False))
    peer.write(PING, b"still here")
    got = peer.read()
    while got.opcode in (TEXT, CONTINUATION):
        got = peer.read()
    assert got.payload == b"still here", got
    peer.send(peer.frame(CONTINUATION, bad, fin=False))
    expect_failure_after_fragments(peer)


@pytest.mark.parametrize("good, bad", [(POSSIBLE, IMPOSSIBLE), (POSSIBLE_4, IMPOSSIBLE_4)])
def test_the_first_bad_byte_within_a_frame_fails_the_connection(peer, good, bad):
    whole = peer.frame(TEXT, good + bad + b"never sent" * 100)
    # Everything up to the bad byte, then the bad byte, and no further.
    end = len(whole) - len(b"never sent" * 100)
    peer.send(whole[:end - 1])
    peer.send(whole[end - 1:end])
    expect_failure_after_fragments(peer)


def test_an_incomplete_character_at_the_end_of_a_message_fails_the_connection(peer):
    peer.send(peer.frame(TEXT, bytes.fromhex("e282"), fin=False) + peer.frame(CONTINUATION))
    expect_failure_after_fragments(peer)


def test_binary_messages_are_not_validated(peer):
    for text in REFUSED.values():
        peer.binary(bytes.fromhex(text))
        peer.expect_binary(bytes.fromhex(text))
    peer.close_cleanly()


def test_a_bad_byte_at_the_end_of_long_text_fails_the_connection(peer):
    peer.write(TEXT, "é".encode() * 100_000 + b"\xff")
    peer.expect_failure(INVALID)


def test_text_of_every_plane_is_echoed(peer):
    text = "".join(chr(point) for point in range(0, 0x110000, 97) if not 0xD800 <= point <= 0xDFFF)
    peer.text(text)
    peer.expect_text(text)
    peer.close_cleanly()
