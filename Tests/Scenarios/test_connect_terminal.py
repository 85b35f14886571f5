"""`sluice connect` at a terminal: the line editor, commands, output, and the restored terminal."""

import signal

import pytest

from support.connect import Terminal
from support.gateway import BINARY
from support.programs import refusing_port
from support.websocket import CLOSE, PING, PONG, close_payload


@pytest.fixture
def terminal(listener):
    """A connected client at a terminal, and our end of the connection."""
    started = []

    def start(*words, kind="ws", **more):
        one = Terminal(listener.url(kind, "/chat" if kind == "ws" else ""), *words, **more)
        started.append(one)
        peer = listener.accept_websocket() if kind == "ws" else listener.accept()
        one.wait_for("connected to").wait_raw()
        return one, peer

    yield start
    for one in started:
        one.close()


def end(one, peer, code=1000):
    """The user leaves with Ctrl-D."""
    one.type("\x04")
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(code))
    peer.expect_end_after_close()
    assert one.wait() == 0


def test_messages_are_typed_and_shown(terminal):
    one, peer = terminal("--wait", "0s")
    one.type("hello\r")
    peer.expect_text("hello")
    peer.text("good day")
    one.wait_for("< good day")
    peer.binary(b"\x00\xff")
    one.wait_for(r"< \(2 bytes\) 00 ff")
    end(one, peer)
    assert one.restored() and "closed by us with 1000" in one.text


@pytest.mark.parametrize("keys, line", [("helo\x1b[Dl 漢字é\x7f\r", "hell 漢字o"), ("x" * 300 + "\x01y\r", "y" + "x" * 300)])
def test_the_line_is_edited(terminal, keys, line):
    one, peer = terminal(columns=40)
    one.type(keys)
    peer.expect_text(line)


def test_a_received_message_keeps_the_line_being_typed(terminal):
    one, peer = terminal()
    one.type("half")
    one.wait_for("half")
    peer.text("in between")
    one.wait_for(r"< in between\r?\n\r?> half")
    one.type(" whole\r")
    peer.expect_text("half whole")


def test_received_control_characters_are_escaped(terminal):
    one, peer = terminal()
    peer.text("\x1b]0;title\x07\x1b[2Jred")
    one.wait_for(r"< \\u\{1B\}\]0;title\\u\{7\}\\u\{1B\}\[2Jred")
    assert b"\x1b]0" not in one.shown and b"\x1b[2J" not in one.shown


def test_slash_commands_act_on_the_connection(terminal):
    one, peer = terminal()
    one.type("/ping hi\r")
    got = peer.read()
    assert (got.opcode, got.payload) == (PING, b"hi")
    peer.write(PONG, b"hi")
    one.wait_for(r'pong "hi" after [0-9.]+ ms')
    one.type("/binary 00 ff\r")
    peer.expect_binary(b"\x00\xff")
    one.type("//slash\r")
    peer.expect_text("/slash")
    one.type("/nonsense\r").wait_for("unknown command /nonsense; known: /ping")
    one.type("/help\r").wait_for(r"/close \[CODE \[REASON\]\]")
    one.type("/status\r").wait_for("bytes received, 8 sent")
    one.type("/close 4001 see you\r")
    assert peer.expect_close(4001).payload[2:] == b"see you"
    peer.write(CLOSE, close_payload(4001))
    peer.expect_end_after_close()
    assert one.wait() == 0 and one.restored()


@pytest.mark.parametrize("code, status", [(1000, 0), (4002, 80)])
def test_the_peers_close_is_shown_and_the_terminal_restored(terminal, code, status):
    one, peer = terminal()
    one.type("unfinished")
    one.wait_for("unfinished")
    peer.close_cleanly(code, "good bye")
    assert one.wait() == status
    assert one.restored() and f'closed by the peer with {code} "good bye"' in one.text


def test_ctrl_c_closes_and_a_second_ctrl_c_exits_at_once(terminal):
    one, peer = terminal()
    one.type("\x03")
    peer.expect_close(1000)
    one.type("\x03")
    # One that waited for the answer to its Close would exit with 76.
    assert one.wait() == 130 and one.restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_closes_and_restores_the_terminal(terminal, number):
    one, peer = terminal()
    one.process.send_signal(number)
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert one.wait() == 0 and one.restored()


def test_ctrl_z_suspends_and_fg_resumes_with_the_typed_line(listener):
    one = Terminal(program=["bash", "--norc", "--noprofile", "-i"], environment={"PS1": "SHELL$ ", "SLUICE": str(BINARY)})
    try:
        one.wait_for(r"SHELL\$ ").type(f"$SLUICE connect {listener.url('ws', '/')}\n")
        peer = listener.accept_websocket()
        one.wait_for("connected to")
        one.type("kept").wait_for("> kept")
        one.type("\x1a").wait_for(r"Stopped.*\n.*SHELL\$ ")
        one.type("stty -a; fg\n").wait_for(r" icanon .*> kept\r*$")
        one.type("!\r")
        peer.expect_text("kept!")
        peer.close_cleanly()
        one.wait_for(r"closed by the peer with 1000.*SHELL\$ ")
    finally:
        one.close()


def test_close_is_sent_after_the_lines_typed_before_it(terminal):
    one, peer = terminal()
    one.type("x\r" * 20 + "/close 3000\r")
    for _ in range(20):
        peer.expect_text("x")
    peer.expect_close(3000)
    peer.write(CLOSE, close_payload(3000))
    peer.expect_end_after_close()
    assert one.wait() == 0


@pytest.mark.parametrize("environment, colored", [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_no_color_disables_colours(terminal, environment, colored):
    one, peer = terminal(environment=environment)
    peer.text("hello")
    one.wait_for("< hello")
    assert (b"\x1b[32m< \x1b[0m" in one.shown) == colored
    assert colored or b"m" not in b"".join(part[:4] for part in one.shown.split(b"\x1b[")[1:] if part[:1].isdigit() and b"m" in part[:3])


def test_a_dumb_terminal_is_used_like_a_pipe(listener):
    one = Terminal(listener.url("ws", "/"), environment={"TERM": "dumb"})
    try:
        peer = listener.accept_websocket()
        one.type("plain\n")
        peer.expect_text("plain")
        assert not one.is_raw()
        peer.text("answer")
        one.wait_for("answer")
        peer.close_cleanly()
        assert one.wait() == 0 and one.restored()
    finally:
        one.close()


def test_a_stream_is_used_at_a_terminal(terminal):
    one, peer = terminal("--crlf", kind="tcp")
    peer.send(b"220 ready\r\n")
    one.wait_for("< 220 ready")
    assert "\\u{D}" not in one.text
    one.type("NOOP\r")
    assert peer.receive(6) == b"NOOP\r\n"
    one.type("/ping\r").wait_for("no pong: Ping is only available on a WebSocket")
    peer.close()
    assert one.wait() == 0 and one.restored()


def test_a_refused_connection_leaves_the_terminal_unchanged():
    with refusing_port() as port:
        one = Terminal(f"ws://127.0.0.1:{port}/")
        try:
            assert one.wait() == 69 and one.restored()
            assert "connection refused" in one.text
        finally:
            one.close()
