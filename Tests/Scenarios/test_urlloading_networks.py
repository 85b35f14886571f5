"""The URL loading system where networks come and go, in network namespaces."""

import os
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support import loading, networks
from support.deadlines import eventually
from support.machine import Machine
from support.message_bus import GUESSED_YES, NO, YES, MessageBus, NetworkManager
from support.programs import Program

pytestmark = pytest.mark.skipif(not networks.allowed(), reason="network namespaces are not available")

MULTIPATH = 262  # IPPROTO_MPTCP


class Answerer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """An HTTP server in a network, at all of its addresses."""

    daemon_threads = True

    def __init__(self, network, protocol=0):
        with network.inside():
            super().__init__(("0.0.0.0", 0), Answerer, bind_and_activate=False)
            if protocol:
                self.socket.close()
                self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
            self.server_bind()
            self.server_activate()
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Served(Machine):
    """With a server in the far network, and programs in the near one."""

    def __init__(self):
        super().__init__()
        self.server = Server(self.far)
        self.programs = []

    @property
    def url(self):
        return f"http://{self.far.address}:{self.server.port}/"

    def run(self, *words, interfaces="", url=None, bus="unix:path=/nonexistent"):
        binary = loading.FOLDER / "Loader"
        program = Program(*self.near.entering, binary, "network", url or self.url, *words,
                          env=loading.environment(URLLOADING_INTERFACES=interfaces, DBUS_SYSTEM_BUS_ADDRESS=bus))
        self.programs.append(program)
        return program

    def close(self):
        for program in self.programs:
            program.end()
        self.server.close()
        super().close()


@pytest.fixture
def machine():
    one = Served()
    yield one
    one.close()


def ended(program):
    program.wait()
    return program.output.all()


def awaited(program, line):
    program.output.wait_for(lambda one: one == line, line)


def test_a_machine_without_a_route_is_offline(machine):
    assert ended(machine.run()) == ["failed -1009"]
    machine.join(1)
    assert ended(machine.run()) == ["failed -1009"]
    machine.route(1)
    assert ended(machine.run()) == ["data hello", "connection from 198.18.1.1", "completed"]


def test_a_name_without_a_route_to_a_name_server_is_offline(machine):
    assert ended(machine.run(url="http://server.invalid-name.test/")) == ["failed -1009"]


def test_a_server_that_refuses_or_is_not_there_is_not_offline(machine):
    machine.join(1)
    machine.route(1)
    assert ended(machine.run(url=f"http://{machine.far.address}:1/")) == ["failed -1004"]
    # A neighbour that does not answer, on a link that is there.
    assert ended(machine.run(url="http://198.18.1.77/")) == ["failed -1004"]


def test_a_link_without_its_peer_is_offline(machine):
    machine.join(1)
    machine.far.ip("link", "set", "far1", "down")
    # The kernel tells this end a little later.
    eventually(lambda: "NO-CARRIER" in machine.near.ip("link", "show", "near1"), "the link has no carrier")
    assert ended(machine.run(url="http://198.18.1.77/")) == ["failed -1009"]


def test_a_waiting_task_connects_when_the_link_comes_up(machine):
    machine.join(1, up=False)
    program = machine.run("--waits")
    awaited(program, "waiting")
    # Links and addresses alone do not help.
    machine.near.ip("link", "set", "near1", "up")
    machine.near.ip("address", "add", "198.18.77.1/24", "dev", "near1")
    machine.near.ip("link", "set", "near1", "down")
    assert program.output.all() == ["waiting"]
    machine.near.ip("link", "set", "near1", "up")
    machine.route(1)
    assert ended(program) == ["waiting", "data hello", "connection from 198.18.1.1", "completed"]


class Notifications:
    """The kernel's record of the socket by which a program awaits changes of its networks."""

    def __init__(self, program):
        self.folder = Path(f"/proc/{program.process.pid}")

    def _column(self, name):
        inodes = {os.stat(file).st_ino for file in (self.folder / "fd").iterdir() if os.readlink(file).startswith("socket:")}
        head, *rows = [line.split() for line in (self.folder / "net" / "netlink").read_text().splitlines()]
        for row in (dict(zip(head, row, strict=True)) for row in rows):
            # Family 0 is NETLINK_ROUTE; a socket that asks questions is in no group.
            if row["Eth"] == "0" and int(row["Groups"], 16) and int(row["Inode"]) in inodes:
                return int(row[name])
        raise AssertionError("the program awaits no notifications")

    @property
    def lost(self):
        return self._column("Drops")

    def is_read(self):
        """Whether nothing waits to be read, and the loop has nothing to do within the next second."""
        (loop,) = [task for task in (self.folder / "task").iterdir() if (task / "comm").read_text().strip() == "loop-0"]
        words = (loop / "syscall").read_text().split()
        # epoll_pwait(poller, events, room, milliseconds, ...): of x86-64 and of AArch64; -1 for ever.
        if words[0] not in ("281", "22"):
            return False
        timeout = int(words[4], 16) & 0xFFFFFFFF
        return self._column("Rmem") == 0 and timeout > 1000


def test_a_change_among_lost_notifications_is_noticed(machine, tmp_path):
    machine.join(1, up=False)
    program = machine.run("--waits")
    awaited(program, "waiting")
    notifications = Notifications(program)
    # The first message about an interface is a change; all others that follow here are none.
    machine.near.ip("link", "set", "lo", "mtu", "60000")
    eventually(notifications.is_read, "the first message to be read")
    program.process.send_signal(signal.SIGSTOP)
    batch = tmp_path / "batch"
    batch.write_text("".join(f"link set lo mtu {number}\n" for number in range(10000, 12000)))
    machine.near.ip("-batch", str(batch))
    before = notifications.lost
    assert before > 0
    machine.near.ip("link", "set", "near1", "up")
    machine.route(1)
    # The messages about the new route are among the lost ones.
    assert notifications.lost > before
    program.process.send_signal(signal.SIGCONT)
    assert ended(program) == ["waiting", "data hello", "connection from 198.18.1.1", "completed"]


def test_a_waiting_task_ends_with_its_resource_timeout(machine):
    assert ended(machine.run("--waits", "--resource-timeout", "1")) == ["waiting", "failed -1001"]


def test_a_better_route_of_a_stream_is_reported(machine):
    machine.join(1)
    machine.route(1, metric=200)
    accepted = socket_in(machine.far)
    program = machine.run(url=f"tcp://{machine.far.address}:{accepted.getsockname()[1]}")
    connection, _ = accepted.accept()
    machine.join(2)
    machine.route(2, metric=300)
    machine.route(2, metric=50)
    awaited(program, "better route")
    connection.close()
    accepted.close()
    program.end()
    assert program.output.all().count("better route") == 1


def socket_in(network):
    with network.inside():
        listener = socket.socket()
        listener.bind((network.address, 0))
        listener.listen()
        listener.settimeout(20)
        return listener


@pytest.mark.parametrize(("classes", "option", "reason", "words"), [
    ("cellular", "--no-cellular", "cellular", "cellular expensive"),
    ("expensive", "--no-expensive", "expensive", "expensive"),
    ("constrained", "--no-constrained", "constrained", "constrained")])
def test_a_forbidden_network_is_not_used_if_it_is_the_only_one(machine, classes, option, reason, words):
    machine.join(1)
    machine.route(1)
    interfaces = f"near1={classes}"
    assert ended(machine.run(interfaces=interfaces)) == ["data hello", f"connection from 198.18.1.1 {words}", "completed"]
    assert ended(machine.run(option, interfaces=interfaces)) == [f"failed -1009 {reason}"]
    # Another one is used, although the kernel prefers the first.
    machine.join(2)
    machine.route(2, metric=200)
    assert ended(machine.run(option, interfaces=interfaces)) == ["data hello", "connection from 198.18.2.1", "completed"]


def test_a_task_waits_for_a_network_that_it_may_use(machine):
    machine.join(1)
    machine.route(1)
    program = machine.run("--waits", "--no-cellular", interfaces="near1=cellular")
    awaited(program, "waiting")
    machine.join(2)
    machine.route(2, metric=200)
    assert ended(program) == ["waiting", "data hello", "connection from 198.18.2.1", "completed"]


@pytest.fixture
def bus(tmp_path):
    one = MessageBus(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize("metered", [YES, GUESSED_YES])
def test_a_network_that_networkmanager_calls_metered_is_expensive(machine, bus, metered):
    machine.join(1)
    machine.route(1)
    manager = NetworkManager(bus, near1=metered)
    assert ended(machine.run("--no-expensive", bus=bus.address)) == ["failed -1009 expensive"]
    assert {"GetDevices", "Get Metered", "Get Interface"} <= set(manager.calls)
    # What the user declares comes first, and another network is used.
    assert ended(machine.run("--no-expensive", interfaces="near1=none", bus=bus.address))[-1] == "completed"
    machine.join(2)
    machine.route(2, metric=200)
    lines = ["data hello", "connection from 198.18.2.1", "completed"]
    assert ended(machine.run("--no-expensive", bus=bus.address)) == lines
    manager.close()


def test_a_waiting_task_follows_networkmanager(machine, bus):
    machine.join(1, up=False)
    manager = NetworkManager(bus, near1=NO)
    program = machine.run("--waits", "--no-expensive", bus=bus.address)
    awaited(program, "waiting")
    # It becomes metered before it has a route.
    manager.calls.clear()
    manager.set(near1=YES)
    eventually(lambda: "Get Interface" in manager.calls, "the change to be read")
    machine.near.ip("link", "set", "near1", "up")
    machine.route(1)
    machine.join(2)
    machine.route(2, metric=200)
    assert ended(program) == ["waiting", "data hello", "connection from 198.18.2.1", "completed"]
    manager.close()


def test_a_network_that_is_no_longer_metered_is_used(machine, bus):
    machine.join(1)
    machine.route(1)
    manager = NetworkManager(bus, near1=YES)
    program = machine.run("--waits", "--no-expensive", bus=bus.address)
    awaited(program, "waiting")
    manager.set(near1=NO)
    assert ended(program) == ["waiting", "data hello", "connection from 198.18.1.1", "completed"]
    manager.close()


def test_a_bus_that_does_not_answer_is_not_waited_for(machine, tmp_path):
    machine.join(1)
    machine.route(1)
    place = tmp_path / "bus"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen()
        assert ended(machine.run("--no-expensive", bus=f"unix:path={place}"))[-1] == "completed"
        silent.settimeout(0)
        silent.accept()[0].close()
        # A session that may use all networks does not ask.
        assert ended(machine.run(bus=f"unix:path={place}"))[-1] == "completed"
        with pytest.raises(BlockingIOError):
            silent.accept()


def has_multipath():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, MULTIPATH).close()
        return True
    except OSError:
        return False


@pytest.mark.skipif(not has_multipath(), reason="the kernel has no Multipath TCP")
def test_multipath_is_used_with_a_server_that_has_it(machine):
    machine.join(1)
    machine.route(1)
    assert ended(machine.run("--multipath")) == ["data hello", "connection from 198.18.1.1", "completed"]
    server = Server(machine.far, MULTIPATH)
    url = f"http://{machine.far.address}:{server.port}/"
    assert ended(machine.run("--multipath", url=url)) == ["data hello", "connection from 198.18.1.1 multipath", "completed"]
    assert ended(machine.run(url=url)) == ["data hello", "connection from 198.18.1.1", "completed"]
    server.close()


@pytest.mark.skipif(not has_multipath(), reason="the kernel has no Multipath TCP")
def test_plain_tcp_is_used_where_multipath_is_switched_off(machine):
    machine.join(1)
    machine.route(1)
    # /proc/sys/net is that of the network that the process is in.
    off = [*machine.near.entering, "sh", "-c", "echo 0 > /proc/sys/net/mptcp/enabled"]
    subprocess.run(off, check=True)
    assert ended(machine.run("--multipath")) == ["data hello", "connection from 198.18.1.1", "completed"]
