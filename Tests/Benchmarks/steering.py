"""What is measured of the control plane: what it costs, and that traffic does not feel it."""

import contextlib
import http.client
import json
import socket
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import peers
import rows
from peers import BUILT, LOAD_CORE, SERVER_CORE, MeasurementFailed, Peer, Sluice, cpu_seconds, run_json, wsload
from rows import Result

CONFIGURATION = """
loops: 1
log-level: error
control: {{address: "{control}"}}
listeners:
  - {{name: web, listen: "ws://127.0.0.1:0", max-connections: 100000}}
  - {{name: raw, listen: "tcp://127.0.0.1:0", max-connections: 100000, route: raw}}
routes:
  - {{name: echo, path: /echo, target: echo}}
  - {{name: raw, target: echo}}
"""


class Service(Sluice):
    """`sluice serve`, with its control plane on a free port or without one. `cores`: those it may use."""

    def __init__(self, control="http://127.0.0.1:0", cores=SERVER_CORE, environment=None):
        self._heard = None
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "sluice.yaml"
        file.write_text(CONFIGURATION.format(control=control))
        Peer.__init__(self, [self.binary, "serve", "--config", file], cores, environment=environment)
        try:
            self.port = self._announced("listening on ws://127.0.0.1")
            self.raw_port = self._announced("listening on tcp://127.0.0.1")
            self.control_port = self._announced("control on") if control != "none" else None
        except MeasurementFailed:
            self.end()
            raise

    def end(self):
        super().end()
        self._folder.cleanup()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.control_port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            if response.status >= 300:
                raise MeasurementFailed(f"{method} {path}: {response.status} {content[:200]!r}")
            return content
        finally:
            connection.close()

    def everything(self):
        """The full list, by pages of the largest size."""
        count, path = 0, "/v1/connections?limit=1000"
        while path:
            page = json.loads(self.ask("GET", path))
            count += len(page["items"])
            path = page.get("next")
        return count

    def resident(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise MeasurementFailed("no VmRSS")


class Steering(rows.Bench):
    """`programs` is where the release programs of the package are."""

    programs = None

    @staticmethod
    @contextlib.contextmanager
    def connections(port, count):
        """So many idle connections."""
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            yield

    # -- the rows

    def item(self):
        with Service() as service:
            name = json.loads(service.ask("POST", "/v1/connections", {"url": f"tcp://127.0.0.1:{service.raw_port}"}))["id"]
            path = f"/v1/connections/{name}"
            size = len(service.ask("GET", path))
            port = peers.free_port()
            with Peer([self.programs / "ConstantBenchmark", port, path, size], SERVER_CORE, port):
                def rate(port):
                    words = [BUILT / "multiload", f"http://127.0.0.1:{port}{path}", self.size.requests, 8]
                    run = run_json(["taskset", "--cpu-list", LOAD_CORE, *words], 120)
                    return run["count"] / run["seconds"]

                mine, yard = self.interleave(lambda: rate(service.control_port), lambda: rate(port))
            yield Result(
                "GET of a connection / constant", mine / yard, 0.5, False, ours=mine, yardstick=yard, measure="requests/s",
                notes={"bytes": size})

    def full_list(self):
        count = 10_000
        with Service() as service, self.connections(service.raw_port, count):
            peers.wait_until(lambda: service.everything() >= count, "all of them", 30)

            def cost():
                before = cpu_seconds(service.pid)
                if service.everything() < count:
                    raise MeasurementFailed("the list is not full")
                return (cpu_seconds(service.pid) - before) * 1000

            # Ten at a time: the clock of a process has ticks of 10 ms.
            mine, = self.interleave(lambda: sum(cost() for _ in range(10)) / 10)
            yield Result("list of 10 000 connections", mine, 50, True, "ms")

    def list_allocations(self):
        count = 2000
        with peers.Allocations() as allocations, Service(environment=allocations.environment) as service:
            def cost():
                before = allocations.count()
                listed = service.everything()
                return listed, allocations.count() - before

            service.everything()
            # The list of nobody: what its pages take beside the connections.
            _, empty = cost()
            with self.connections(service.raw_port, count):
                peers.wait_until(lambda: cost()[0] >= count, "all of them", 30)
                listed, full = cost()
            yield Result("allocations per connection of a list", max(0.0, (full - empty) / listed), 0.5, True, "")

    def traffic_beside_lists(self):
        with Service(cores=f"{SERVER_CORE},{LOAD_CORE}") as service, self.connections(service.raw_port, 1000):
            def latency(lists):
                over = threading.Event()
                asker = threading.Thread(target=lambda: self.ask_every_second(service, over), daemon=True)
                if lists:
                    asker.start()
                try:
                    words = ["-c", 64, "-d", 1, "-s", 64, "-t", max(4, self.size.seconds), "-w", self.size.warmup, "--path", "/echo"]
                    return wsload("ws-echo", service.port, *words)["lat_us"]["p99"]
                finally:
                    over.set()
                    if lists:
                        asker.join()

            mine, yard = self.interleave(lambda: latency(True), lambda: latency(False))
            yield Result("p99 beside a list every second / without", mine / yard, 1.1, True, ours=mine, yardstick=yard, measure="µs")

    @staticmethod
    def ask_every_second(service, over):
        while not over.is_set():
            began = time.monotonic()
            service.everything()
            over.wait(max(0, 1 - (time.monotonic() - began)))

    def idle_control(self):
        def resident(control):
            with Service(control) as service:
                if control != "none":
                    service.ask("GET", "/livez")
                return service.resident()

        mine, yard = self.interleave(lambda: resident("http://127.0.0.1:0"), lambda: resident("none"))
        yield Result("memory of an idle control plane", mine - yard, 10, True, "MiB", ours=mine, yardstick=yard, measure="MiB resident")

    def unread_tap(self):
        """One saturated connection, with a tap whose reader sleeps and without."""
        with Service(cores=f"{SERVER_CORE},{LOAD_CORE}") as service:
            def rate(mode, port, options, tapped):
                words = ["-c", 1, "-d", 16, "-s", 512, "-t", max(2, self.size.seconds), "-w", 1, *options]
                with ThreadPoolExecutor(1) as beside, contextlib.ExitStack() as stack:
                    run = beside.submit(wsload, mode, port, *words)
                    if tapped:
                        stack.enter_context(self.sleeping_tap(service))
                    return run.result()["msgs_per_s"]

            for name, mode, port, options in (
                ("ws", "ws-echo", service.port, ["--path", "/echo"]), ("tcp", "tcp-echo", service.raw_port, [])
            ):
                mine, yard = self.interleave(lambda: rate(mode, port, options, True), lambda: rate(mode, port, options, False))
                yield Result(f"{name} echo under an unread tap / without", mine / yard, 0.95, False, ours=mine, yardstick=yard,
                             measure="messages/s")

    @staticmethod
    @contextlib.contextmanager
    def sleeping_tap(service):
        """A tap on the one connection there is, whose reader never reads."""
        def found():
            return json.loads(service.ask("GET", "/v1/connections"))["items"]

        peers.wait_until(found, "the connection")
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", service.control_port))
            reader.sendall(f"GET /v1/connections/{found()[0]['id']}/tap HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            yield

    ROWS = (item, full_list, list_allocations, traffic_beside_lists, idle_control, unread_tap)
