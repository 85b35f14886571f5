"""Few descriptors and many clients: the process keeps running, logs the lack, and recovers when descriptors are free."""

import contextlib
import re
import resource
import socket
import threading
import time

import pytest

from support import configuration, websocket
from support.configured import Configured
from support.deadlines import eventually, seconds, sized
from support.gateway import run
from support.programs import free_port
from support.websocket import Listener

LIMIT = 256
# The reserve is an eighth of the limit; each loop and the control plane may exceed it by one descriptor.
RESERVE, AHEAD = 32, 6


class Callers:
    """Callers of the control plane that open a connection for each call, until the end of the block."""

    def __init__(self, control, count=4):
        self.control, self.stop, self.served, self.failures = control, threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.call) for _ in range(count)]

    def call(self):
        while not self.stop.is_set():
            try:
                connection = self.control.connection(within=5)
                try:
                    connection.request("GET", "/v1/connections?limit=1000")
                    connection.getresponse().read()
                    self.served += 1
                finally:
                    connection.close()
            except OSError as failure:
                # While there are no descriptors a caller waits in the kernel's queue, perhaps for too long.
                self.failures.append(failure)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def echoes(gateway, payload=b"still here"):
    try:
        with socket.create_connection(gateway.address(), timeout=seconds(1)) as one:
            one.sendall(payload)
            return one.recv(len(payload), socket.MSG_WAITALL) == payload
    except OSError:
        return False


def crowd_of(stack, gateway, count):
    return [stack.enter_context(contextlib.closing(socket.create_connection(gateway.address(), timeout=seconds(5)))) for _ in range(count)]


def keeps_running(gateway, duration):
    """Expects the gateway to keep running for `duration` seconds."""
    end = time.monotonic() + duration
    eventually(lambda: not gateway.running() or time.monotonic() > end, "the time", within=duration + 5)
    assert gateway.running(), f"ended with {gateway.process.poll()}"


def raw(sluice, folder, **more):
    return Configured(
        sluice, folder, [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")], [configuration.route("echo", "echo")], **more)


@pytest.mark.timeout(400)
def test_more_clients_than_descriptors_pause_accepting_and_recover(sluice, tmp_path):
    one = raw(sluice, tmp_path, descriptors=LIMIT, max_connections=10_000)
    idle = one.gateway.descriptors()
    with Callers(one.control) as callers:
        with contextlib.ExitStack() as stack:
            first = crowd_of(stack, one.gateway, 1)[0]
            crowd_of(stack, one.gateway, 2 * LIMIT)
            eventually(lambda: not one.gateway.running() or one.gateway.descriptors() >= LIMIT - RESERVE - AHEAD, "a full process")
            keeps_running(one.gateway, sized(8, 180))
            assert one.gateway.descriptors() <= LIMIT - RESERVE + AHEAD, "clients used the reserve"
            first.sendall(b"unharmed")
            assert first.recv(8, socket.MSG_WAITALL) == b"unharmed"
            pauses = [line for line in one.gateway.log.all() if "accepting paused" in line]
            assert pauses and len(pauses) < 60 and re.search(r"\d+ of 256 in use, 32 kept in reserve; raise LimitNOFILE", pauses[0]), pauses
        before = callers.served
        eventually(lambda: callers.served > before + 10, "callers are served again", within=30)
        eventually(lambda: echoes(one.gateway), "clients are served again", within=30)
    one.gateway.settle(idle)
    assert one.gateway.stop() == 0


def test_waiting_for_descriptors_uses_little_cpu(sluice, tmp_path):
    one = raw(sluice, tmp_path, descriptors=LIMIT, max_connections=10_000)
    with contextlib.ExitStack() as stack:
        crowd_of(stack, one.gateway, LIMIT)
        # The control plane has a pending connection too and cannot accept it.
        stack.enter_context(contextlib.closing(one.control.connection())).connect()
        one.gateway.wait_log("accepting paused")
        before = one.gateway.cpu()
        keeps_running(one.gateway, 2)
        assert one.gateway.cpu() - before < 0.5, "the loop spins while it cannot accept"


def test_the_default_connection_limit_fits_the_descriptors(sluice, tmp_path):
    one = raw(sluice, tmp_path, descriptors=LIMIT)
    with contextlib.ExitStack() as stack, Callers(one.control, 2):
        crowd = []
        for _ in range(2 * LIMIT):
            # The reset may come before connect(2) has returned.
            with contextlib.suppress(ConnectionResetError):
                crowd += crowd_of(stack, one.gateway, 1)

        def holds(wire):
            # tcp(7): the first byte is the state, of which 1 is established.
            return wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"

        def refused():
            return 2 * LIMIT - sum(map(holds, crowd))

        eventually(lambda: refused() > LIMIT, "refused clients")
        assert 2 * LIMIT - refused() > LIMIT / 2, "too few clients were admitted"
        assert one.gateway.descriptors() < LIMIT - RESERVE
        assert not [line for line in one.gateway.log.all() if "accepting paused" in line]
        assert one.gateway.running()


def test_a_soft_limit_lowered_below_the_descriptors_in_use_is_raised_again(sluice, tmp_path):
    one = raw(sluice, tmp_path, descriptors=4096, max_connections=10_000)
    with contextlib.ExitStack() as stack, Callers(one.control) as callers:
        crowd = crowd_of(stack, one.gateway, 300)
        eventually(lambda: one.gateway.descriptors() > 300, "a crowd")
        resource.prlimit(one.gateway.pid, resource.RLIMIT_NOFILE, (128, 4096))
        crowd_of(stack, one.gateway, 100)
        eventually(lambda: resource.prlimit(one.gateway.pid, resource.RLIMIT_NOFILE) == (4096, 4096), "the former limit")
        keeps_running(one.gateway, sized(5, 120))
        crowd[0].sendall(b"unharmed")
        assert crowd[0].recv(8, socket.MSG_WAITALL) == b"unharmed"
        before = callers.served
        eventually(lambda: callers.served > before + 10, "callers are served again", within=30)
        eventually(lambda: echoes(one.gateway), "clients are served again", within=30)


def test_upstream_connections_do_not_use_the_reserve(sluice, tmp_path):
    with Listener() as upstream:
        one = Configured(
            sluice, tmp_path, [configuration.listener("raw", "tcp://127.0.0.1:0", route="on")],
            [configuration.route("on", upstream.url("tcp"))], descriptors=LIMIT, max_connections=10_000)
        with contextlib.ExitStack() as stack, Callers(one.control, 2):
            crowd_of(stack, one.gateway, LIMIT)
            line = one.gateway.wait_log("reason=gateway/connecting/system")
            assert line
            keeps_running(one.gateway, sized(2, 20))
            assert one.gateway.descriptors() <= LIMIT - RESERVE + AHEAD


@pytest.mark.parametrize("limits, text", [
    ((256, 4096), "at most 4096, raised from 256"), ((512, 512), "at most 512")])
def test_the_soft_limit_is_raised_to_the_hard_limit(sluice, limits, text):
    gateway = sluice("bridge", "tcp://127.0.0.1:0", "echo", descriptors=limits)
    assert text in gateway.wait_log("descriptors: ")
    assert resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE) == (limits[1], limits[1])


def test_a_configured_limit_above_the_descriptors_is_warned_of(sluice, tmp_path):
    one = raw(sluice, tmp_path, descriptors=LIMIT, max_connections=10_000)
    assert re.search(r"max-connections is 10000, but the limit of 256 descriptors permits \d+", one.gateway.wait_log("max-connections is"))


@pytest.mark.parametrize("limit", range(16, 60, 2))
def test_a_gateway_with_too_few_descriptors_serves_or_says_so(sluice, tmp_path, limit):
    file = tmp_path / "sluice.yaml"
    configuration.write(
        file, [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")], [configuration.route("echo", "echo")],
        control={"address": "http://127.0.0.1:0"})
    gateway = sluice("serve", "--config", file, descriptors=limit, ready=False)
    eventually(lambda: "ready" in gateway.output.all() or not gateway.running(), "its decision")
    if gateway.running():
        assert gateway.stop() == 0
    else:
        assert gateway.wait(1) == 71, gateway.log.all()
        assert "no descriptors: " in gateway.wait_log("raise LimitNOFILE")


# -- another process on the same address

@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_second_process_does_not_share_the_address_of_the_first(sluice, scheme):
    first = sluice("bridge", f"{scheme}://127.0.0.1:0", "echo")
    second = run("bridge", f"{scheme}://127.0.0.1:{first.port()}", "echo")
    assert second.returncode == 71 and "another process listens here" in second.stderr, second.stderr


def test_a_second_service_does_not_share_the_address_of_the_first(sluice, tmp_path):
    first = raw(sluice, tmp_path)
    file = configuration.write(
        tmp_path / "second.yaml", [configuration.listener("raw", f"tcp://0.0.0.0:{first.gateway.port()}", route="echo")],
        [configuration.route("echo", "echo")], control={"address": "none"})
    second = run("serve", "--config", file)
    assert second.returncode == 71 and "another process listens here" in second.stderr, second.stderr


def test_processes_started_at_once_do_not_share_an_address(sluice):
    port = free_port()
    started = [sluice("bridge", f"tcp://127.0.0.1:{port}", "echo", ready=False) for _ in range(6)]
    eventually(lambda: sum(one.running() for one in started) <= 1, "all but one have ended", within=30)
    assert sorted(one.process.poll() or 0 for one in started) == [0, 71, 71, 71, 71, 71]


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_second_control_plane_does_not_take_the_address_of_the_first(sluice, tmp_path, kind):
    address = f"unix://{tmp_path}/control.sock" if kind == "unix" else "http://127.0.0.1:0"
    first = raw(sluice, tmp_path, control={"address": address})
    file = configuration.write(
        tmp_path / "second.yaml", [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")],
        [configuration.route("echo", "echo")], control={"address": first.control.url})
    second = run("serve", "--config", file)
    assert second.returncode == 71 and "another process listens here" in second.stderr, second.stderr
    first.control.get("/livez").expect(200)


def test_a_reload_moves_an_address_to_a_listener_of_another_name(sluice, tmp_path):
    one = raw(sluice, tmp_path)
    port = one.gateway.port()
    one.write(listeners=[configuration.listener("raw", f"tcp://127.0.0.1:{port}", route="echo")])
    one.gateway.signal(1)
    one.gateway.wait_log("reloaded")
    for name, address in (("other", "127.0.0.1"), ("wide", "0.0.0.0"), ("raw", "127.0.0.1")):
        start = len(one.gateway.log.all())
        one.write(listeners=[configuration.listener(name, f"tcp://{address}:{port}", route="echo")])
        one.gateway.signal(1)
        assert "not reloaded" not in one.gateway.wait_log("reloaded", start=start)
        eventually(lambda: echoes(one.gateway), "clients are served")


# -- connections to the control plane without a request

def test_unfinished_requests_do_not_block_the_control_plane(sluice, tmp_path):
    one = Configured(sluice, tmp_path)
    address = (one.control.parts.hostname, one.control.parts.port)
    with contextlib.ExitStack() as stack:
        for _ in range(768):
            wire = stack.enter_context(contextlib.closing(socket.create_connection(address, timeout=seconds(5))))
            wire.sendall(b"GET /livez HTTP/1.1\r\n")
        for path in ("/livez", "/v1/connections"):
            began = time.monotonic()
            one.control.get(path).expect(200)
            assert time.monotonic() - began < seconds(2), f"{path} took {time.monotonic() - began:.1f} s"


def test_memory_of_a_burst_of_handshakes_is_returned_to_the_system(sluice, server_certificate):
    certificate, key = server_certificate
    gateway = sluice(
        "bridge", "wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key, "--handshake-timeout", "60s")
    count = 1000
    # One connection of the burst stays open.
    with contextlib.ExitStack() as stack:
        before = gateway.memory()
        burst = [stack.enter_context(contextlib.closing(socket.create_connection(gateway.address(), timeout=seconds(5)))) for _ in range(count)]
        for wire in burst:
            # The beginning of a ClientHello.
            wire.sendall(bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]) + bytes(100))
        eventually(lambda: gateway.memory() > before + (20 << 20), "handshakes take memory", within=20)
        for wire in burst[:-1]:
            wire.close()
        eventually(lambda: gateway.memory() < before + (12 << 20), "memory given back", within=45)
        assert gateway.running()


def test_memory_of_stalled_tunnels_is_returned_to_the_system(sluice):
    with Listener() as target, contextlib.ExitStack() as stack:
        gateway = sluice("bridge", "ws://127.0.0.1:0/", target.url("tcp"))
        piece = bytes(1 << 16)
        before = gateway.memory()
        clients = []
        for _ in range(300):
            # A client that does not read what its upstream sends.
            clients.append(stack.enter_context(contextlib.closing(websocket.connect(gateway.address(), "/", receive_buffer=4096))))
            upstream = stack.enter_context(contextlib.closing(target.accept().socket))
            upstream.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    upstream.send(piece)
        eventually(lambda: gateway.memory() > before + (16 << 20), "stalled tunnels take memory", within=20)
        for client in clients[:-1]:
            client.reset()
        eventually(lambda: gateway.memory() < before + (8 << 20), "memory given back", within=45)
        assert gateway.running()
