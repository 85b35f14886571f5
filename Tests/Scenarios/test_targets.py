"""Targets that requests name, from a file in the format of websockify's token files, for Python's WebSocket client."""

import signal
import socket
import socketserver
import threading

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from support import configuration, gateway
from support.deadlines import eventually


@pytest.fixture
def greeter():
    """Starts TCP servers that send their name: name -> port."""
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(self.server.greeting)
            # Open until the client leaves.
            self.request.recv(1)

    servers = []

    def start(name):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.greeting = name.encode()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def greeting(url):
    with connect(url, subprotocols=["binary"], open_timeout=60) as one:
        assert one.subprotocol == "binary"
        return one.recv(timeout=60)


def status(url):
    with pytest.raises(InvalidStatus) as refused:
        connect(url, open_timeout=60)
    return refused.value.response.status_code


def answers(url):
    try:
        with connect(url, open_timeout=60):
            return True
    except InvalidStatus:
        return False


def test_a_bridge_connects_to_the_target_that_the_client_names(bridge, greeter, tmp_path):
    tokens = tmp_path / "vnc.tokens"
    tokens.write_text(f"# desks\none: 127.0.0.1:{greeter('first')}\ntwo: localhost:{greeter('second')}\n")
    one = bridge("ws://127.0.0.1:0/websockify", "--targets", tokens, "--web", tmp_path)
    url = f"ws://127.0.0.1:{one.port()}/websockify?token="
    assert [greeting(url + name) for name in ("one", "two", "one")] == [b"first", b"second", b"first"]
    assert status(url + "three") == 404 and status(url) == 404
    # A target that is added now is there within a second.
    with open(tokens, "a") as file:
        file.write(f"three: 127.0.0.1:{greeter('third')}\n")
    eventually(lambda: answers(url + "three"), "the new target is in use", within=30)
    assert greeting(url + "three") == b"third"
    one.wait_log(r"connection closed.*detail=\"no target of this name\"")


def test_a_target_may_be_a_unix_socket_and_a_segment_of_the_path(sluice, greeter, tmp_path):
    folder = tmp_path / "targets"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "a.sock"))
        listener.listen()
        (folder / "a").write_text(f"local: unix://{tmp_path / 'a.sock'}\n")
        (folder / "b").write_text(f"remote: 127.0.0.1:{greeter('remote')}\n")
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [{"name": "desks", "path": "/desk/{desk}", "targets": {"file": str(folder), "parameter": "desk"}}])
        one = sluice("serve", "--config", file)
        url = f"ws://127.0.0.1:{one.port()}/desk/"
        assert greeting(url + "remote") == b"remote"
        with connect(url + "local", open_timeout=60) as client:
            accepted, _ = listener.accept()
            client.send(b"hello")
            assert accepted.recv(5) == b"hello"
            accepted.close()
        assert status(url + "none") == 404


def test_check_and_reload_name_the_line_of_a_mistake(sluice, greeter, tmp_path):
    tokens = tmp_path / "vnc.tokens"
    tokens.write_text(f"one: 127.0.0.1:{greeter('first')}\n")
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [{"name": "desks", "path": "/vnc", "targets": str(tokens)}])
    assert gateway.run("check", "--config", file).returncode == 0
    one = sluice("serve", "--config", file)
    url = f"ws://127.0.0.1:{one.port()}/vnc?token=one"
    tokens.write_text("one: 127.0.0.1:1\ntwo: 127.0.0.1\n")
    checked = gateway.run("check", "--config", file)
    assert checked.returncode == 78
    assert "routes[0].targets: expected a file with lines NAME: HOST:PORT, found an unusable file: " in checked.stderr
    assert f"{tokens}: line 2: expected a port" in checked.stderr
    eventually(lambda: greeting(url) == b"first" and any("stay as they were" in line for line in one.log.all()),
               "the mistake is reported, and the targets are in use", within=30)
    one.wait_log("targets of route 'desks' stay as they were: .*line 2")
    one.signal(signal.SIGHUP)
    one.wait_log("reload.*line 2")
    assert greeting(url) == b"first"
    tokens.unlink()
    checked = gateway.run("check", "--config", file)
    assert checked.returncode == 78 and "expected a file or directory that can be read, found no such file at" in checked.stderr


@pytest.mark.parametrize("words, problem", [
    ([], "TARGET: expected an address to connect to, echo or chat, found nothing; add it, or --targets FILE"),
    (["echo", "--targets", "t"], "--targets: expected either TARGET or --targets, found both; leave out one of the two"),
    (["--targets", "t", "--require-target"], "--require-target: expected TARGET with it, found --targets; leave it out"),
    (["--targets", "t", "--proxy", "http://127.0.0.1:1"], '--proxy: expected TARGET to be an address, found --targets; leave out --proxy'),
])
def test_a_bridge_needs_one_kind_of_target(words, problem):
    done = gateway.run("bridge", "ws://127.0.0.1:0", *words)
    assert done.returncode == 64 and problem in done.stderr
