"""The process: its command line, exit codes, configuration, logs, signals and systemd."""

import collections
import itertools
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from support import configuration, gateway as process, websocket
from support.deadlines import eventually, seconds, sized
from support.programs import free_port
from support.websocket import CLOSE, PING, Listener, Wire, parse_head, request

USAGE, UNAVAILABLE, CONFIGURATION = 64, 69, 78


def suppressed(work):
    try:
        work()
    except (AssertionError, OSError):
        pass


# -- exit codes

@pytest.mark.parametrize("words", [
    ["bridge"], ["bridge", "tcp://127.0.0.1:0"], ["nonsense"], ["bridge", "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", "--nonsense"],
    ["bridge", "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", "too many"], ["serve", "--config"], ["check", "--nonsense"]])
def test_wrong_usage_exits_64(words):
    got = process.run(*words)
    assert got.returncode == USAGE, got
    assert got.stderr.strip(), "nothing was said"


@pytest.mark.parametrize("words", [
    ["bridge", "http://127.0.0.1:0", "tcp://127.0.0.1:1"], ["bridge", "tcp://127.0.0.1:0", "nowhere"],
    ["bridge", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:1"],
    ["bridge", "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", "--idle-timeout", "25"],
    ["bridge", "tcp://127.0.0.1:0", "ws://127.0.0.1:1/", "--max-message-size", "many"],
    ["bridge", "wss://127.0.0.1:0/", "tcp://127.0.0.1:1"],
    ["bridge", "wss://127.0.0.1:0/", "tcp://127.0.0.1:1", "--certificate", "/nonexistent.pem", "--key", "/nonexistent.pem"]])
def test_an_invalid_bridge_is_refused_with_a_message(words):
    got = process.run(*words)
    assert got.returncode in (USAGE, CONFIGURATION), got
    assert got.stderr.strip(), "nothing was said"


@pytest.mark.parametrize("words,option", [
    (["ws://127.0.0.1:0/", "echo", "--certificate", "cert.pem", "--key", "key.pem"], "--certificate"),
    (["wss://127.0.0.1:0/", "echo"], "--certificate"),
    (["tcp://127.0.0.1:0", "tcp://127.0.0.1:1", "--ca", "ca.pem"], "--ca"),
    (["tcp://127.0.0.1:0", "ws://127.0.0.1:1", "--framing", "length-prefixed", "--half-close", "signal"], "--half-close"),
    (["tcp://127.0.0.1:0", "ws://127.0.0.1:1", "--header", "A: b\t"], "--header"),
    (["tcp://127.0.0.1:0", "echo", "--log-level", "loud"], "--log-level")])
def test_an_inapplicable_option_is_refused_with_the_expected_value(words, option):
    got = process.run("bridge", *words)
    assert got.returncode == USAGE, got
    reported = got.stderr.splitlines()
    assert reported[0].startswith(f"{option}: expected ") and ", found " in reported[0] and "a mapping" not in got.stderr, reported


def test_a_required_target_that_is_down_exits_69():
    got = process.run("bridge", "tcp://127.0.0.1:0", f"tcp://127.0.0.1:{free_port()}", "--require-target")
    assert got.returncode == UNAVAILABLE, got


def test_a_reachable_required_target_lets_the_bridge_start(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--require-target")
    assert gateway.running()


def test_a_required_target_with_a_wrong_certificate_exits_69(authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as far:
        thread = threading.Thread(target=lambda: suppressed(far.accept), daemon=True)
        thread.start()
        got = process.run("bridge", "tcp://127.0.0.1:0", far.url("tls"), "--require-target", "--server-name", "localhost")
        thread.join(seconds(10))
    assert got.returncode == UNAVAILABLE and "certificate" in got.stderr, got


@pytest.mark.parametrize("answer", ["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "220 mail.example\r\n"])
def test_a_required_target_that_refuses_the_handshake_exits_69(answer):
    with Listener() as far:
        def serve():
            peer, _ = far.accept_request()
            with peer:
                peer.send(answer.encode())
                suppressed(peer.receive_all)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        got = process.run("bridge", "tcp://127.0.0.1:0", far.url("ws", "/"), "--require-target")
        thread.join(seconds(10))
        assert got.returncode == UNAVAILABLE, got
        assert far.url("ws", "/") in got.stderr and ("404" in got.stderr or "handshake" in got.stderr or "HTTP" in got.stderr), got.stderr


def test_a_required_target_is_probed_with_tls_and_handshake_and_closed_with_1000(bridge, authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as far:
        codes = []

        def serve():
            peer = far.accept_websocket()
            codes.append(peer.read().code)
            peer.write(CLOSE, websocket.close_payload(1000))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        gateway = bridge("tcp://127.0.0.1:0", far.url("wss", "/"), "--require-target", "--ca", authority.certificate,
                         "--server-name", "localhost")
        thread.join(seconds(10))
        assert codes == [1000] and gateway.running()


def test_a_required_target_with_a_path_parameter_may_answer_404(bridge):
    with Listener() as far:
        def serve():
            peer, _ = far.accept_request()
            with peer:
                peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert bridge("ws://127.0.0.1:0/{room}", far.url("ws", "/rooms/{room}"), "--require-target").running()
        thread.join(seconds(10))


def test_a_peer_that_answers_no_ping_is_disconnected_at_the_pong_timeout(bridge):
    gateway = bridge("ws://127.0.0.1:0/", "echo", "--ping-interval", "1s", "--pong-timeout", "1s")
    with websocket.connect(gateway.address()) as client:
        client.expect_pings_then_any_end()
    assert "unresponsive" in gateway.wait_log("connection closed")


def test_an_address_in_use_is_reported(listener):
    got = process.run("bridge", f"tcp://127.0.0.1:{listener.port}", "tcp://127.0.0.1:1")
    assert got.returncode not in (0, USAGE), got
    assert str(listener.port) in got.stderr, got.stderr


@pytest.mark.parametrize("words", [["--help"], ["bridge", "--help"], ["serve", "--help"], ["check", "--help"], ["--version"]])
def test_help_exits_0(words):
    got = process.run(*words)
    assert got.returncode == 0 and got.stdout.strip(), got


# -- configuration

def echo_file(tmp_path, **more):
    return configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [configuration.route("echo", "echo", path="/echo")],
        **more)


def test_a_good_configuration_passes_the_check(tmp_path):
    got = process.run("check", "--config", echo_file(tmp_path))
    assert got.returncode == 0, got


def test_the_check_reports_all_errors_with_file_and_line(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("""listeners:
  - name: web
    listen: ws://127.0.0.1:0
    max-header-size: plenty
    colour: blue
routes:
  - name: app
    path: /app
    target: nowhere
drain-timeout: 5
""")
    for words in (["check", "--config", file], ["serve", "--config", file]):
        got = process.run(*words)
        assert got.returncode == CONFIGURATION, got
        for needed in ("bad.yaml:4", "max-header-size", "plenty", "bad.yaml:5", "colour", "bad.yaml:9", "nowhere", "bad.yaml:10", "drain-timeout"):
            assert needed in got.stderr, f"{needed} is not in {got.stderr}"


def test_the_check_reports_problems_as_json(tmp_path):
    reported = process.run("check", "--json", "--config", echo_file(tmp_path))
    assert reported.returncode == 0
    assert json.loads(reported.stdout) == {
        "file": str(tmp_path / "sluice.yaml"), "ok": True, "listeners": 1, "routes": 1, "upstreams": 0, "problems": [], "warnings": []}

    file = tmp_path / "bad.yaml"
    file.write_text("listeners:\n  - name: web\n    listen: ws://127.0.0.1:99999\n    colour: blue\n")
    reported = process.run("check", "--json", "--config", file)
    assert reported.returncode == CONFIGURATION
    report = json.loads(reported.stdout)
    assert report["file"] == str(file) and report["ok"] is False
    first = next(one for one in report["problems"] if one["key"] == "listeners[0].listen")
    assert (first["file"], first["line"], first["column"]) == (str(file), 3, 13)
    assert "port" in first["expected"] and "99999" in first["found"]
    assert {one["message"] for one in report["problems"]} == set(reported.stderr.splitlines())

    missing = process.run("check", "--json", "--config", tmp_path / "none.yaml")
    assert missing.returncode == CONFIGURATION
    assert "no such file" in json.loads(missing.stdout)["problems"][0]["message"]


def test_the_check_reports_every_unusable_certificate_with_its_key(tmp_path, authority, server_certificate):
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing of the kind\n")
    certificate, key = map(str, server_certificate)
    other = str(authority.issue("other")[1])
    tls = [{"certificate": str(junk), "key": key}, {"certificate": certificate, "key": other},
           {"certificate": certificate, "key": key, "client-ca": str(junk)}]
    file = configuration.write(
        tmp_path / "sluice.yaml",
        [configuration.listener(f"l{at}", "tls://127.0.0.1:0", route="echo", tls=one) for at, one in enumerate(tls)]
        + [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo"), configuration.route("app", "app", path="/")],
        [configuration.upstream("app", "wss://127.0.0.1:1/", tls={"ca": str(junk), "crl": [str(junk)]})])
    for words in (["check", "--config", file], ["serve", "--config", file]):
        got = process.run(*words)
        assert got.returncode == CONFIGURATION, got
        lines = got.stderr.splitlines()
        places = [re.match(r"\S+:\d+:\d+: (\S+):", line) for line in lines]
        assert [place and place.group(1) for place in places] == [
            "listeners[0].tls.certificate", "listeners[1].tls.certificate", "listeners[2].tls.client-ca",
            "upstreams[0].tls.ca", "upstreams[0].tls.crl[0]"], lines
    assert process.run("check", "--config", file, "--without-files").returncode == 0
    got = process.run("bridge", "tcp://127.0.0.1:0", "tls://127.0.0.1:1", "--ca", junk)
    assert got.returncode == CONFIGURATION and got.stderr.startswith("--ca: ") and str(junk) in got.stderr, got


def test_a_fifo_in_place_of_a_named_file_is_reported_and_not_waited_for(sluice, tmp_path, server_certificate):
    """A FIFO that nobody writes to would block the start, and each later reload."""
    certificate, key = map(str, server_certificate)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def written(certificate):
        return configuration.write(
            tmp_path / "sluice.yaml",
            [configuration.listener("tls", "tls://127.0.0.1:0", route="echo", tls={"certificate": certificate, "key": key})],
            [configuration.route("echo", "echo")])

    # A link to it, relative to the directory in which the program runs.
    (tmp_path / "link").symlink_to(fifo)
    for name, command in itertools.product([str(fifo), "link"], ["check", "serve"]):
        got = process.run(command, "--config", written(name), cwd=tmp_path)
        assert got.returncode == CONFIGURATION, got
        assert "listeners[0].tls.certificate: " in got.stderr and "other than a regular file" in got.stderr, got
    gateway = sluice("serve", "--config", written(certificate))
    written(str(fifo))
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("not reloaded.*other than a regular file")
    written(certificate)
    gateway.signal(signal.SIGHUP)
    gateway.wait_log('"reloaded ')


def test_a_fifo_in_place_of_the_configuration_blocks_no_reload(sluice, tmp_path):
    file = tmp_path / "sluice.yaml"

    def write():
        configuration.write(
            file, [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")], [configuration.route("echo", "echo")])

    write()
    gateway = sluice("serve", "--config", file)
    file.unlink()
    os.mkfifo(file)
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("not reloaded.*is not a file")
    file.unlink()
    write()
    gateway.signal(signal.SIGHUP)
    gateway.wait_log('"reloaded ')


def test_the_check_reports_a_wrong_or_missing_key_password(tmp_path, server_certificate):
    import subprocess
    certificate, key = map(str, server_certificate)
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:open sesame", "-out", locked], check=True)

    def check(**password):
        return process.run("check", "--config", configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener(
                "web", "wss://127.0.0.1:0", tls={"certificate": certificate, "key": str(locked), **password})],
            [configuration.route("echo", "echo", path="/")]))

    for password in ({}, {"password": "another"}):
        got = check(**password)
        assert got.returncode == CONFIGURATION and "password" in got.stderr and "open sesame" not in got.stderr, got
    assert check(password="open sesame").returncode == 0


@pytest.mark.parametrize("text", ["", "listeners: [", "just text", "- a\n- b\n", "listeners: {}\nroutes: []\n", "\x00\x01", "a: &a [*a]\n"])
def test_an_invalid_configuration_file_exits_78(tmp_path, text):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    got = process.run("check", "--config", file)
    assert got.returncode == CONFIGURATION and "bad.yaml" in got.stderr, got


def test_a_missing_configuration_file_exits_78(tmp_path):
    got = process.run("serve", "--config", tmp_path / "nowhere.yaml")
    assert got.returncode == CONFIGURATION and "nowhere.yaml" in got.stderr, got


# -- output and logs

def test_the_bridge_prints_its_addresses_and_then_ready(bridge, tmp_path):
    path = tmp_path / "s.sock"
    for listen, wanted in (("tcp://127.0.0.1:0", "tcp://127.0.0.1:"), ("ws://127.0.0.1:0/", "ws://127.0.0.1:"), (f"unix://{path}", f"unix://{path}")):
        gateway = bridge(listen, "tcp://127.0.0.1:1")
        assert gateway.url().startswith(wanted)
        lines = gateway.output.all()
        assert lines.index("ready") > max(at for at, line in enumerate(lines) if line.startswith("listening on"))


@pytest.mark.parametrize("options,levels", [
    ([], {"info", "notice"}), (["--log-level", "notice"], {"notice"}), (["--quiet"], set()),
    (["--quiet", "--log-level", "info"], {"info", "notice"})])
def test_quiet_and_log_level_control_output_and_logs(sluice, tmp_path, options, levels):
    path = tmp_path / "s.sock"
    gateway = sluice("bridge", f"unix://{path}", "echo", *options, ready=False)

    def listens():
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(path)) == 0

    eventually(listens, "the socket")
    with Wire.connect(path) as near:
        near.send(b"hello")
        assert near.receive(5) == b"hello"
    assert gateway.stop() == 0
    gateway.log.wait_for_end()
    gateway.output.wait_for_end()
    assert {line.split()[1] for line in gateway.log.all()} == levels
    assert bool(gateway.output.all()) == ("--quiet" not in options)


def test_a_unix_socket_has_its_mode_and_is_removed_at_the_end(bridge, tmp_path, listener):
    path = tmp_path / "s.sock"
    gateway = bridge(f"unix://{path}", listener.url("tcp"))
    assert path.stat().st_mode & 0o777 == 0o660
    assert gateway.stop() == 0
    assert not path.exists()


def test_a_gateway_keeps_the_unix_socket_of_its_successor(bridge, tmp_path):
    path = tmp_path / "s.sock"
    before = bridge(f"unix://{path}", "echo")
    path.unlink()
    after = bridge(f"unix://{path}", "echo")
    assert before.stop() == 0
    Wire.connect(path).close()
    assert after.stop() == 0
    assert not path.exists()


def test_a_stale_unix_socket_is_replaced(bridge, tmp_path, listener):
    path = tmp_path / "s.sock"
    bridge(f"unix://{path}", listener.url("tcp")).kill()
    assert path.exists()
    gateway = bridge(f"unix://{path}", listener.url("tcp"))
    with Wire.connect(path) as near:
        near.send(b"hello")
        assert listener.accept().receive(5) == b"hello"
    assert gateway.running()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "broken link", "fifo"])
@pytest.mark.parametrize("user", ["bridge", "listener", "control"])
def test_a_file_that_is_no_socket_is_reported_and_kept(user, kind, tmp_path):
    target, path = tmp_path / "target", tmp_path / "s"
    target.write_text("kept")
    {"file": lambda: path.write_text("kept"), "folder": path.mkdir, "link": lambda: path.symlink_to(target),
     "broken link": lambda: path.symlink_to(tmp_path / "nowhere"), "fifo": lambda: os.mkfifo(path)}[kind]()
    before = os.lstat(path)
    if user == "bridge":
        words = ["bridge", f"unix://{path}", "echo"]
    else:
        listen = f"ws+unix://{path}" if user == "listener" else "ws://127.0.0.1:0"
        control = f"unix://{path}" if user == "control" else "none"
        words = ["serve", "--config", configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", listen)], [configuration.route("echo", "echo", path="/echo")],
            control={"address": control})]
    got = process.run(*words)
    assert got.returncode == 71, got
    assert f"{path}: the file exists and is not a socket; remove it, or choose another address" in got.stderr, got
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode) and target.read_text() == "kept"


@pytest.mark.parametrize("place", ["a full disk", "closed", "a pipe without a reader"])
def test_the_bridge_serves_although_its_output_cannot_be_written(place):
    import subprocess
    address = ("127.0.0.1", free_port())
    words = [str(process.BINARY), "bridge", "ws://%s:%d/" % address, "echo"]
    read, write = os.pipe()
    os.close(read)
    with open("/dev/full", "wb") as full, os.fdopen(write, "wb") as pipe:
        # The shell closes the descriptors.
        shell = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh"] if place == "closed" else []
        stream = {"a full disk": full, "closed": None, "a pipe without a reader": pipe}[place]
        running = subprocess.Popen([*shell, *words], stdout=stream, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        def served():
            assert running.poll() is None, f"it ended with {running.returncode}"
            try:
                return websocket.connect(address)
            except OSError:
                return None

        with eventually(served, "the listener") as client:
            client.text("hello")
            client.expect_text("hello")
            client.close_cleanly()
        running.terminate()
        assert running.wait(seconds(20)) == 0
    finally:
        running.kill()
        running.wait()


def test_wrong_usage_exits_64_although_its_message_cannot_be_written():
    import subprocess
    with open("/dev/full", "wb") as full:
        got = subprocess.run([str(process.BINARY), "bridge", "nowhere", "nowhere"], stdout=full, stderr=full, check=False)
    assert got.returncode == USAGE


def test_json_logs_have_one_reason_for_each_connection(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--log-format", "json")
    with Wire.connect(gateway.address()) as near:
        near.send(b"hello")
        far = listener.accept()
        assert far.receive(5) == b"hello"
    far.expect_end()
    far.close()
    gateway.settle(gateway.descriptors())
    assert gateway.stop() == 0
    gateway.log.wait_for_end()
    lines = [json.loads(line) for line in gateway.log.all() if line.strip()]
    assert lines, "nothing was logged"
    reported = [line for line in lines if "downstream/" in json.dumps(line) or "upstream/" in json.dumps(line)]
    assert len(reported) == 1 and "clean" in json.dumps(reported[0]), lines


# -- SIGTERM

def test_sigterm_without_connections_exits_0(bridge, listener):
    assert bridge("tcp://127.0.0.1:0", listener.url("tcp")).stop(within=20) == 0


def test_sigint_drains(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"))
    gateway.signal(signal.SIGINT)
    assert gateway.wait(within=20) == 0


def test_sigterm_closes_websockets_with_1001_and_exits_0(bridge):
    gateway = bridge("ws://127.0.0.1:0/echo", "echo", "--drain-timeout", "3s")
    clients = [websocket.connect(gateway.address(), "/echo") for _ in range(20)]
    for client in clients:
        client.text("hello")
        client.expect_text("hello")
    gateway.signal(signal.SIGTERM)
    for client in clients:
        got = client.expect_close(1001)
        client.write(CLOSE, got.payload)
        client.expect_end()
    assert gateway.wait() == 0


def refuses(gateway):
    try:
        # Accepted before the signal arrived: the reset keeps it from delaying the drain.
        Wire.connect(gateway.address(), within=2).reset()
        return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        # The listener was closed while this connection was in its queue.
        return False


def test_a_draining_gateway_refuses_new_connections_and_finishes_open_ones(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--drain-timeout", "60s")
    near = Wire.connect(gateway.address())
    near.send(b"before")
    far = listener.accept()
    assert far.receive(6) == b"before"
    gateway.signal(signal.SIGTERM)

    eventually(lambda: refuses(gateway), "new connections are refused")
    near.send(b"during")
    assert far.receive(6) == b"during"
    near.finish_sending()
    far.expect_end()
    far.send(b"after")
    far.finish_sending()
    assert near.receive(5) == b"after"
    near.expect_end()
    assert gateway.wait() == 0


def test_the_drain_ends_at_its_timeout(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--drain-timeout", "1s")
    near = Wire.connect(gateway.address())
    near.send(b"held")
    assert listener.accept().receive(4) == b"held"
    gateway.signal(signal.SIGTERM)
    assert gateway.wait(within=10) == 0


def test_a_second_signal_ends_the_drain_at_once(bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--drain-timeout", "600s")
    near = Wire.connect(gateway.address())
    near.send(b"held")
    far = listener.accept()
    assert far.receive(4) == b"held"
    gateway.signal(signal.SIGTERM)

    eventually(lambda: refuses(gateway), "the drain has begun")
    gateway.signal(signal.SIGTERM)
    gateway.wait()
    assert gateway.trapped() is None


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM])
def test_a_signal_without_a_meaning_is_ignored(number, bridge):
    gateway = bridge("tcp://127.0.0.1:0", "echo")
    near = Wire.connect(gateway.address())
    gateway.signal(number)
    for _ in range(100):
        near.send(b"here")
        assert near.receive(4) == b"here"
    near.finish_sending()
    near.expect_end()
    assert gateway.running()
    assert gateway.stop() == 0


# -- SIGHUP

def test_sighup_during_a_drain_is_logged_and_ignored(sluice, tmp_path, listener):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="far")],
        [configuration.route("far", listener.url("tcp"))], drain_timeout="600s")
    gateway = sluice("serve", "--config", file)
    near = Wire.connect(gateway.address())
    near.send(b"held")
    far = listener.accept()
    assert far.receive(4) == b"held"
    gateway.signal(signal.SIGTERM)
    eventually(lambda: refuses(gateway), "the drain has begun")
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("not reloaded: the gateway is stopping")
    gateway.signal(signal.SIGTERM)
    gateway.wait()
    assert gateway.trapped() is None


def two_routes(tmp_path, first, second, **more):
    return configuration.write(
        tmp_path / "sluice.yaml",
        [configuration.listener("one", "tcp://127.0.0.1:0", route="one"), configuration.listener("two", "tcp://127.0.0.1:0", route="two")],
        [configuration.route("one", "one"), configuration.route("two", "two")],
        [configuration.upstream("one", first), configuration.upstream("two", second)], **more)


def test_sighup_applies_changes_and_keeps_unchanged_routes(sluice, tmp_path):
    with Listener() as first, Listener() as second, Listener() as third:
        gateway = sluice("serve", "--config", two_routes(tmp_path, first.url("tcp"), second.url("tcp")))
        kept = Wire.connect(gateway.address(0))
        kept.send(b"before")
        kept_far = first.accept()
        assert kept_far.receive(6) == b"before"

        two_routes(tmp_path, first.url("tcp"), third.url("tcp"))
        gateway.signal(signal.SIGHUP)

        def moved():
            with Wire.connect(gateway.address(1)) as near:
                near.send(b"x")
                third.socket.settimeout(0.5)
                try:
                    with third.accept() as far:
                        return far.receive(1) == b"x"
                except AssertionError:
                    return False

        eventually(moved, "the new target of the changed route")
        kept.send(b"after")
        assert kept_far.receive(5) == b"after"
        with Wire.connect(gateway.address(0)) as near:
            near.send(b"y")
            assert first.accept().receive(1) == b"y"


def test_sighup_with_an_invalid_configuration_changes_nothing_and_logs_the_error(sluice, tmp_path):
    with Listener() as first, Listener() as second:
        file = two_routes(tmp_path, first.url("tcp"), second.url("tcp"))
        gateway = sluice("serve", "--config", file)
        file.write_text("listeners: [nonsense]\n")
        gateway.signal(signal.SIGHUP)
        gateway.wait_log("sluice.yaml|config")
        with Wire.connect(gateway.address(0)) as near:
            near.send(b"y")
            assert first.accept().receive(1) == b"y"


def test_sighup_reloads_certificates(sluice, authority, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def put(name):
        for target, source in zip((certificate, key), authority.issue(name, names="DNS:localhost")):
            target.write_bytes(source.read_bytes())

    put("before")
    file = configuration.write(
        tmp_path / "sluice.yaml",
        [configuration.listener("web", "wss://127.0.0.1:0", tls={"certificate": str(certificate), "key": str(key)})],
        [configuration.route("echo", "echo", path="/echo")])
    gateway = sluice("serve", "--config", file)

    def common_name():
        with websocket.connect(gateway.address(), "/echo", tls=authority.client_context()) as client:
            return dict(pair for group in client.socket.getpeercert()["subject"] for pair in group)["commonName"]

    assert common_name() == "before"
    held = websocket.connect(gateway.address(), "/echo", tls=authority.client_context())
    put("after")
    gateway.signal(signal.SIGHUP)
    eventually(lambda: common_name() == "after", "the new certificate")
    held.text("still here")
    held.expect_text("still here")


@pytest.mark.parametrize("dates, found", [
    ({"ends": "20210101000000Z"}, "has expired"), ({"starts": "20490101000000Z"}, "is not valid yet")], ids=["expired", "early"])
def test_a_certificate_outside_its_validity_is_logged_at_start_and_reload(sluice, authority, tmp_path, dates, found):
    (bound,) = dates
    valid, outdated = authority.issue(f"renewed-{bound}"), authority.issue(f"outdated-{bound}", **dates)

    def write(leaf):
        tls = {"certificate": str(leaf[0]), "key": str(leaf[1])}
        return configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "wss://127.0.0.1:0", tls=tls)],
            [configuration.route("echo", "echo", path="/echo")])

    gateway = sluice("serve", "--config", write(outdated))
    pattern = rf"listeners\[0\]\.tls\.certificate: .*{found}: .*{outdated[0].name}"
    gateway.wait_log(pattern)
    start = len(gateway.log.all())
    write(valid)
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("reloaded ", start=start)
    assert not [line for line in gateway.log.all()[start:] if found in line]
    start = len(gateway.log.all())
    write(outdated)
    gateway.signal(signal.SIGHUP)
    gateway.wait_log(pattern, start=start)


def test_sighup_opens_and_closes_listeners(sluice, tmp_path):
    def write(*names):
        return configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener(name, f"ws+unix://{tmp_path / name}.sock") for name in names],
            [configuration.route("echo", "echo", path="/echo")])

    gateway = sluice("serve", "--config", write("first", "second"))
    held = websocket.connect(tmp_path / "first.sock", "/echo")
    write("first", "third")
    gateway.signal(signal.SIGHUP)
    eventually((tmp_path / "third.sock").exists, "the new listener")
    eventually(lambda: not (tmp_path / "second.sock").exists(), "the old listener gone")
    with websocket.connect(tmp_path / "third.sock", "/echo") as client:
        client.text("hello")
        client.expect_text("hello")
    held.text("still here")
    held.expect_text("still here")


def test_reloads_refuse_no_client(sluice, tmp_path):
    kept, first, second, renamed = free_port(), free_port(), free_port(), free_port()

    def write(turn):
        odd = turn % 2 == 1
        listeners = [
            configuration.listener("kept", f"ws://127.0.0.1:{kept}", max_connections=1000 + turn),
            configuration.listener("moved", f"ws://127.0.0.1:{first if odd else second}"),
            configuration.listener("odd-name" if odd else "even-name", f"ws://127.0.0.1:{renamed}"),
            configuration.listener(f"fresh-{turn}", f"ws+unix://{tmp_path}/{turn % 3}.sock")]
        return configuration.write(
            tmp_path / "sluice.yaml", listeners, [configuration.route("echo", "echo", path="/echo")],
            control={"address": "none"})

    gateway = sluice("serve", "--config", write(0))
    reported = {place: collections.Counter() for place in ("kept", "moved", "renamed", "fresh")}
    over = threading.Event()

    def storm(place, addresses):
        for address in itertools.cycle(addresses):
            if over.is_set():
                return
            try:
                with Wire.connect(address, within=10) as wire:
                    wire.send(request("/echo"))
                    reported[place][parse_head(wire.receive_head()).status] += 1
            except (OSError, AssertionError):
                # No listener has this address at the moment.
                reported[place]["none"] += 1

    loopback = "127.0.0.1"
    threads = [threading.Thread(target=storm, args=one) for one in (
        ("kept", [(loopback, kept)]), ("moved", [(loopback, first), (loopback, second)]), ("renamed", [(loopback, renamed)]),
        ("fresh", [tmp_path / f"{index}.sock" for index in range(3)]))]
    for thread in threads:
        thread.start()
    try:
        for turn in range(1, sized(40, 400)):
            write(turn)
            start = len(gateway.log.all())
            gateway.signal(signal.SIGHUP)
            assert "not reloaded" not in gateway.wait_log("reloaded", start=start)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    for place, answers in reported.items():
        assert answers[101] > 10 and not set(answers) - {101, "none"}, reported
    assert set(reported["kept"]) == {101}, reported


def test_a_listener_changes_its_kind_and_name_on_the_same_address(sluice, tmp_path):
    port = free_port()

    def write(listener, *routes):
        return configuration.write(tmp_path / "sluice.yaml", [listener], list(routes), control={"address": "none"})

    def reload():
        start = len(gateway.log.all())
        gateway.signal(signal.SIGHUP)
        return gateway.wait_log("reloaded", start=start)

    web = configuration.route("echo", "echo", path="/echo")
    gateway = sluice("serve", "--config", write(configuration.listener("a", f"ws://127.0.0.1:{port}"), web))
    held = websocket.connect(("127.0.0.1", port), "/echo")
    write(configuration.listener("a", f"tcp://127.0.0.1:{port}", route="raw"), configuration.route("raw", "echo"))
    assert "not reloaded" not in reload()
    with Wire.connect(("127.0.0.1", port)) as raw:
        raw.send(b"raw")
        assert raw.receive(3) == b"raw"
    write(configuration.listener("b", f"ws://127.0.0.1:{port}"), web)
    assert "not reloaded" not in reload()
    with websocket.connect(("127.0.0.1", port), "/echo") as client:
        client.text("hello")
        client.expect_text("hello")
    with Listener() as taken:
        configuration.write(
            tmp_path / "sluice.yaml",
            [configuration.listener("b", f"tcp://127.0.0.1:{port}", route="raw"),
             configuration.listener("c", f"tcp://127.0.0.1:{taken.port}", route="raw")],
            [configuration.route("raw", "echo")], control={"address": "none"})
        assert "not reloaded" in reload()
    with websocket.connect(("127.0.0.1", port), "/echo") as client:
        client.text("as before")
        client.expect_text("as before")
    held.text("still here")
    held.expect_text("still here")


def test_sighup_changes_the_mode_of_a_unix_socket(sluice, tmp_path):
    path = tmp_path / "web.sock"

    def write(mode):
        return configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", f"ws+unix://{path}", mode=mode)],
            [configuration.route("echo", "echo", path="/echo")])

    gateway = sluice("serve", "--config", write("0600"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    held = websocket.connect(path, "/echo")
    write("0660")
    gateway.signal(signal.SIGHUP)
    eventually(lambda: stat.S_IMODE(path.stat().st_mode) == 0o660, "the new mode")
    for client in (held, websocket.connect(path, "/echo")):
        client.text("still here")
        client.expect_text("still here")


# -- systemd

def test_systemd_is_notified_of_ready_reloading_and_stopping(sluice, tmp_path):
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(10))
        messages = []

        def expect_message(word):
            while not any(word in message for message in messages):
                messages.append(notify.recv(4096).decode())

        gateway = sluice("serve", "--config", echo_file(tmp_path), environment={"NOTIFY_SOCKET": str(where)})
        expect_message("READY=1")
        messages.clear()
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        gateway.signal(signal.SIGHUP)
        expect_message("RELOADING=1")
        # systemd's notify-reload ignores a message without the timestamp (sd_notify(3)).
        instant = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)\n?", messages[-1])
        assert instant, messages
        assert before <= int(instant.group(1)) * 1000 + 999 <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 999
        expect_message("READY=1")
        gateway.signal(signal.SIGTERM)
        expect_message("STOPPING=1")
        assert gateway.wait() == 0


@pytest.mark.parametrize("name", ["0", "public"])
def test_a_socket_passed_by_systemd_is_used(sluice, name):
    with socket.socket() as theirs:
        theirs.bind(("127.0.0.1", 0))
        theirs.listen(128)
        number = theirs.fileno()
        # systemd passes the socket as descriptor 3 and sets LISTEN_PID, which is known only once the process exists.
        script = f"exec 3<&{number}; export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=public; exec \"$@\""
        gateway = sluice("bridge", f"ws+systemd://{name}/echo", "echo", inherited=(number,), wrapper=["bash", "-c", script, "bash"])
        with websocket.connect(theirs.getsockname(), "/echo") as client:
            client.text("hello")
            client.expect_text("hello")
        assert gateway.running()


def test_a_socket_passed_to_another_process_is_not_used():
    got = process.run("bridge", "ws+systemd://0/echo", "echo", env={**os.environ, "LISTEN_FDS": "1", "LISTEN_PID": "1"})
    assert got.returncode != 0 and "systemd passed no such socket" in got.stderr, got


def test_a_signal_ends_a_process_that_waits_for_its_configuration(tmp_path):
    file = tmp_path / "sluice.yaml"
    os.mkfifo(file)
    with subprocess.Popen([str(process.BINARY), "serve", "--config", str(file)]) as starting:
        # Opening for writing returns once the process reads.
        with open(file, "wb"):
            starting.send_signal(signal.SIGTERM)
            assert starting.wait(timeout=seconds(10)) == -signal.SIGTERM
