"""Pipes, sockets and peers that are not read, or read slowly: writing to them delays nothing else."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from support import configuration, websocket
from support.deadlines import eventually, seconds, sized
from support.gateway import BINARY
from support.websocket import PING, PONG, Listener, Wire

INTERRUPTED = 130


@contextlib.contextmanager
def pipe(full):
    """A pipe that is not read; its reading end stays open."""
    reading, writing = os.pipe()
    try:
        if full:
            os.set_blocking(writing, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(writing, b"\n" * 4096):
                    pass
            # The flag belongs to the open file, which the child process shares.
            os.set_blocking(writing, True)
        with os.fdopen(writing, "wb", buffering=0) as end:
            yield end, reading
    finally:
        os.close(reading)


@contextlib.contextmanager
def running(*words, output=subprocess.DEVNULL, errors=subprocess.DEVNULL, environment=None):
    process = subprocess.Popen(
        [str(BINARY), *(str(word) for word in words)], stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
        env={**os.environ, **(environment or {})})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process, within):
    """Waits for the process; returns its exit code."""
    try:
        return process.wait(seconds(within))
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it did not end within {seconds(within):g} s") from None


def reached(path):
    """Connects to a Unix socket once it has a listener."""
    def connected():
        try:
            return Wire.connect(path)
        except OSError:
            return None
    return eventually(connected, f"a listener at {path}", within=15)


def make_connections(path, count):
    """Opens short connections, each of which logs two lines."""
    for _ in range(count):
        with Wire.connect(path) as wire:
            wire.send(b"x")
            assert wire.receive(1) == b"x"


# -- the log

def test_an_unread_log_blocks_neither_connections_nor_the_exit(tmp_path):
    path = tmp_path / "raw.sock"
    with pipe(full=False) as (log, _), running("bridge", f"unix://{path}", "echo", errors=log) as process:
        reached(path).close()
        # Many more than the pipe holds.
        make_connections(path, 600)
        process.send_signal(signal.SIGTERM)
        assert ended(process, 15) == 0


def test_a_second_signal_ends_the_process_at_once_with_an_unread_log(tmp_path):
    path = tmp_path / "raw.sock"
    with pipe(full=True) as (log, _), running(
            "bridge", f"unix://{path}", "echo", "--drain-timeout", "600s", errors=log) as process:
        with reached(path) as held:
            held.send(b"x")
            assert held.receive(1) == b"x"
            process.send_signal(signal.SIGTERM)
            eventually(lambda: not path.exists(), "the drain has begun")
            process.send_signal(signal.SIGTERM)
            assert ended(process, 6) == 0


# -- standard output

def test_an_unread_standard_output_blocks_neither_the_start_nor_the_exit(tmp_path):
    path = tmp_path / "raw.sock"
    with pipe(full=True) as (output, _), running("bridge", f"unix://{path}", "echo", output=output) as process:
        for _ in range(4):
            with reached(path) as wire:
                wire.send(b"x")
                assert wire.receive(1) == b"x"
        process.send_signal(signal.SIGTERM)
        assert ended(process, 15) == 0


@pytest.mark.parametrize("signals, within", [(1, 15), (2, 5)])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["plain", "json"])
def test_connect_exits_on_signals_with_an_unread_output(bridge, form, signals, within):
    gateway = bridge("ws://127.0.0.1:0/", "echo")
    with pipe(full=True) as (output, _), running(
            "connect", gateway.url(), *form, "--wait", "none", output=output) as process:
        eventually(lambda: handlers(process), "signal handlers")
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            eventually(lambda: not pending(process), "delivery of the signal")
        assert ended(process, within) in (0, INTERRUPTED)


def status(process, name):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(next(line.split()[1] for line in file if line.startswith(name + ":")), 16)


def handlers(process):
    """Whether SIGTERM has a handler. Its mask says nothing: each creation of a thread blocks all signals briefly."""
    return status(process, "SigCgt") & 1 << signal.SIGTERM - 1


def pending(process):
    """Whether SIGTERM is still pending; false for a process that has ended."""
    return process.poll() is None and status(process, "ShdPnd") & 1 << signal.SIGTERM - 1


# -- the service manager

@contextlib.contextmanager
def service_manager(path):
    """A notify socket whose queue is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filling:
        notify.bind(str(path))
        filling.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                filling.sendto(b"FILLED=1", str(path))
        notify.settimeout(seconds(10))
        yield notify


def test_an_unread_notify_socket_does_not_block_the_gateway(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="raw")],
        [configuration.route("raw", "echo")], control={"address": "none"})
    with service_manager(tmp_path / "notify.sock"):
        gateway = sluice("serve", "--config", file, environment={
            "NOTIFY_SOCKET": str(tmp_path / "notify.sock"), "WATCHDOG_USEC": "20000"})
        gateway.wait_log("cannot notify the service manager")
        gateway.signal(signal.SIGHUP)
        gateway.wait_log("reloaded")
        with Wire.connect(gateway.address()) as wire:
            wire.send(b"x")
            assert wire.receive(1) == b"x"
        assert gateway.stop(within=10) == 0
        gateway.log.wait_for_end()
        assert sum("service manager" in line for line in gateway.log.all()) == 1


@pytest.mark.parametrize("environment", [{}, {"WATCHDOG_USEC": "200000"}], ids=["alone", "watched"])
def test_the_latest_state_is_notified_once_the_socket_is_read(sluice, tmp_path, environment):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="raw")],
        [configuration.route("raw", "echo")], control={"address": "none"})
    where = tmp_path / "notify.sock"
    with service_manager(where) as notify:
        gateway = sluice("serve", "--config", file, environment={"NOTIFY_SOCKET": str(where), **environment})
        gateway.wait_log("cannot notify the service manager")
        message = b"FILLED=1"
        while message == b"FILLED=1":
            message = notify.recv(4096)
        assert message.startswith(b"READY=1"), message
        assert gateway.stop() == 0


# -- WebSocket peers

PIECE, RATE = 25_000, 600_000
SIZE = sized(3_500_000, 20_000_000)


class SlowReader:
    """Reads a stream of frames at a limited rate, and answers each Ping."""

    def __init__(self, client):
        self.client = client
        self.bytes = 0
        self.pings = 0
        self._buffer = bytearray()

    def read(self):
        piece = self.client.receive_some(PIECE)
        assert piece, "the connection ended"
        self._buffer += piece
        self._take()
        time.sleep(len(piece) / RATE)

    def _take(self):
        while len(self._buffer) >= 2:
            length, head = self._buffer[1] & 0x7F, 2
            if length >= 126:
                head = 4 if length == 126 else 10
                length = int.from_bytes(self._buffer[2:head], "big")
            if len(self._buffer) < head + length:
                return
            payload = bytes(self._buffer[head:head + length])
            if self._buffer[0] & 0xF == PING:
                self.pings += 1
                self.client.write(PONG, payload)
            else:
                self.bytes += length
            del self._buffer[:head + length]


@pytest.fixture
def flood(sluice, tmp_path, authority, server_certificate):
    """A target that sends many bytes to a WebSocket client with a large buffer."""
    kept = []

    def start(scheme):
        target = Listener()
        kept.append(target)
        tls = {"tls": {"certificate": str(server_certificate[0]), "key": str(server_certificate[1])}} if scheme == "wss" else {}
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", f"{scheme}://127.0.0.1:0", **tls)],
            [configuration.route("flood", target.url("tcp"), path="/", ping_interval="1s", pong_timeout="2s")],
            control={"address": "none"})
        gateway = sluice("serve", "--config", file)
        context = authority.client_context() if scheme == "wss" else None
        client = websocket.connect(gateway.address(), "/", tls=context, receive_buffer=1 << 20)
        sender = target.accept()
        sending = threading.Thread(target=pour, args=(sender,), daemon=True)
        sending.start()
        kept.extend([client, sender])
        return gateway, SlowReader(client)

    yield start
    for one in kept:
        one.close()


def pour(sender):
    sender.socket.settimeout(None)
    with contextlib.suppress(OSError):
        sender.socket.sendall(bytes(SIZE))


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_a_slow_reader_receives_everything(flood, scheme):
    # Reading the bytes that the kernels buffer before a Ping takes several times the pong timeout.
    gateway, reader = flood(scheme)
    while reader.bytes < SIZE:
        reader.read()
    assert gateway.running() and reader.pings > 0


def test_a_stopped_reader_is_disconnected(flood):
    gateway, reader = flood("ws")
    while reader.bytes < SIZE // 3:
        reader.read()
    assert "downstream/relaying/unresponsive" in gateway.wait_log("connection closed", within=20)
