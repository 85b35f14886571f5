"""`sluice attach`: standard input and output as the other end of a connection that the gateway keeps."""

import json
import os
import signal
import threading

import pytest
import websockets.sync.server

from support.client import Client
from support.configured import Configured
from support.connect import Terminal
from support.deadlines import Lines, eventually, seconds
from support.gateway import BINARY


@pytest.fixture
def configured(sluice, tmp_path):
    return Configured(sluice, tmp_path)


@pytest.fixture
def control(configured):
    return configured.control


@pytest.fixture
def client(control):
    return Client(control.url)


@pytest.fixture
def echo(configured):
    return f"ws://127.0.0.1:{configured.gateway.port()}/echo"


class Attached:
    """One running `sluice attach`."""

    def __init__(self, client, *arguments):
        self.process = client.start("attach", *arguments)
        self.output = Lines(self.process.stdout)
        self.errors = Lines(self.process.stderr)

    def say(self, data):
        self.process.stdin.write(data.encode() if isinstance(data, str) else data)
        self.process.stdin.flush()
        return self

    def hear(self, text):
        self.output.wait_for(lambda line: line == text, text)
        return self

    def finish(self):
        self.process.stdin.close()
        return self

    def ends(self, code):
        assert self.process.wait(seconds(20)) == code, self.errors.all()
        self.errors.wait_for_end()
        lines = self.errors.all()
        assert len(lines) == (0 if code == 0 else 1), lines
        return lines[0] if lines else ""


@pytest.fixture
def attach(client):
    started = []

    def start(*arguments):
        one = Attached(client, *arguments)
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


# -- WebSockets

def test_lines_are_messages_of_a_websocket_that_goes_on_without_us(control, client, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--wait", "0s")
    for text in ("grüße", "a second one"):
        attached.say(text + "\n").hear(text)
    attached.finish().ends(0)
    assert control.show(name)["state"] == "open"
    client("send", name, "later")
    assert client("receive", name) == "later\n"


def test_bytes_are_binary_messages_where_that_is_wanted(control, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--binary", "--wait", "0s").say(b"\xff\x00one\n")
    attached.output.wait_for(lambda line: line.endswith("one"), "what was sent")
    attached.finish().ends(0)
    assert control.show(name)["sentMessages"] == 1


def test_what_is_no_text_is_no_message(control, client, echo):
    name = control.open(echo)
    assert "--binary" in client.run("attach", name, text=b"\xff\n").failed(65)
    assert control.show(name)["state"] == "open"


def test_the_code_of_the_peer_is_told(control, attach):
    def once(socket):
        socket.recv()
        socket.send("enough")
        socket.close(4001, "no more")

    with websockets.sync.server.serve(once, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = control.open(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/")
        attached = attach(name).say("hello\n").hear("enough")
        line = attached.ends(80)
        assert "4001" in line and "no more" in line
        server.shutdown()


def test_every_event_is_a_line_of_json(control, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--json", "--wait", "0s").say("hello\n")
    attached.output.wait_for(lambda line: json.loads(line)["event"] == "text", "the message")
    attached.finish().ends(0)
    attached.output.wait_for_end()
    events = [json.loads(line) for line in attached.output.all()]
    assert [one["event"] for one in events] == ["opened", "text", "detached"], "the connection goes on"
    assert events[0]["url"] == echo and events[1]["text"] == "hello"
    assert (events[2]["receivedBytes"], events[2]["sentBytes"]) == (5, 5)


# -- streams

def test_the_end_of_the_input_ends_our_half_of_a_stream(control, client, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    question, answer = os.urandom(3 << 20), os.urandom(3 << 20)
    process = client.start("attach", name)
    heard = []
    speaker = threading.Thread(target=lambda: heard.append(process.communicate(question, timeout=seconds(30))), daemon=True)
    speaker.start()
    assert peer.receive_all() == question
    peer.send(answer)
    peer.close()
    speaker.join(seconds(30))
    assert heard and heard[0] == (answer, b"") and process.returncode == 0
    assert control.closed(name)["sentBytes"] == len(question)


def test_a_stream_may_be_left_open(control, client, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    assert client("attach", name, "--keep", "--wait", "0s", text="ping\n") == ""
    assert peer.receive(5) == b"ping\n"
    assert client("attach", name, "--keep", "--crlf", "--wait", "0s", text="QUIT\n") == ""
    assert peer.receive(6) == b"QUIT\r\n"
    control.send(name, "pong\n")
    assert peer.receive(5) == b"pong\n"


def test_ctrl_c_lets_go_of_a_stream_that_goes_on(control, attach, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    attached = attach(name).say("one\n")
    assert peer.receive(4) == b"one\n"
    attached.process.send_signal(signal.SIGINT)
    attached.ends(0)
    control.send(name, "two\n")
    assert peer.receive(4) == b"two\n"
    peer.send(b"three\n")
    assert control.receive(name) == b"three\n"


def test_who_lets_go_is_not_told_that_it_closed(control, client, echo):
    name = control.open(echo)
    terminal = Terminal(program=[str(BINARY), "attach", name, "--control", control.url])
    terminal.wait_for("connected").type("\x03")
    terminal.wait_for(f"detached from {name}, which stays open")
    assert terminal.process.wait(timeout=seconds(10)) == 0 and "closed" not in terminal.text
    assert control.show(name)["state"] == "open"


@pytest.mark.parametrize("finishes", [False, True])
def test_a_reset_is_no_end_in_order(control, attach, listener, finishes):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    attached = attach(name)
    peer.send(b"half a li\n")
    attached.hear("half a li")
    if finishes:
        attached.finish()
        peer.expect_end()
    peer.reset()
    assert f"sluice show {name}" in attached.ends(76)


# -- what cannot be

def test_who_cannot_attach_is_told_why_and_what_to_do(control, client, attach, echo, listener):
    assert "4711" in client.run("attach", "4711").failed(66)
    name = control.open(echo)
    accepted = next(one["id"] for one in control.list() if one["direction"] == "accepted")
    assert "sluice tap" in client.run("attach", accepted).failed(81)
    assert "--crlf" in client.run("attach", name, "--crlf").failed(64)
    first = attach(name, "--wait", "0s").say("mine\n").hear("mine")
    line = client.run("attach", name).failed(81)
    assert "another client" in line and f"sluice tap {name}" in line
    first.finish().ends(0)
    control.close(name)
    control.closed(name)
    assert "sluice show" in client.run("attach", name).failed(66)
    assert "sluice serve" in Client("127.0.0.1:1").run("attach", name).failed(69)
    assert Client("127.0.0.1:1").run("attach", name, "--wait", "soon").code == 64


# -- at a terminal

def test_a_person_talks_on_a_connection_of_the_gateway(control, echo):
    name = control.open(echo)
    terminal = Terminal("attach", name, "--control", control.url, program=[str(BINARY)])
    try:
        terminal.wait_for("connected to").wait_raw()
        terminal.type("hello\r").wait_for("< hello")
        terminal.type("/ping\r").wait_for(r"pong after [\d.]+ ms")
        terminal.type("\x03")
        assert terminal.wait() == 0
        assert terminal.restored()
    finally:
        terminal.close()
    assert control.show(name)["state"] == "open"
    eventually(lambda: control.verb(name, "ping").status == 200, "it goes on")
