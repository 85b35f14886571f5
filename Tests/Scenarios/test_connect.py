"""`sluice connect` in pipes, on WebSockets: input, output, how the connection ends, and exit codes."""

import asyncio
import json
import os
import signal
import subprocess
import threading

import pytest
from websockets.asyncio.server import serve

from support.connect import Connect, connect, events
from support.deadlines import eventually, seconds, sized
from support.gateway import run
from support.websocket import BINARY, CLOSE, PING, PONG, close_payload


@pytest.fixture
def client():
    """Starts clients in the background and kills them at the end of the test."""
    started = []

    def start(*arguments, **more):
        started.append(Connect(*arguments, **more))
        return started[-1]

    yield start
    trapped = [str(one) for one in started if one.trapped()]
    for one in started:
        one.kill()
    assert not trapped


@pytest.fixture
def connected(client, listener):
    """A client that connects to the test's listener, and our end of the connection."""
    def start(*words, **more):
        one = client(listener.url("ws", "/chat"), *words)
        return one, listener.accept_websocket(**more)
    return start


@pytest.fixture
def server():
    """A server of Python's websockets on its own thread; returns its URL."""
    stops = []

    def start(handler, **settings):
        ready, box = threading.Event(), {}

        async def main():
            box["loop"], box["stop"] = asyncio.get_running_loop(), asyncio.Event()
            async with serve(handler, "127.0.0.1", 0, **settings) as one:
                box["port"] = one.sockets[0].getsockname()[1]
                ready.set()
                await box["stop"].wait()

        thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        thread.start()
        assert ready.wait(seconds(10))
        stops.append((box, thread))
        return f"{'wss' if 'ssl' in settings else 'ws'}://localhost:{box['port']}/"

    yield start
    for box, thread in stops:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(seconds(10))


async def echo(connection):
    async for message in connection:
        await connection.send(message)


# -- lines and bytes

def test_each_line_is_a_text_message_and_each_message_a_line(connected):
    client, peer = connected()
    client.send("one\ntwo é\r\n\nlast").finish()
    for text in ["one", "two é", "", "last"]:
        peer.expect_text(text)
    peer.text("answer")
    peer.binary(b"bytes")
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert client.wait() == 0 and client.errors.all() == []
    assert client.output.all() == ["answer", "bytes"]


def test_slow_answers_are_awaited(server):
    async def slow(connection):
        async for message in connection:
            await asyncio.sleep(0.3)
            await connection.send(message)

    code, output, errors = connect(server(slow), text="a\nb\nc\n")
    assert (code, output, errors) == (0, b"a\nb\nc\n", "")


def test_pythons_websockets_echoes_many_lines(server):
    lines = "".join(f"line {number}\n" for number in range(sized(3000, 50_000)))
    code, output, errors = connect(server(echo), "--compress", text=lines, within=60)
    assert (code, errors) == (0, "") and output.decode() == lines


@pytest.mark.parametrize("words", [[], ["--compress"]], ids=["plain", "deflate"])
def test_binary_input_is_echoed_unchanged(server, words):
    data = os.urandom(sized(3 << 20, 64 << 20)) + b"tail without end of line"
    code, output, errors = connect(server(echo), "--binary", *words, text=data, within=60)
    assert (code, errors) == (0, "") and output == data


def test_lines_can_be_binary_messages(connected):
    client, peer = connected("--binary", "--lines")
    client.send(b"\xff\xfe\nsecond\n").finish()
    peer.expect_binary(b"\xff\xfe")
    peer.expect_binary(b"second")
    peer.binary(b"\x00")
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert client.wait() == 0 and client.output.all() == ["\x00"]


def test_one_sends_all_input_and_writes_one_answer(connected):
    client, peer = connected("--one", "--close-code", "4000", "--close-reason", "thanks")
    client.send("a question\nof two lines\n").finish()
    peer.expect_text("a question\nof two lines")
    peer.text("the answer")
    peer.text("another")
    got = peer.expect_close(4000)
    assert got.payload[2:] == b"thanks"
    peer.write(CLOSE, close_payload(4000))
    peer.expect_end_after_close()
    assert client.wait() == 0 and client.output.all() == ["the answer"]


def test_wait_none_leaves_the_close_to_the_peer(connected):
    client, peer = connected("--wait", "none")
    client.finish()
    peer.text("later")
    client.output.wait_for(lambda line: line == "later", "the message")
    peer.close_cleanly(1001)
    assert client.wait() == 0


# -- the opening handshake

def test_the_handshake_carries_headers_origin_and_subprotocols(client, listener, tmp_path):
    (tmp_path / "secret").write_text("Authorization: Bearer hidden\nX-Second: 2\n")
    one = client(listener.url("ws", "/a/b?c=d"), "-H", "X-Test: a b", "-H", f"@{tmp_path}/secret", "--header", "Host: other.test",
                 "--origin", "https://app.example", "--subprotocol", "v2", "--subprotocol", "v1", "--compress", "-v")
    peer = listener.accept_websocket(subprotocol="v1", extensions="permessage-deflate")
    asked = peer.request
    assert asked.start_line == "GET /a/b?c=d HTTP/1.1"
    assert [asked.header(name) for name in ("X-Test", "Authorization", "X-Second", "Host", "Origin", "Sec-WebSocket-Protocol")] == [
        "a b", "Bearer hidden", "2", "other.test", "https://app.example", "v2, v1"]
    assert asked.header("Sec-WebSocket-Extensions").startswith("permessage-deflate")
    peer.close_cleanly(1000, "done")
    assert one.wait() == 0
    reported = one.errors.all()
    assert all(line.startswith("* ") for line in reported)
    for words in ["subprotocol v1, extensions permessage-deflate", "HTTP/1.1 101 Switching Protocols", 'closed by the peer with 1000 "done"']:
        assert any(words in line for line in reported), reported


@pytest.mark.parametrize("status, fields, body, words", [
    ("404 Not Found", "", "no such room\nat all", ['404 Not Found: "no such room at all"', "check the path"]),
    ("401 Unauthorized", "", "", ["401 Unauthorized;", "Authorization"]),
    ("301 Moved", "Location: ws://elsewhere.test/\r\n", "", ["301 Moved", "ws://elsewhere.test/"]),
    ("307 Temporary Redirect", "Location: https://elsewhere.test/a\r\n", "", ["307 Temporary", "try wss://elsewhere.test/a instead"]),
    ("302 Found", "Location: http-docs/a\r\n", "", ["302 Found", "try http-docs/a instead"]),
    ("304 Not Modified", "", "", ["304 Not Modified", "run with -v"]),
    ("426 Upgrade Required", "Sec-WebSocket-Version: 8\r\n", "", ["426 Upgrade", "another version of WebSocket"]),
    ("503 Busy", "Retry-After: 7\r\n", "\x1b[31mred", ["503 Busy", "in 7 s", "\\u{1B}[31mred"])])
def test_a_refusal_exits_77_with_status_reason_and_body(client, listener, status, fields, body, words):
    one = client(listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    assert one.wait() == 77
    reported, = one.errors.all()
    assert reported.startswith("sluice: ws://") and all(word in reported for word in words), reported
    assert "\x1b" not in reported


def test_a_server_that_is_no_websocket_server_exits_77(client, listener):
    one = client(listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    peer.send(b"SSH-2.0-other\r\n\r\n")
    assert one.wait() == 77 and "tcp://" in one.errors.all()[0]


@pytest.mark.parametrize("answers", [False, True])
def test_a_handshake_timeout_exits_69(client, listener, answers):
    one = client(listener.url("ws", "/"), "--timeout", "200ms")
    peer = listener.accept() if answers else None
    assert one.wait(within=20) == 69 and "--timeout" in one.errors.all()[0]
    if peer:
        peer.close()


def test_wrong_usage_exits_64_and_names_the_option():
    code, output, errors = connect("ws://x", "-H", "A: b\r\nC: d")
    assert (code, output) == (64, b"") and errors.startswith("--header: "), errors


def test_a_missing_file_exits_78(tmp_path):
    code, _, errors = connect("wss://localhost:1", "--ca", tmp_path / "none.pem")
    assert code == 78 and "none.pem" in errors


# -- the end

@pytest.mark.parametrize("code, status", [(1000, 0), (1001, 0), (None, 0), (1011, 80), (4001, 80)])
def test_the_peers_code_decides_the_exit_code(connected, code, status):
    client, peer = connected()
    peer.text("before")
    client.output.wait_for(lambda line: line == "before", "the message")
    peer.close_cleanly(code, "why not" if code else b"")
    assert client.wait() == status
    assert client.errors.all() == (['sluice: the peer closed with %d "why not"' % code] if status else [])


@pytest.mark.parametrize("words", [[], ["--wait", "0s"]], ids=["standard", "at once"])
def test_a_close_with_the_101_counts_as_the_peers(connected, words):
    client, peer = connected(*words, then=b"\x88\x02\x03\xf3")
    client.send("x\n").finish()
    assert client.wait() == 80
    assert client.errors.all() == ["sluice: the peer closed with 1011"]


@pytest.mark.parametrize("way", ["finish", "reset", "violation", "too long"])
def test_an_unclean_end_exits_76(connected, way):
    client, peer = connected("--max-message-size", "100")
    if way == "violation":
        peer.write(0x3, b"")
    elif way == "too long":
        peer.text("x" * 101)
    else:
        peer.finish_sending() if way == "finish" else peer.reset()
    assert client.wait() == 76 and len(client.errors.all()) == 1
    assert way != "too long" or "--max-message-size" in client.errors.all()[0]


def test_a_peer_that_does_not_answer_the_close_exits_76(connected):
    client, peer = connected()
    client.send("x\n").finish()
    peer.expect_text("x")
    # The client's Close is not answered.
    peer.expect_close(1000)
    assert client.wait() == 76


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_starts_the_closing_handshake(connected, number):
    client, peer = connected("--close-reason", "bye")
    client.send("x\n")
    peer.expect_text("x")
    client.signal(number)
    assert peer.expect_close(1000).payload[2:] == b"bye"
    peer.text("still heard")
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert client.wait() == 0 and client.output.all() == ["still heard"]


def test_a_second_signal_exits_at_once(connected):
    client, peer = connected()
    client.send("x\n")
    peer.expect_text("x")
    client.signal(signal.SIGINT)
    peer.expect_close(1000)
    client.signal(signal.SIGINT)
    # One that waited for the answer to its Close would exit with 76.
    assert client.wait() == 130


def test_a_signal_during_the_handshake_exits_at_once(client, listener):
    one = client(listener.url("ws", "/"))
    peer, _ = listener.accept_request()
    one.signal(signal.SIGINT)
    assert one.wait(within=20) == 130
    peer.expect_any_end()


def test_an_input_above_the_message_limit_exits_65_and_closes_the_connection(connected):
    client, peer = connected("--max-message-size", "10", "--one")
    client.send(b"x" * 100_000)
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert client.wait() == 65 and "--max-message-size" in client.errors.all()[0]


def test_a_closed_output_exits_74(client, listener):
    ours, theirs = os.pipe()
    one = client(listener.url("ws", "/"), output=theirs)
    os.close(theirs)
    os.close(ours)
    peer = listener.accept_websocket()
    peer.text("unread")
    peer.expect_close(1000)
    peer.write(CLOSE, close_payload(1000))
    peer.expect_end_after_close()
    assert one.wait() == 74


# -- pings

def test_a_server_that_answers_no_ping_is_disconnected_at_the_pong_timeout(connected):
    client, peer = connected("--ping-interval", "1s", "--pong-timeout", "1s")
    peer.expect_pings_then_any_end()
    assert client.wait() != 0


def test_pings_are_sent_and_answered(connected):
    client, peer = connected("--ping-interval", "1s")
    peer.write(PING, b"are you there")
    peer.expect_pong(b"are you there")
    got = peer.read()
    assert got.opcode == PING
    peer.write(PONG, got.payload)
    peer.close_cleanly()
    assert client.wait() == 0


# -- events

def test_json_reports_every_event(connected):
    client, peer = connected("--json", "--subprotocol", "v1", subprotocol="v1")
    client.send("question\n")
    peer.expect_text("question")
    peer.text('an "answer"')
    peer.binary(b"\x00\xff")
    peer.close_cleanly(4001, "enough")
    assert client.wait() == 80
    reported = events("\n".join(client.output.all()))
    assert [one["event"] for one in reported] == ["opened", "text", "data", "closed", "failed"]
    opened, text, data, closed, failed = reported
    assert (opened["status"], opened["subprotocol"], opened["peerAddress"].split(":")[0]) == (101, "v1", "127.0.0.1")
    assert text["text"] == 'an "answer"' and data["data"] == "AP8="
    assert (closed["by"], closed["code"], closed["reason"], closed["sentBytes"]) == ("peer", 4001, "enough", 8)
    assert failed["kind"] == "closed-with-code" and all(one["at"].endswith("Z") for one in reported)


def test_json_reports_a_refusal(client, listener):
    one = client(listener.url("ws", "/"), "--json", "--quiet")
    peer, _ = listener.accept_request()
    peer.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    assert one.wait() == 77
    failed = json.loads(one.output.all()[-1])
    assert (failed["event"], failed["kind"], failed["status"]) == ("failed", "refused", 403) and "--origin" in failed["remedy"]


# -- backpressure

def test_unread_output_stops_reading_from_the_peer(client, listener):
    ours, theirs = os.pipe()
    one = client(listener.url("ws", "/"), "--binary", "--max-message-size", "64KiB", output=theirs)
    os.close(theirs)
    peer = listener.accept_websocket()
    piece, sent = bytes(65536), 0
    peer.socket.settimeout(seconds(1.5))
    with pytest.raises(TimeoutError):
        while sent < 256 << 20:
            peer.socket.sendall(peer.frame(BINARY, piece))
            sent += len(piece)
    assert sent < 64 << 20 and one.memory() < 128 << 20
    # Once the output is read, the transfer continues without loss.
    read = 0
    while read < sent:
        read += len(os.read(ours, 65536))
    os.close(ours)


def test_a_peer_that_does_not_read_stops_reading_of_input(connected):
    client, peer = connected("--binary")
    os.set_blocking(client.process.stdin.fileno(), False)
    taken = 0
    def is_stuck():
        nonlocal taken
        try:
            while taken < 256 << 20:
                taken += os.write(client.process.stdin.fileno(), bytes(65536))
        except BlockingIOError:
            before = taken
            return not wrote_more(client, before)
        raise AssertionError("all of the input was read")

    def wrote_more(client, before):
        nonlocal taken
        threading.Event().wait(seconds(0.5))
        try:
            taken += os.write(client.process.stdin.fileno(), bytes(65536))
        except BlockingIOError:
            pass
        return taken > before

    eventually(is_stuck, "standard input that is not read any more", within=20)
    assert client.memory() < 128 << 20
    total = 0
    while total < min(taken, 2 << 20):
        total += len(peer.read_message()[1])


# -- completion scripts

# The completions of each shell after `sluice con` once it has read the script; zsh reports only whether it can read it.
COMPLETIONS = {
    "bash": 'source "$0"; COMP_WORDS=(sluice con) COMP_CWORD=1 COMP_LINE="sluice con" COMP_POINT=10; _sluice; echo "${COMPREPLY[@]}"',
    "fish": 'source $argv[1]; complete -C "sluice con"; complete -C "sluice connect --startt"',
    "zsh": 'autoload -U compinit; compinit -D; source "$0"; whence -w _sluice',
}


@pytest.mark.parametrize("shell, offered", [("bash", ["connect"]), ("fish", ["connect", "--starttls"]), ("zsh", ["_sluice: function"])])
def test_completion_scripts_know_the_commands(tmp_path, shell, offered):
    made = run("--generate-completion-script", shell)
    assert made.returncode == 0 and all(word in made.stdout for word in ("connect", "bridge", "starttls", "close-code"))
    file = tmp_path / "completion"
    file.write_text(made.stdout)
    words = {"bash": ["bash", "--norc"], "fish": ["fish", "--no-config"], "zsh": ["zsh", "-f"]}[shell]
    got = subprocess.run([*words, "-c", COMPLETIONS[shell], str(file)], capture_output=True, text=True, timeout=seconds(20),
                         stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(tmp_path)})
    assert all(word in got.stdout for word in offered), got
