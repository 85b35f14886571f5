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

    def send_input(self, data):
        self.process.stdin.write(data.encode() if isinstance(data, str) else data)
        self.process.stdin.flush()
        return self

    def expect_line(self, text):
        self.output.wait_for(lambda line: line == text, text)
        return self

    def end_input(self):
        self.process.stdin.close()
        return self

    def expect_exit(self, code):
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

def test_each_line_is_a_message_and_the_websocket_stays_open(control, client, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--wait", "0s")
    for text in ("grüße", "a second one"):
        attached.send_input(text + "\n").expect_line(text)
    attached.end_input().expect_exit(0)
    assert control.show(name)["state"] == "open"
    client("send", name, "later")
    assert client("receive", name) == "later\n"


def test_binary_option_sends_binary_messages(control, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--binary", "--wait", "0s").send_input(b"\xff\x00one\n")
    attached.output.wait_for(lambda line: line.endswith("one"), "the echo")
    attached.end_input().expect_exit(0)
    assert control.show(name)["sentMessages"] == 1


def test_input_that_is_not_utf8_is_refused(control, client, echo):
    name = control.open(echo)
    assert "--binary" in client.run("attach", name, text=b"\xff\n").failed(65)
    assert control.show(name)["state"] == "open"


def test_the_peers_close_code_is_reported(control, attach):
    def once(socket):
        socket.recv()
        socket.send("enough")
        socket.close(4001, "no more")

    with websockets.sync.server.serve(once, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = control.open(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/")
        attached = attach(name).send_input("hello\n").expect_line("enough")
        line = attached.expect_exit(80)
        assert "4001" in line and "no more" in line
        server.shutdown()


def test_json_writes_a_line_for_each_event(control, attach, echo):
    name = control.open(echo)
    attached = attach(name, "--json", "--wait", "0s").send_input("hello\n")
    attached.output.wait_for(lambda line: json.loads(line)["event"] == "text", "the message")
    attached.end_input().expect_exit(0)
    attached.output.wait_for_end()
    events = [json.loads(line) for line in attached.output.all()]
    assert [one["event"] for one in events] == ["opened", "text", "detached"], "the connection stays open"
    assert events[0]["url"] == echo and events[1]["text"] == "hello"
    assert (events[2]["receivedBytes"], events[2]["sentBytes"]) == (5, 5)


# -- streams

def test_the_end_of_input_half_closes_a_stream(control, client, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    question, answer = os.urandom(3 << 20), os.urandom(3 << 20)
    process = client.start("attach", name)
    results = []
    speaker = threading.Thread(target=lambda: results.append(process.communicate(question, timeout=seconds(30))), daemon=True)
    speaker.start()
    assert peer.receive_all() == question
    peer.send(answer)
    peer.close()
    speaker.join(seconds(30))
    assert results and results[0] == (answer, b"") and process.returncode == 0
    assert control.closed(name)["sentBytes"] == len(question)


def test_keep_leaves_a_stream_open(control, client, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    assert client("attach", name, "--keep", "--wait", "0s", text="ping\n") == ""
    assert peer.receive(5) == b"ping\n"
    assert client("attach", name, "--keep", "--crlf", "--wait", "0s", text="QUIT\n") == ""
    assert peer.receive(6) == b"QUIT\r\n"
    control.send(name, "pong\n")
    assert peer.receive(5) == b"pong\n"


def test_ctrl_c_detaches_and_the_stream_stays_open(control, attach, listener):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    attached = attach(name).send_input("one\n")
    assert peer.receive(4) == b"one\n"
    attached.process.send_signal(signal.SIGINT)
    attached.expect_exit(0)
    control.send(name, "two\n")
    assert peer.receive(4) == b"two\n"
    peer.send(b"three\n")
    assert control.receive(name) == b"three\n"


def test_detaching_is_not_reported_as_a_close(control, client, echo):
    name = control.open(echo)
    terminal = Terminal(program=[str(BINARY), "attach", name, "--control", control.url])
    terminal.wait_for("connected").type("\x03")
    terminal.wait_for(f"detached from {name}, which stays open")
    assert terminal.process.wait(timeout=seconds(10)) == 0 and "closed" not in terminal.text
    assert control.show(name)["state"] == "open"


@pytest.mark.parametrize("finishes", [False, True])
def test_a_reset_is_reported_as_a_failure(control, attach, listener, finishes):
    name = control.open(listener.url("tcp"))
    peer = listener.accept()
    attached = attach(name)
    peer.send(b"half a li\n")
    attached.expect_line("half a li")
    if finishes:
        attached.end_input()
        peer.expect_end()
    peer.reset()
    assert f"sluice show {name}" in attached.expect_exit(76)


# -- refusals

def test_a_refused_attach_states_reason_and_remedy(control, client, attach, echo, listener):
    assert "4711" in client.run("attach", "4711").failed(66)
    name = control.open(echo)
    accepted = next(one["id"] for one in control.list() if one["direction"] == "accepted")
    assert "sluice tap" in client.run("attach", accepted).failed(81)
    assert "--crlf" in client.run("attach", name, "--crlf").failed(64)
    first = attach(name, "--wait", "0s").send_input("mine\n").expect_line("mine")
    line = client.run("attach", name).failed(81)
    assert "another client" in line and f"sluice tap {name}" in line
    first.end_input().expect_exit(0)
    control.close(name)
    control.closed(name)
    assert "sluice show" in client.run("attach", name).failed(66)
    assert "sluice serve" in Client("127.0.0.1:1").run("attach", name).failed(69)
    assert Client("127.0.0.1:1").run("attach", name, "--wait", "soon").code == 64


# -- at a terminal

def test_a_terminal_exchanges_messages_over_an_attached_connection(control, echo):
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
    eventually(lambda: control.verb(name, "ping").status == 200, "a pong after detaching")
