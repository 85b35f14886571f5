"""deploy/sluice.service and deploy/sluice.socket: systemd's own analysis of the units, and a gateway run within their limits.
No test runs systemd itself; a trace of system calls is compared with the restrictions of the service."""

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
# In tenths, as systemd-analyze counts; the remaining exposure is the network, which a gateway needs.
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
    """The arguments of a command of the unit, with the path of a configuration of the test."""
    program, *rest = shlex.split(command)
    assert program == INSTALLED
    return [str(file) if word == CONFIGURED else word for word in rest]


# -- systemd-analyze

def test_systemd_verifies_the_units(service, socket_unit, tmp_path):
    files = [service.moved(tmp_path, {INSTALLED: BINARY}), socket_unit.moved(tmp_path, {})]
    got = units.analyze("verify", *files)
    assert (got.returncode, got.stdout + got.stderr) == (0, ""), got.stdout + got.stderr


def test_the_service_has_a_low_exposure(service):
    got = units.analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", service.file)
    assert got.returncode == 0, "\n".join(line for line in got.stdout.splitlines() if line.startswith(("✗", "→"))) + got.stderr


# -- commands of the unit

def test_the_check_before_the_start_refuses_invalid_files(service, tmp_path):
    command = words(service["Service", "ExecStartPre"], echo_file(tmp_path))
    assert process.run(*command).returncode == 0
    (tmp_path / "sluice.yaml").write_text("listeners: nonsense\n")
    assert str(process.run(*command).returncode) in service["Service", "RestartPreventExitStatus"].split()


def test_the_service_starts_reloads_and_stops_with_notifications(service, sluice, tmp_path):
    assert service["Service", "Type"] == "notify" and service["Service", "KillSignal"] == "SIGTERM"
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))

        def wait_for_message(word):
            while word not in notify.recv(4096).decode().splitlines():
                pass

        gateway = sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)), environment={"NOTIFY_SOCKET": str(where)})
        wait_for_message("READY=1")
        command = service["Service", "ExecReload"].replace("$MAINPID", str(gateway.pid))
        assert subprocess.run(shlex.split(command), timeout=seconds(10)).returncode == 0
        wait_for_message("RELOADING=1")
        wait_for_message("READY=1")
        gateway.signal(signal.SIGTERM)
        wait_for_message("STOPPING=1")
        assert gateway.wait() == 0


def test_the_watchdog_is_notified(service, sluice, tmp_path):
    assert service.seconds(("Service", "WatchdogSec")) >= 10
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))
        sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)),
               environment={"NOTIFY_SOCKET": str(where), "WATCHDOG_USEC": "200000"})
        messages = [notify.recv(4096) for _ in range(5)]
        assert messages[0].startswith(b"READY=1") and messages[1:] == [b"WATCHDOG=1"] * 4


def test_a_watchdog_of_another_process_is_not_notified(service, sluice, tmp_path):
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))
        gateway = sluice(*words(service["Service", "ExecStart"], echo_file(tmp_path)),
                         environment={"NOTIFY_SOCKET": str(where), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"})
        assert gateway.stop() == 0
        messages = [notify.recv(4096) for _ in range(2)]
        assert messages[0].startswith(b"READY=1") and messages[1].startswith(b"STOPPING=1"), messages


def test_the_stop_timeout_allows_a_full_drain(service):
    page = (documents.ARTICLES / "Configuration.md").read_text()
    drain = int(re.search(r"### `drain-timeout`.*?- Default: `?(\d+)s", page, re.DOTALL).group(1))
    assert service.seconds(("Service", "TimeoutStopSec")) > drain


def test_systemd_socket_activation_passes_the_listener(service, socket_unit, sluice, tmp_path):
    name, port = socket_unit["Socket", "FileDescriptorName"], free_port()
    assert socket_unit["Socket", "ListenStream"].isdigit()
    file = echo_file(tmp_path, f"ws+systemd://{name}")
    gateway = sluice(*words(service["Service", "ExecStart"], file), ready=False, wrapper=[
        find("systemd-socket-activate"), f"--listen=127.0.0.1:{port}", f"--fdname={name}"])
    gateway.wait_log("Listening on")
    # The first connection starts the service, and waits in the queue until it is ready.
    with websocket.connect(("127.0.0.1", port), "/echo", within=20) as client:
        client.text("hello")
        client.expect_text("hello")
    gateway.wait_ready()
    assert gateway.stop() == 0


# -- restrictions of the unit

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def work(sluice, folder, certificate, tracer):
    """Runs a gateway that uses a little of every feature, until it ends; returns its process id."""
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
    """Every system call of such a gateway, a line each as strace writes it; calls that the unit refuses fail with its error."""
    folder = tmp_path_factory.mktemp("traced")
    trace = folder / "trace"
    _, refused = units.system_calls(service.values["Service", "SystemCallFilter"])
    error = service["Service", "SystemCallErrorNumber"]
    # -D: the started process is the gateway, and strace a separate one. `?`: not every machine has every call.
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


def test_the_gateway_works_with_the_allowed_system_calls(service, calls):
    allowed, _ = units.system_calls(service.values["Service", "SystemCallFilter"])
    made = {match.group(1) for line in calls[1] if (match := re.match(r"(\w+)\(", line))}
    # The library that runs Swift's tasks tries to change the priorities of its threads, and works without.
    assert len(made) > 20 and made - allowed <= {"setpriority"}, sorted(made - allowed)


def test_the_gateway_uses_only_the_address_families_of_the_unit(service, calls):
    made = {match.group(1) for line in calls[1] if (match := re.match(r"socket(?:pair)?\((AF_\w+)", line))}
    assert made and made <= set(service["Service", "RestrictAddressFamilies"].split()), made


def test_the_gateway_maps_no_writable_executable_memory(service, calls):
    assert service["Service", "MemoryDenyWriteExecute"] == "yes"
    wrong = [line for line in calls[1] if re.match(r"mmap.*PROT_WRITE\|PROT_EXEC|(pkey_)?mprotect.*PROT_EXEC", line)]
    assert not wrong, wrong


def test_the_gateway_writes_only_to_allowed_folders(service, calls):
    folder, lines = calls
    assert service["Service", "ProtectSystem"] == "strict"
    opened = [match.groups() for line in lines if (match := re.match(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]+)", (\S+)', line))]
    written = {path for path, flags in opened if re.search(r"O_WRONLY|O_RDWR|O_CREAT", flags)}
    assert any(path.startswith(str(folder)) for path in written), opened
    assert not [path for path in written if not path.startswith((str(folder), "/dev/null"))], written


def test_the_capability_of_the_unit_allows_a_low_port(service, tmp_path):
    assert service["Service", "CapabilityBoundingSet"] == service["Service", "AmbientCapabilities"] == "CAP_NET_BIND_SERVICE"
    apart = documents.isolation()
    if not apart:
        pytest.skip("this system allows no network namespaces, in which low ports are free")
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
