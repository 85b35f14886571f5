"""Connections of a running gateway, used from the command line."""

import json
import re
import signal
import threading

import pytest

from support import configuration
from support.client import Client
from support.connect import Terminal
from support.control import Control
from support.deadlines import Lines, seconds
from support.gateway import BINARY


@pytest.fixture
def serve(sluice, tmp_path):
    """A gateway with a control plane: (gateway, client, URL of its echo)."""

    def start(address="http://127.0.0.1:0"):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")], control={"address": address})
        gateway = sluice("serve", "--config", file)
        listening = next(line for line in gateway.output.all() if line.startswith("listening on "))
        port = re.search(r":(\d+)/", listening).group(1)
        return gateway, Client(Control.of(gateway).url), f"ws://127.0.0.1:{port}/echo"

    return start


@pytest.fixture
def client(serve):
    _, client, client.echo = serve()
    return client


def opened(client, *options, url=None):
    name = client("open", url or client.echo, *options).strip()
    assert re.fullmatch(r"\d+", name)
    return name


def test_a_connection_is_opened_used_and_closed_by_commands(client):
    name = opened(client, "--label", "team=blue", "--description", "hé 漢字", "-H", "X-Test: 1")
    assert client("send", name, "grüße") == "sent 7 bytes\n"
    assert client("receive", name) == "grüße\n"
    assert re.fullmatch(rf"{name}: pong after [\d.]+ m?s\n", client("ping", name))
    sheet = client("show", name)
    assert re.search(r"^description +hé 漢字$", sheet, re.M) and re.search(r"^labels +team=blue$", sheet, re.M)
    assert "X-Test: 1" in sheet and re.search(r"^sent +7 B, 1 messages, \d frames$", sheet, re.M)
    assert "team=green" in client("set", name, "--label", "team=green")
    assert client("close", name, "--code", "4001", "--reason", "bye now").startswith(f'{name} closed with 4001 "bye now"')

    after = client.run("show", name)
    assert "is closed" in after.failed(66)
    assert re.search(r"^close code +4001$", after.text, re.M) and re.search(r"^close reason +bye now$", after.text, re.M)


def test_json_output_equals_the_rest_response(client):
    control = Control(client.url)
    name = opened(client)
    fields = "id,kind,url,state"
    assert client("ls", "--json", "--fields", fields).encode() == control.get("/v1/connections", fields=fields, limit=1000).body
    assert client("show", name, "--json", "--fields", fields).encode() == control.get(f"/v1/connections/{name}", fields=fields).body
    assert json.loads(client("send", name, "x", "--json")) == {"state": "sent", "sizeBytes": 1, "queuedSendBytes": 0, "suspended": False}
    assert json.loads(client("receive", name, "--json")) == {"type": "text", "text": "x", "sizeBytes": 1}
    assert 0 < json.loads(client("ping", name, "--json"))["rttMs"]
    run = client.run("show", "4711", "--json")
    run.failed(66)
    assert run.json == control.get("/v1/connections/4711").json


def test_binary_payloads_are_sent_and_received_unchanged(client):
    name, data = opened(client), bytes(range(256)) * 8
    assert client("send", name, "--binary", text=data) == "sent 2048 bytes\n"
    assert client.run("receive", name).output == data
    client("send", name, "--hex", "00 ff 7f")
    assert client.run("receive", name).output == b"\x00\xff\x7f"
    client("send", name, text="from a pipe\n")
    assert client.run("receive", name).output == b"from a pipe\n\n"
    assert "--binary" in client.run("send", name, text=b"\xff").failed(65)


def test_receive_follow_writes_messages_until_the_close(client):
    name = opened(client)
    process = client.start("receive", name, "--follow")
    lines = Lines(process.stdout)
    for text in ("one", "two"):
        client("send", name, text)
        lines.wait_for(lambda line: line == text, text)
    client("close", name)
    assert process.wait(seconds(10)) == 0, process.stderr.read()


def test_a_stream_is_written_read_and_half_closed(client, listener):
    got, may_end = [], threading.Event()

    def answer():
        peer, _ = listener.socket.accept()
        with peer:
            while data := peer.recv(4096):
                got.append(data)
            peer.sendall(b"farewell")
            assert may_end.wait(seconds(10))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    name = opened(client, url=f"tcp://127.0.0.1:{listener.port}")
    client("send", name, "--crlf", "EHLO")
    assert client("close", name, "--write") == f"{name} closed for writing\n"
    assert client("receive", name, "--min", "8") == "farewell"
    assert b"".join(got) == b"EHLO\r\n"
    assert "direction" in client.run("close", name, "--write").failed(81)
    may_end.set()
    thread.join(seconds(10))
    assert client("receive", name, "--follow") == ""


def test_lists_are_filtered_sorted_and_limited(client):
    labelled = [opened(client, "--label", f"n={number}") for number in range(3)]
    # Each event loop numbers its own connections: later ones may have smaller numbers.
    names = sorted(labelled, key=int)
    rows = client("ls", "--direction", "opened").splitlines()
    assert rows[0].split()[:3] == ["ID", "KIND", "STATE"]
    assert [row.split()[0] for row in rows[1:]] == names
    assert [row.split()[0] for row in client("ls", "--label", "n=1").splitlines()[1:]] == [labelled[1]]
    assert [row.split()[0] for row in client("ls", "--direction", "opened", "--sort", "-id", "--limit", "2").splitlines()[1:]] == names[:0:-1]
    assert len(client("ls", "--limit", "4").splitlines()) == 5
    client("close", *names)
    closed = client("ls", "--state", "closed", "--direction", "opened")
    assert [row.split()[0] for row in closed.splitlines()[1:]] == names and "1000" in closed


def test_wrong_options_are_reported_before_a_request_is_sent():
    run = Client("127.0.0.1:1").run("ls", "--limit", "0")
    assert run.code == 64 and "--limit" in run.errors and not run.output, run


def test_an_unreachable_control_plane_is_reported(client, listener, serve):
    closed = Client("127.0.0.1:1").run("ls")
    assert "sluice serve" in closed.failed(69)
    web = re.match(r"ws://([^/]+)/", client.echo).group(1)
    assert "is not a control plane" in Client(web).run("ls").failed(76)
    assert "unix:///nowhere/x.sock" in Client("unix:///nowhere/x.sock").run("ls").failed(69)
    assert Client("nonsense://x").run("ls").code == 64


def test_the_control_address_may_be_a_unix_socket_or_an_environment_variable(serve, tmp_path):
    _, client, echo = serve(f"unix://{tmp_path}/control.sock")
    name = opened(client, url=echo)
    client("send", name, "over a socket")
    assert client("receive", name) == "over a socket\n"
    bare = Client(f"{tmp_path}/control.sock")
    assert name in bare("ls")
    bare.words = lambda *arguments: [str(BINARY), *arguments]
    assert name in bare("ls", environment={"SLUICE_CONTROL": f"unix://{tmp_path}/control.sock"})


def test_events_are_followed_live_and_replayed(client):
    process = client.start("events", "--after", "0", "--count", "1", "--type", "opened")
    name = opened(client)
    client("close", name)
    again = client("events", "--after", "0", "--connection", name, "--count", "2").splitlines()
    assert [line.split()[1] for line in again] == ["opened", "closed"] and all(name in line for line in again)
    one = json.loads(client("events", "--after", "0", "--connection", name, "--count", "1", "--json"))
    assert (one["type"], one["connection"]) == ("opened", name)
    assert process.wait(seconds(10)) == 0 and b" opened " in process.stdout.read()


def test_a_table_fits_the_terminal_and_only_there_has_colours(client):
    opened(client, "--description", "漢字 " * 30)
    assert "\x1b" not in client("ls")
    for columns in (60, 100):
        terminal = Terminal("ls", "--control", client.url, program=[str(BINARY)], columns=columns)
        try:
            assert terminal.wait() == 0
            assert "\x1b[32mopen" in terminal.shown.decode()
            wide = lambda text: sum(2 if "\u1100" <= one else 1 for one in text.replace("…", "."))
            assert all(wide(row) <= columns for row in terminal.text.splitlines()), terminal.text
        finally:
            terminal.close()
    plain = Terminal("ls", "--no-color", "--control", client.url, program=[str(BINARY)])
    try:
        assert plain.wait() == 0 and "\x1b" not in plain.shown.decode()
    finally:
        plain.close()


def test_a_watched_list_is_updated_until_it_is_interrupted(client):
    terminal = Terminal("ls", "--watch", "--interval", "100ms", "--control", client.url, program=[str(BINARY)], columns=120)
    try:
        terminal.wait_for("0 shown")
        opened(client, "--description", "came later")
        terminal.wait_for("came later")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait() == 0
        assert terminal.shown.endswith(b"\x1b[?25h\x1b[?1049l"), "the terminal is restored"
    finally:
        terminal.close()
