"""deploy/sluice.service and deploy/sluice.socket: what systemd says of them, and that the gateway lives within them. No test
runs systemd itself; its own programs judge the units, and what the service may not do is held against what it does."""

import http.server
import re
import shlex
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from support import configuration, documents, gateway as process, units, websocket
from support.control import Control
from support.deadlines import eventually, seconds
from support.gateway import BINARY
from support.programs import find, free_port
from support.websocket import Wire

INSTALLED, CONFIGURED = "/usr/local/bin/sluice", "/etc/sluice/sluice.yaml"
# Tenths, as systemd-analyze counts; what is left of it is the network, which is what a gateway is for.
EXPOSURE = 15
CAP_NET_BIND_SERVICE = 10


@pytest.fixture(scope="module")
def service():
    return units.Unit("sluice.service")


@pytest.fixture(scope="module")
def socket_unit():
    return units.Unit("sluice.socket")


def echo_file(folder, listen="ws://127.0.0.1:0", **more):
    return configuration.write(
        folder / "sluice.yaml", [configuration.listener("web", listen)], [configuration.route("echo", "echo", path="/echo")],
        control={"address": "none"}, **more)


def words(command, file):
    """A command of the unit, for the binary and a configuration that are here; without the name of the program."""
    program, *rest = shlex.split(command)
    assert program == INSTALLED
    return [str(file) if word == CONFIGURED else word for word in rest]


# -- what systemd says

def test_systemd_finds_nothing_wrong(service, socket_unit, tmp_path):
    files = [service.moved(tmp_path, {INSTALLED: BINARY}), socket_unit.moved(tmp_path, {})]
    got = units.analyze("verify", *files)
    assert (got.returncode, got.stdout + got.stderr) == (0, ""), got.stdout + got.stderr


def test_the_service_is_exposed_to_little(service):
    got = units.analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", service.file)
    assert got.returncode == 0, "\n".join(line for line in got.stdout.splitlines() if line.startswith(("✗", "→"))) + got.stderr


# -- what the unit runs

def test_the_check_before_the_start_lets_good_files_pass_and_no_others(service, tmp_path):
    command = words(service["Service", "ExecStartPre"], echo_file(tmp_path))
    assert process.run(*command).returncode == 0
    (tmp_path / "sluice.yaml").write_text("listeners: nonsense\n")
    assert str(process.run(*command).returncode) in service["Service", "RestartPreventExitStatus"].split()


def test_it_starts_reloads_and_stops_as_the_unit_wants(service, sluice, tmp_path):
    assert service["Service", "Type"] == "notify" and service["Service", "KillSignal"] == "SIGTERM"
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))

        def hear(word):
            while word not in notify.recv(4096).decode().splitlines():
                pass

        gateway = sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)), environment={"NOTIFY_SOCKET": str(where)})
        hear("READY=1")
        command = service["Service", "ExecReload"].replace("$MAINPID", str(gateway.pid))
        assert subprocess.run(shlex.split(command), timeout=seconds(10)).returncode == 0
        hear("RELOADING=1")
        hear("READY=1")
        gateway.signal(signal.SIGTERM)
        hear("STOPPING=1")
        assert gateway.wait() == 0


def test_it_says_that_it_is_alive_as_often_as_systemd_wants(service, sluice, tmp_path):
    assert service.seconds(("Service", "WatchdogSec")) >= 10
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))
        sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)),
               environment={"NOTIFY_SOCKET": str(where), "WATCHDOG_USEC": "200000"})
        heard = [notify.recv(4096) for _ in range(5)]
        assert heard[0].startswith(b"READY=1") and heard[1:] == [b"WATCHDOG=1"] * 4


def test_a_watchdog_meant_for_another_process_is_not_fed(service, sluice, tmp_path):
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))
        gateway = sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)),
                         environment={"NOTIFY_SOCKET": str(where), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"})
        assert gateway.stop() == 0
        heard = [notify.recv(4096) for _ in range(2)]
        assert heard[0].startswith(b"READY=1") and heard[1].startswith(b"STOPPING=1"), heard


def test_it_may_drain_to_its_end(service):
    page = (documents.ARTICLES / "Configuration.md").read_text()
    drain = int(re.search(r"### `drain-timeout`.*?- Default: `?(\d+)s", page, re.DOTALL).group(1))
    assert service.seconds(("Service", "TimeoutStopSec")) > drain


def test_systemd_hands_the_socket_over(service, socket_unit, sluice, tmp_path):
    name, port = socket_unit["Socket", "FileDescriptorName"], free_port()
    assert socket_unit["Socket", "ListenStream"].isdigit()
    file = echo_file(tmp_path, f"ws+systemd://{name}")
    gateway = sluice(*words(service["Service", "ExecStart"], file), ready=False, wrapper=[
        find("systemd-socket-activate"), f"--listen=127.0.0.1:{port}", f"--fdname={name}"])
    gateway.wait_log("Listening on")
    # The first connection starts the service, and waits in the queue until it is up.
    with websocket.connect(("127.0.0.1", port), "/echo", within=20) as client:
        client.text("hello")
        client.expect_text("hello")
    gateway.wait_ready()
    assert gateway.stop() == 0


# -- what the unit forbids

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def work(sluice, folder, certificate, tracer):
    """A gateway that does a little of everything, to its end."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / "files").mkdir()
    tls = {"certificate": str(certificate[0]), "key": str(certificate[1])}
    file = configuration.write(
        folder / "sluice.yaml",
        [configuration.listener("web", "wss://127.0.0.1:0", tls=tls), configuration.listener("raw", "tcp://127.0.0.1:0", route="raw"),
         configuration.listener("local", f"unix://{folder}/raw.sock", mode="0660", route="raw")],
        [configuration.route("echo", "echo", path="/echo", compress=True),
         configuration.route("raw", f"tcp://localhost:{server.server_port}")],
        control={"address": f"unix://{folder}/control.sock", "transfers": {"directories": [str(folder / "files")]}})
    gateway = sluice("serve", "--config", file, wrapper=tracer, environment={"TMPDIR": str(folder)})
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with websocket.connect(gateway.address(0), "/echo", tls=context, deflate={}) as client:
        client.text("hello")
        client.expect_text("hello")
        for address in (gateway.address(1), folder / "raw.sock"):
            with Wire.connect(address, within=20) as near:
                near.send(b"GET / HTTP/1.0\r\n\r\n")
                assert near.receive_all().endswith(b"hello")
        control = Control.of(gateway)
        assert len(control.list()) >= 1
        name = control.post("/v1/transfers", {"url": f"http://localhost:{server.server_port}/", "destination": str(folder / "files" / "got")}
                            ).expect(201)["id"]
        eventually(lambda: control.get(f"/v1/transfers/{name}").expect(200)["state"] == "finished", "the transfer", 30)
        gateway.signal(signal.SIGHUP)
        gateway.wait_log("reloaded", within=20)
    assert gateway.stop() == 0
    server.shutdown()
    server.server_close()
    return gateway.pid


@pytest.fixture(scope="module")
def calls(service, tmp_path_factory, server_certificate):
    """Every system call of such a life, a line each as strace writes it; what the unit refuses fails as it does there."""
    folder = tmp_path_factory.mktemp("traced")
    trace = folder / "trace"
    _, refused = units.system_calls(service.values["Service", "SystemCallFilter"])
    error = service["Service", "SystemCallErrorNumber"]
    # -D: the process that is started is the gateway, and strace one beside it. `?`: not every machine has every call.
    tracer = [find("strace"), "-D", "-f", "-q", "-o", trace, "-e", f"inject={','.join(f'?{name}' for name in sorted(refused))}:error={error}"]
    started = []

    def start(*arguments, **more):
        started.append(process.Gateway(*arguments, **more))
        return started[-1]

    try:
        pid = work(start, folder, server_certificate, tracer)
        eventually(lambda: re.search(rf"^{pid} +\+\+\+ exited", trace.read_text(), re.MULTILINE), "the end of the trace")
    finally:
        for one in started:
            one.kill()
    return folder, [line.split(None, 1)[1] for line in trace.read_text().splitlines()]


def test_it_lives_with_the_system_calls_that_are_let_through(service, calls):
    allowed, _ = units.system_calls(service.values["Service", "SystemCallFilter"])
    made = {match.group(1) for line in calls[1] if (match := re.match(r"(\w+)\(", line))}
    # The library that runs Swift's tasks asks for other priorities of its threads, and does without.
    assert len(made) > 20 and made - allowed <= {"setpriority"}, sorted(made - allowed)


def test_only_the_address_families_of_the_unit_are_used(service, calls):
    made = {match.group(1) for line in calls[1] if (match := re.match(r"socket(?:pair)?\((AF_\w+)", line))}
    assert made and made <= set(service["Service", "RestrictAddressFamilies"].split()), made


def test_no_memory_is_written_and_executed(service, calls):
    assert service["Service", "MemoryDenyWriteExecute"] == "yes"
    wrong = [line for line in calls[1] if re.match(r"mmap.*PROT_WRITE\|PROT_EXEC|(pkey_)?mprotect.*PROT_EXEC", line)]
    assert not wrong, wrong


def test_nothing_is_written_outside_the_folders_that_may_be(service, calls):
    folder, lines = calls
    assert service["Service", "ProtectSystem"] == "strict"
    opened = [match.groups() for line in lines if (match := re.match(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]+)", (\S+)', line))]
    written = {path for path, flags in opened if re.search(r"O_WRONLY|O_RDWR|O_CREAT", flags)}
    assert any(path.startswith(str(folder)) for path in written), opened
    assert not [path for path in written if not path.startswith((str(folder), "/dev/null"))], written


def test_the_capability_of_the_unit_is_enough_for_a_low_port(service, tmp_path):
    assert service["Service", "CapabilityBoundingSet"] == service["Service", "AmbientCapabilities"] == "CAP_NET_BIND_SERVICE"
    apart = documents.isolation()
    if not apart:
        pytest.skip("this system lets nobody have a network of his own, where low ports are free")
    file = echo_file(tmp_path, "ws://127.0.0.1:443")
    limits = [find("setpriv"), "--no-new-privs", "--bounding-set=-all,+net_bind_service", "--inh-caps=-all,+net_bind_service",
              "--ambient-caps=-all,+net_bind_service"]
    gateway = process.Gateway(*words(service["Service", "ExecStart"], file), wrapper=[*apart, *limits])
    try:
        assert gateway.url() == "ws://127.0.0.1:443/echo"
        with open(f"/proc/{gateway.pid}/status", encoding="ascii") as status:
            held = dict(line.rstrip("\n").split(":\t", 1) for line in status)
        assert int(held["CapEff"], 16) == int(held["CapBnd"], 16) == 1 << CAP_NET_BIND_SERVICE and held["NoNewPrivs"] == "1"
        assert gateway.stop() == 0
    finally:
        gateway.kill()
