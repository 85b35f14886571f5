"""A running gateway controlled from the command line: drains, taps, listeners, routes, upstreams, reload, TLS within a
stream, tokens and scopes."""

import base64
import json
import re
import signal

import pytest
import websockets.sync.client
from aiosmtpd.controller import Controller

from support import configuration
from support.client import Client
from support.configured import Configured
from support.connect import Terminal
from support.deadlines import Lines, eventually, seconds
from support.gateway import BINARY
from support.programs import run


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


def rows(text):
    """The rows of a table without its heading, split into words."""
    return [line.split() for line in text.splitlines()[1:]]


# -- drains

def test_a_drain_closes_the_selected_connections_and_reports_its_end(control, client, echo):
    names = [control.open(echo, labels={"team": "blue"}) for _ in range(5)]
    other = control.open(echo, labels={"team": "red"})
    chosen = ("drain", "--label", "team=blue")
    assert client(*chosen, "--preview") == "5 connections, notified within 40ms\n"
    assert json.loads(client(*chosen, "--preview", "--json")) == {"matched": 5, "notified": 0, "takesMs": 40}
    line = client(*chosen, "--rate", "1000", "--code", "4001", "--reason", "moving")
    assert re.fullmatch(r"drain \d+: 5 connections, last notified at \S+Z\ndrain \d+ ended: 5 of 5 notified, 0 remaining, 0 reset\n", line)
    for name in names:
        closed = control.closed(name)
        assert (closed["closeCode"], closed["closeReason"]) == (4001, "moving")
    assert control.show(other)["state"] == "open"
    last = json.loads(client("drain", "--all", "--abort", "--json").splitlines()[-1])
    assert (last["state"], last["remaining"]) == ("ended", 0)
    assert "closeCode" not in control.closed(other)


def test_a_drain_shows_its_duration_and_warns_of_a_deadline_that_is_too_early(control, client, echo):
    for _ in range(4):
        control.open(echo, labels={"of": "test"})
    chosen = ("drain", "--label", "of=test", "--rate", "1", "--deadline", "1500ms")
    preview = client.run(*chosen, "--preview")
    assert preview.output == b"4 connections, notified within 3s\n" and "2 of 4 connections are reset at the deadline of 1s500ms" in preview.errors
    ended = client.run(*chosen)
    assert re.search(r"drain \d+: 4 connections, last notified at \S+Z, remaining reset at \S+Z", ended.output.decode()), ended.output
    assert "2 of 4 connections are reset" in ended.errors and b"2 of 4 notified, 0 remaining, 2 reset" in ended.output, ended


def test_ctrl_c_cancels_the_rest_of_a_drain(control, client, echo):
    for _ in range(3):
        control.open(echo, labels={"of": "test"})
    process = client.start("drain", "--label", "of=test", "--rate", "1", "--jitter", "10m")
    drain = eventually(lambda: control.get("/v1/drains").expect(200), "the drain")[0]["id"]
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=seconds(20))
    assert process.returncode == 130 and f"drain {drain} is cancelled" in errors.decode()
    assert output.decode().count("\n") == 1 and f"drain {drain}: 3 connections" in output.decode()
    assert control.get(f"/v1/drains/{drain}").expect(200)["state"] == "cancelled"


def test_a_drain_runs_in_the_background(control, client, echo):
    control.open(echo, labels={"of": "test"})
    name = client("drain", "--label", "of=test", "--background").strip()
    eventually(lambda: control.get(f"/v1/drains/{name}").expect(200).get("endedAt"), "its end")
    assert control.list(label="of:test") == []


# -- taps

def test_a_tap_shows_both_directions_until_the_connection_ends(control, client, echo):
    name = control.open(echo)
    process = client.start("tap", name)
    lines = Lines(process.stdout)
    # The tap is running once it has shown a message.
    eventually(lambda: control.send(name, "probe") and lines.all(), "the tap")
    control.send(name, "grüße")
    control.send(name, b"\x00\xff")
    lines.wait_for(lambda line: line == "> (text, 7 bytes) grüße", "what was sent")
    lines.wait_for(lambda line: line == "< (text, 7 bytes) grüße", "what came back")
    lines.wait_for(lambda line: line == "< (binary, 2 bytes) 00 ff", "bytes")
    control.close(name)
    assert process.wait(seconds(10)) == 0, process.stderr.read()


def test_a_tap_truncates_payloads_and_writes_json(control, client, echo):
    name = control.open(echo)
    process = client.start("tap", name, "--max", "2B", "--json")
    lines = Lines(process.stdout)
    eventually(lambda: control.send(name, "probe") and lines.all(), "the tap")
    piece = json.loads(lines.all()[0])
    shown = piece.get("text") or base64.b64decode(piece["data"]).decode()
    assert shown == "pr" and piece["sizeBytes"] == 5 and piece["way"] in ("sent", "received")
    process.send_signal(signal.SIGINT)
    assert process.wait(seconds(10)) in (130, -signal.SIGINT)
    assert "4711" in client.run("tap", "4711").failed(66)


# -- configuration

def test_listeners_are_created_changed_shown_and_deleted(control, client, tmp_path):
    file = tmp_path / "extra.json"
    file.write_text(json.dumps({"listen": "ws://127.0.0.1:0"}))
    would = client("listeners", "extra", "--put", file, "--dry-run")
    assert would.startswith("would change\n") and "extra" in would and len(rows(client("listeners"))) == 1
    made = client("listeners", "extra", "--put", file)
    address = re.search(r"127\.0\.0\.1:[1-9]\d*", made).group(0)
    found = {row[0]: row for row in rows(client("listeners"))}
    assert list(found) == ["web", "extra"] and address in " ".join(found["extra"])
    with websockets.sync.client.connect(f"ws://{address}/echo") as socket:
        socket.send("hello")
        assert socket.recv() == "hello"
    client("listeners", "extra", "--patch", '{"max-connections": 10}')
    assert json.loads(client("listeners", "extra", "--json"))["max-connections"] == 10
    assert client("listeners", "extra", "--delete") == ""
    assert "extra" in client.run("listeners", "extra").failed(66)
    assert json.loads(client("listeners", "--json"))["items"][0]["name"] == "web"
    file.write_text('{"listen": "nonsense"}')
    assert "listen" in client.run("listeners", "extra", "--put", file).failed(78)
    assert "/nowhere.json" in client.run("listeners", "extra", "--put", "/nowhere.json").failed(78)


def test_a_route_uses_an_upstream_created_from_the_command_line(sluice, configured, client, tmp_path):
    other = sluice("bridge", "ws://127.0.0.1:0/", "echo")
    upstream, route = tmp_path / "upstream.json", tmp_path / "route.json"
    upstream.write_text(json.dumps({"endpoints": [other.url()]}))
    route.write_text(json.dumps({"path": "/far", "target": "far"}))
    client("upstreams", "far", "--put", upstream)
    client("routes", "far", "--put", route)
    assert [row[0] for row in rows(client("routes"))] == ["echo", "far"]
    with websockets.sync.client.connect(f"ws://127.0.0.1:{configured.gateway.port()}/far") as socket:
        socket.send("hello")
        assert socket.recv() == "hello"
        assert f"{other.url()}: 1" in client("upstreams")
    assert "routes" in client.run("upstreams", "far", "--delete").failed(81)
    client("routes", "far", "--delete")
    client("upstreams", "far", "--delete")
    assert rows(client("upstreams")) == []


def test_reload_applies_the_changed_file(configured, client):
    assert client("reload", "--dry-run") == "nothing changed\n"
    configured.write(routes=[configuration.route("echo", "echo", path="/other")])
    would = client("reload", "--dry-run")
    assert would.startswith("would change\n") and "/echo" in would and "/other" in would
    assert client("reload") == would.replace("would change", "changed", 1)
    assert json.loads(client("routes", "echo", "--json"))["path"] == "/other"
    configured.file.write_text("listeners: [")
    assert client.run("reload").failed(78)
    assert json.loads(client("routes", "echo", "--json"))["path"] == "/other"


# -- opening without waiting


def test_no_wait_prints_the_id_of_the_connection_being_opened(control, client, listener):
    # The listener accepts the connection and never answers the opening handshake.
    name = client("open", listener.url("ws", "/"), "--no-wait").strip()
    assert control.show(name)["state"] == "opening"
    record = json.loads(client("open", listener.url("ws", "/"), "--no-wait", "--json"))
    assert record["operation"] == "openConnection" and record["connection"] != name


# -- TLS within a stream

class PortController(Controller):
    """A controller whose port the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


class AcceptingMailbox:
    async def handle_DATA(self, *_):
        return "250 kept"


def test_a_connection_to_a_mail_server_is_secured_after_starttls(client, authority, server_certificate):
    server = PortController(
        AcceptingMailbox(), hostname="127.0.0.1", port=0, tls_context=authority.server_context(server_certificate), require_starttls=True)
    server.start()
    try:
        name = client("open", f"tcp://127.0.0.1:{server.port}").strip()

        def ask(line, code):
            client("send", name, "--crlf", line)
            answer = ""
            while not re.search(rf"^{code} .*\r\n", answer, re.M):
                answer += client("receive", name)
            return answer

        assert client("receive", name).startswith("220 ")
        assert "STARTTLS" in ask("EHLO client.example", 250)
        ask("STARTTLS", 220)
        # The test's authority is trusted only because --ca names it.
        secured = client("secure", name, "--ca", authority.certificate, "--server-name", "localhost")
        assert re.fullmatch(rf"{name} secured with TLS ?v?1\.[23], \S+\n", secured), secured
        assert re.search(r"^tls +.*1\.[23]", client("show", name), re.M | re.I)
        ask("EHLO client.example", 250)
        ask("QUIT", 221)
        assert "already uses TLS" in client.run("secure", name).errors or client.run("show", name).code == 66
    finally:
        server.stop()


def test_an_untrusted_certificate_fails_with_exit_code_80(client, authority, server_certificate):
    server = PortController(AcceptingMailbox(), hostname="127.0.0.1", port=0, tls_context=authority.server_context(server_certificate))
    server.start()
    try:
        name = client("open", f"tcp://127.0.0.1:{server.port}").strip()
        client("receive", name)
        client("send", name, "--crlf", "STARTTLS")
        client("receive", name)
        assert "certificate" in client.run("secure", name).failed(80)
    finally:
        server.stop()


# -- authorization

def token(*scopes):
    words = [word for scope in scopes for word in ("--scope", scope)]
    return json.loads(run(BINARY, "token", "--name", "-".join(scopes), *words, "--json").stdout)


@pytest.fixture
def guarded(sluice, tmp_path, authority, server_certificate):
    """A control plane with TLS and tokens: (its URL, the tokens, the URL of the gateway's echo)."""
    made = {scope: token(scope) for scope in ("read", "operate", "configure")}
    made["both"] = token("read", "operate")
    entries = [{"name": name, "hash": one["hash"], "scopes": one["scopes"]} for name, one in made.items()]
    certificate = {"certificate": str(server_certificate[0]), "key": str(server_certificate[1])}
    one = Configured(sluice, tmp_path, control={"address": "https://127.0.0.1:0", "tls": certificate, "tokens": entries})
    return one.control.url, {name: entry["token"] for name, entry in made.items()}, f"ws://127.0.0.1:{one.gateway.port()}/echo"


def test_tokens_and_tls_protect_every_command(guarded, authority, tmp_path):
    url, tokens, echo = guarded
    trusting = ("--control-ca", authority.certificate)
    client = Client(url, *trusting)
    assert "--token-file" in client.run("ls").failed(77)
    assert "--control-ca" in Client(url, "--token", tokens["read"]).run("ls").failed(79)
    assert Client(url, "--token", tokens["read"], "--control-insecure")("ls")
    # The token comes from the environment, a file, or the command line.
    assert client("ls", environment={"SLUICE_TOKEN": tokens["read"]})
    file = tmp_path / "token"
    file.write_text(tokens["both"] + "\n")
    both = Client(url, *trusting, "--token-file", file)
    assert both("ls", environment={"SLUICE_TOKEN": "ignored"})
    name = both("open", echo).strip()
    assert both("send", name, "hello") == "sent 5 bytes\n" and both("receive", name) == "hello\n"
    process = both.start("attach", name, "--wait", "0s")
    lines = Lines(process.stdout)
    process.stdin.write(b"over TLS\n")
    process.stdin.flush()
    lines.wait_for(lambda line: line == "over TLS", "the echo")
    process.stdin.close()
    assert process.wait(seconds(10)) == 0, process.stderr.read()
    # Each command needs its scope.
    reader = Client(url, *trusting, "--token", tokens["read"])
    for words in (["send", name, "x"], ["close", name], ["attach", name], ["drain", "--all"], ["get", "http://127.0.0.1:1/"]):
        assert "scope" in reader.run(*words).failed(77)
    assert "scope" in both.run("listeners", "web", "--delete").failed(77)
    assert "scope" in both.run("reload").failed(77)
    assert Client(url, *trusting, "--token", tokens["configure"])("reload", "--dry-run") == "nothing changed\n"
    assert "unauthorized" in Client(url, *trusting, "--token", tokens["read"] + "x").run("ls", "--json").text


def test_a_plain_address_of_a_tls_control_plane_fails(guarded):
    url, _, _ = guarded
    assert Client(url.replace("https://", "http://")).run("ls").code in (69, 76)


# -- terminals

def test_only_terminals_get_colours_and_progress_bars(control, client, echo):
    for _ in range(3):
        control.open(echo, labels={"of": "test"})
    terminal = Terminal("drain", "--label", "of=test", "--control", control.url, program=[str(BINARY)])
    try:
        assert terminal.wait() == 0
        assert re.search(r"ended: 3 of 3 notified", terminal.text)
    finally:
        terminal.close()
    for words in (["ls"], ["listeners"], ["routes"], ["upstreams"], ["events", "--after", "0", "--count", "1"], ["reload"]):
        assert "\x1b" not in client(*words)
