"""What is measured: one function per row of the table of targets. Each returns a list of `Result`."""

import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import crowding
import peers
from peers import BUILT, LOAD_CORE, SERVER_CORE, Floor, MeasurementFailed, Peer, Sink, Sluice, wsload


@dataclass
class Size:
    """How long and how often; every loop below is bounded by these."""
    runs: int
    seconds: float
    warmup: float
    idle: int
    handshakes: int
    # Of the rows in loading.py: how many requests, bytes of a file, bytes of a text, tasks.
    requests: int
    bulk: int
    text: int
    tasks: int
    # Of what costs little to repeat, many short turns: neighbours of the machine come and go by the second.
    turns: int
    turn: float

    def timing(self):
        return ["-t", self.turn, "-w", self.warmup]


FULL = Size(runs=5, seconds=2.0, warmup=0.2, idle=10_000, handshakes=15_000, requests=20_000, bulk=4 << 30, text=1 << 30,
            tasks=10_000, turns=15, turn=0.7)
QUICK = Size(runs=3, seconds=0.6, warmup=0.2, idle=4_000, handshakes=6_000, requests=4_000, bulk=512 << 20, text=64 << 20,
             tasks=10_000, turns=5, turn=0.4)


@dataclass
class Result:
    """One line of the table. `value` is held against `target`, which is a largest value when `at_most`."""
    name: str
    value: float
    target: float
    at_most: bool
    unit: str = "×"
    ours: float | None = None
    yardstick: float | None = None
    measure: str = ""
    notes: dict = field(default_factory=dict)

    @property
    def reached(self):
        return self.value <= self.target if self.at_most else self.value >= self.target


class Bench:
    """Starts what a row needs. `stand_in` puts the floor in the place of Sluice where the floor can do the work."""

    def __init__(self, size, stand_in=False):
        self.size = size
        self.stand_in = stand_in

    # -- what stands on the measured side

    def echo(self, *options, tls=False):
        if self.stand_in:
            if options or tls:
                raise MeasurementFailed("the stand-in has no such echo")
            return Floor("ws-echo")
        if tls:
            return Sluice("wss://127.0.0.1:0/echo", "echo", *self.certificate(), *options)
        return Sluice("ws://127.0.0.1:0/echo", "echo", *options)

    def tunnel(self, listen, target, port, core=SERVER_CORE, **more):
        if self.stand_in:
            if (listen, target) != ("tcp", "tcp"):
                raise MeasurementFailed("the stand-in relays tcp to tcp only")
            return Floor("tcp-relay", upstream=port, core=core, **more)
        path = {"ws": "/", "tcp": ""}
        return Sluice(f"{listen}://127.0.0.1:0{path[listen]}", f"{target}://127.0.0.1:{port}{path[target]}", core=core, **more)

    @staticmethod
    def certificate():
        return ["--certificate", peers.certificate(), "--key", peers.key()]

    # -- how runs are made

    def interleave(self, *measurements, turns=None):
        """Runs them in turn, there and back, `turns` times (`runs` unless said), and gives the median of each: what drifts on
        the machine hits all alike."""
        values = [[] for _ in measurements]
        order = list(enumerate(measurements))
        for turn in range(turns or self.size.runs):
            for index, measure in order if turn % 2 == 0 else reversed(order):
                values[index].append(measure())
        return [statistics.median(each) for each in values]

    def compare_cpu(self, name, target, ours, floor, mode, options, field_name="srv_cpu_s_per_Mmsg", path=None, loads=None):
        """CPU per message of `ours` against `floor`, both already running."""
        rates = {ours: [], floor: []}

        def measure(peer):
            words = [*options, *self.size.timing(), *(["--path", path] if path and peer is ours else [])]
            run = wsload(loads[peer] if loads else mode, peer.port, *words, pids=[peer.pid])
            rates[peer].append(run["msgs_per_s"])
            return run[field_name]

        mine, yard = self.interleave(lambda: measure(ours), lambda: measure(floor), turns=self.size.turns)
        notes = {"messages_per_s": statistics.median(rates[ours]), "floor_messages_per_s": statistics.median(rates[floor])}
        return Result(name, mine / yard, target, True, ours=mine, yardstick=yard, measure="CPU µs/message", notes=notes)

    # -- the rows

    def echoes(self):
        with self.echo() as ours, Floor("ws-echo") as floor:
            for name, target, options in (
                ("echo 16 B", 1.08, ["-s", 16]),
                ("echo 512 B", 1.08, ["-s", 512]),
                ("echo 64 B, 16 in flight", 1.25, ["-s", 64, "-d", 16]),
                ("echo 16 KiB binary", 1.08, ["-s", 16384]),
                ("echo 16 KiB text", 1.15, ["-s", 16384, "--text"]),
            ):
                yield self.compare_cpu(name, target, ours, floor, "ws-echo", ["-c", 64, *options], path="/echo")

    def tunnels(self):
        with Floor("tcp-echo", core=LOAD_CORE) as raw, Floor("ws-echo", core=LOAD_CORE) as web:
            with Floor("tcp-relay", upstream=raw.port) as floor:
                block = ["-c", 64, "-s", 512]
                with self.tunnel("tcp", "tcp", raw.port) as ours:
                    yield self.compare_cpu("tunnel tcp→tcp 512 B", 1.05, ours, floor, "tcp-echo", block)
                with self.tunnel("tcp", "ws", web.port) as ours:
                    yield self.compare_cpu("tunnel tcp→ws 512 B", 1.15, ours, floor, "tcp-echo", block)
                with self.tunnel("ws", "tcp", raw.port) as ours:
                    loads = {ours: "ws-echo", floor: "tcp-echo"}
                    # The load generator must count blocks, not frames, where the far end is a byte stream.
                    yield self.compare_cpu("tunnel ws→tcp 512 B", 1.15, ours, floor, None, [*block, "--stream"], loads=loads)
                with self.tunnel("ws", "ws", web.port) as ours:
                    loads = {ours: "ws-echo", floor: "tcp-echo"}
                    yield self.compare_cpu("tunnel ws→ws 512 B", 1.15, ours, floor, None, block, loads=loads)

    def bulk(self):
        def measure(peer, hops, pids):
            run = wsload("tcp-stream", peer.port, "--dir", "up", "-c", 4, *self.size.timing(), pids=pids)
            rates[peer].append(run["up_mb_per_s"])
            return run["srv_cpu_s_per_GB"] / hops

        def result(name, target, ours, floor, mine, yard):
            notes = {"MB_per_s": statistics.median(rates[ours]), "floor_MB_per_s": statistics.median(rates[floor])}
            return Result(name, yard / mine, target, False, ours=mine, yardstick=yard, measure="CPU s/GB per hop", notes=notes)

        with Sink("sink") as sink, Floor("tcp-relay", upstream=sink.port) as floor:
            with self.tunnel("tcp", "tcp", sink.port) as ours:
                rates = {ours: [], floor: []}
                mine, yard = self.interleave(
                    lambda: measure(ours, 1, [ours.pid]), lambda: measure(floor, 1, [floor.pid]), turns=self.size.turns)
                yield result("bulk tcp→tcp", 1.0, ours, floor, mine, yard)
            with self.tunnel("ws", "tcp", sink.port) as inner, self.tunnel("tcp", "ws", inner.port) as ours:
                rates = {ours: [], floor: []}
                mine, yard = self.interleave(
                    lambda: measure(ours, 2, [ours.pid, inner.pid]), lambda: measure(floor, 1, [floor.pid]),
                    turns=self.size.turns)
                yield result("bulk tcp→ws→tcp", 0.7, ours, floor, mine, yard)

    def tls_echo(self):
        port = peers.free_port()
        with self.echo(tls=True) as ours:
            with Peer([BUILT / "lwsecho", port, peers.certificate(), peers.key()], SERVER_CORE, port) as lws:
                yield self.compare_cpu(
                    "TLS echo 512 B / libwebsockets", 1.1, ours, lws, "ws-echo", ["--tls", "-c", 64, "-s", 512], path="/echo")

    def tls_handshakes(self):
        for version in ("-tls1_3", "-tls1_2"):
            port = peers.free_port()
            words = ["openssl", "s_server", "-accept", port, "-cert", peers.certificate(), "-key", peers.key(), version, "-quiet"]
            with self.echo(tls=True) as ours, Peer(words, SERVER_CORE, port) as theirs:
                mine, yard = self.interleave(lambda: self.handshakes(ours, version), lambda: self.handshakes(theirs, version))
                name = f"TLS handshakes {version[4:].replace('_', '.')} / s_server"
                yield Result(name, mine / yard, 0.9, False, ours=mine, yardstick=yard, measure="per CPU s")

    def handshakes(self, peer, version):
        seconds = max(1, round(self.size.seconds))
        before = peers.cpu_seconds(peer.pid)
        words = ["taskset", "--cpu-list", str(LOAD_CORE), "openssl", "s_time", "-connect", f"127.0.0.1:{peer.port}", "-new",
                 "-time", str(seconds), version]
        try:
            run = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 30)
        except subprocess.TimeoutExpired as late:
            raise MeasurementFailed("s_time did not end") from late
        spent = peers.cpu_seconds(peer.pid) - before
        found = re.search(r"^(\d+) connections in \d+ real seconds", run.stdout, re.MULTILINE)
        if not found or not int(found.group(1)) or spent <= 0:
            raise MeasurementFailed(f"s_time: {run.stderr.strip()[-200:]}")
        return int(found.group(1)) / spent

    def deflate(self):
        for name, options in (("context takeover", []), ("no context takeover", ["--no-takeover"])):
            port = peers.free_port()
            # The yardstick is zlib in a process of its own, under the same load: caches are shared with whoever makes it.
            with self.echo("--compress") as ours, Peer([BUILT / "deflateecho", port], SERVER_CORE, port) as zlib:
                wires = {ours: [], zlib: []}

                def through(peer):
                    words = [BUILT / "deflateload", "echo", f"127.0.0.1:{peer.port}", "/echo", "--pid", peer.pid]
                    run = peers.run_json(["taskset", "--cpu-list", LOAD_CORE, *words, "-t", self.size.seconds, *options], 60)
                    wires[peer].append(run["wire_bytes_per_message"])
                    return run["cpu_us_per_message"]

                mine, yard = self.interleave(lambda: through(ours), lambda: through(zlib))
                notes = {"bytes_per_message": statistics.median(wires[ours]), "zlib_bytes_per_message": statistics.median(wires[zlib])}
                yield Result(f"permessage-deflate 1 KiB, {name}", yard / mine, 0.9, False, ours=mine, yardstick=yard,
                             measure="CPU µs/message", notes=notes)

    def memory(self):
        def idle(peer, *options, descriptors=1):
            # A process here may have so many, and needs some for itself.
            most = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200) // descriptors
            words = ["-c", min(self.size.idle, most), "-t", 0.5, "--touch", *options]
            # What the first handshake alone sets up, such as libcrypto's digests, belongs to no connection.
            wsload("ws-idle", peer.port, "-c", 1, "-t", 0, "--touch", *options, pids=[peer.pid], seconds=120)
            return wsload("ws-idle", peer.port, *words, pids=[peer.pid], seconds=120)["bytes_per_conn"] / 1024

        # One run each: memory once touched stays with the process, so a second run would see less than the first.
        with self.echo() as ours:
            yield Result("memory, idle ws echo", idle(ours, "--path", "/echo"), 1.5, True, "KiB")
        with Sink("echo") as sink, self.tunnel("ws", "tcp", sink.port) as ours:
            yield Result("memory, idle tunnel ws→tcp", idle(ours, "--stream", descriptors=2), 3.0, True, "KiB")
        with self.echo(tls=True) as ours:
            yield Result("memory, idle wss echo", idle(ours, "--tls", "--path", "/echo"), 18.0, True, "KiB")
        if not self.stand_in:
            with peers.CompactEcho() as ours:
                yield Result("memory, idle wss echo, compact records", idle(ours, "--tls", "--path", "/echo"), 6.5, True, "KiB")

    def allocations(self):
        with peers.Allocations() as allocations:
            environment = allocations.environment

            def per_message(peer, mode, *options):
                # In the midst of a run, so that neither opening nor closing is counted.
                length = 1 + self.size.seconds
                with ThreadPoolExecutor(1) as beside:
                    run = beside.submit(wsload, mode, peer.port, "-c", 16, "-s", 512, "-t", length, "-w", 0, *options)
                    time.sleep(0.4 * length)
                    before = allocations.count()
                    time.sleep(0.4 * length)
                    counted = allocations.count() - before
                    return counted / (0.4 * run.result()["msgs"])

            if self.stand_in:
                raise MeasurementFailed("the floor allocates nothing to count")
            # Keys of masked frames are taken 64 at a time, into two arrays.
            masked = 0.06
            with Sluice("ws://127.0.0.1:0/echo", "echo", environment=environment) as ours:
                yield Result("allocations per echoed message", per_message(ours, "ws-echo", "--path", "/echo"), 0.001, True, "")
            with Floor("tcp-echo", core=LOAD_CORE) as far:
                with self.tunnel("tcp", "tcp", far.port, environment=environment) as ours:
                    yield Result("allocations per relayed block", per_message(ours, "tcp-echo"), 0.001, True, "")
            with Floor("ws-echo", core=LOAD_CORE) as far:
                with self.tunnel("tcp", "ws", far.port, environment=environment) as ours:
                    yield Result("allocations per block, tcp→ws", per_message(ours, "tcp-echo"), masked, True, "")
                with self.tunnel("ws", "ws", far.port, environment=environment) as ours:
                    yield Result("allocations per frame, ws→ws", per_message(ours, "ws-echo"), masked, True, "")

    def system_calls(self):
        if not peers.have("strace"):
            raise MeasurementFailed("strace is not there")

        def traced(peer, seconds, mode, *options, counts="msgs"):
            with tempfile.NamedTemporaryFile("r") as table:
                tracer = subprocess.Popen(["strace", "-f", "-c", "-o", table.name, "-p", str(peer.pid)],
                                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                try:
                    tracer.stderr.readline()  # "Process N attached"
                    messages = wsload(mode, peer.port, "-c", 8, "-s", 512, "-t", seconds, "-w", 0, *options)[counts]
                finally:
                    tracer.send_signal(2)
                    tracer.communicate(timeout=20)
                calls = Counter()
                for line in table.read().splitlines():
                    words = line.split()
                    if len(words) >= 5 and words[0].replace(".", "").isdigit() and words[-1] != "total":
                        calls[words[-1]] += int(words[3])
            if not calls:
                raise MeasurementFailed("strace counted nothing")
            return calls, messages

        def counted(peer, mode, *options):
            # As with allocations: opening and closing cancel out between a short run and a long one.
            fewer, short = traced(peer, 0.3, mode, *options)
            # What matters is how many messages more there are, not the time they take: a busy machine may halt a traced process.
            seconds, long = 0.3 + self.size.seconds, 0
            while long < 2 * short and seconds < 60:
                more, long = traced(peer, seconds, mode, *options)
                seconds *= 2
            if long <= short:
                raise MeasurementFailed("the longer run carried no more messages")
            return {name: max(0, count - fewer[name]) / (long - short) for name, count in more.items()}

        def results(name, per_message, transfers):
            groups = {"reads": ("recvfrom", "recvmsg", "read", "readv"), "writes": ("sendto", "sendmsg", "write", "writev")}
            for group, members in groups.items():
                value = sum(per_message.pop(member, 0) for member in members)
                yield Result(f"{group} per message, {name}", value, transfers * 1.02, True, "", measure="system calls")
            waits = sum(per_message.pop(member, 0) for member in ("epoll_wait", "epoll_pwait", "epoll_pwait2"))
            others = dict(sorted(per_message.items(), key=lambda item: -item[1])[:4])
            yield Result(f"other calls per message, {name}", sum(per_message.values()), 0.05, True, "", measure="system calls",
                         notes={"epoll_wait": waits, **others})

        with self.echo() as ours:
            yield from results("echo", counted(ours, "ws-echo", "--path", "/echo"), 1)
        with Floor("tcp-echo", core=LOAD_CORE) as far, self.tunnel("tcp", "tcp", far.port) as ours:
            # A block goes there and comes back: two reads and two writes.
            yield from results("tcp→tcp", counted(ours, "tcp-echo"), 2)
        with Sink("sink") as sink, self.tunnel("tcp", "tcp", sink.port) as ours:
            calls, _ = traced(ours, 0.3 + self.size.seconds, "tcp-stream", "--dir", "up", "-s", 1 << 18, counts="up_mb_per_s")
            # Bulk goes from socket to socket: only what each connection begins with is copied.
            yield Result("copying reads in bulk, tcp→tcp", calls["recvfrom"] / max(1, calls["splice"]), 0.1, True, "",
                         measure="of all", notes={"splice": calls["splice"], "recvfrom": calls["recvfrom"]})

    def idle_beside_busy(self):
        count = 15_000 if self.size is FULL else self.size.idle
        with self.echo() as ours:
            def busy():
                run = wsload("ws-echo", ours.port, "-c", 64, "-s", 512, "--path", "/echo", *self.size.timing(), pids=[ours.pid])
                return 1e6 / run["srv_cpu_s_per_Mmsg"]

            def crowded():
                words = [BUILT / "wsload", "ws-idle", f"127.0.0.1:{ours.port}", "-c", count, "-t", 600, "--path", "/echo"]
                with Peer(words, LOAD_CORE):
                    peers.wait_until(lambda: peers.descriptors(ours.pid) >= count, f"{count} idle connections", 60)
                    rate = busy()
                    still = peers.descriptors(ours.pid)
                if still < count:
                    raise MeasurementFailed(f"{count - still} idle connections were lost")
                peers.wait_until(lambda: peers.descriptors(ours.pid) < 500, "idle connections gone", 60)
                return rate

            # The yardstick in our place swings by a tenth from turn to turn.
            quiet, loud = self.interleave(busy, crowded, turns=self.size.turns)
            yield Result(f"loss beside {count} idle", (1 - loud / quiet) * 100, 3.0, True, "%", ours=loud, yardstick=quiet,
                         measure="messages per CPU s")

    def opening_handshakes(self):
        with self.echo() as ours, Floor("ws-echo") as floor:
            def measure(peer):
                run = wsload("ws-idle", peer.port, "-c", self.size.handshakes, "-t", 0, "--settle", 0, "--path", "/echo",
                             pids=[peer.pid], seconds=120)
                return 1e6 / run["srv_cpu_us_per_handshake"]

            mine, yard = self.interleave(lambda: measure(ours), lambda: measure(floor), turns=self.size.turns)
            yield Result("opening handshakes", mine / yard, 0.8, False, ours=mine, yardstick=yard, measure="per CPU s")

    def neighbours(self):
        """A small message's round trip beside one client of each kind, on the same loop."""
        def longest(ours, kind):
            tls = kind == "records"
            # The client and its neighbour run on the core that makes the load.
            wrapper = ["taskset", "--cpu-list", str(LOAD_CORE)]
            with (crowding.Neighbour(ours.port, "/echo", tls=tls) as neighbour,
                  crowding.Crowder(kind, ours.port, "/echo", wrapper) as crowder):
                times = neighbour.round_trips(self.size.seconds)
                if crowder.complaint() is not None:
                    raise MeasurementFailed(f"{kind}: {crowder.complaint()}")
            medians.append(statistics.median(times) * 1000)
            return max(times) * 1000

        for kind in ("zeros", "noise", "fragments", "pings", "messages", "records"):
            medians = []
            with self.echo(*([] if kind == "records" else ["--compress"]), tls=kind == "records") as ours:
                worst, = self.interleave(lambda: longest(ours, kind))
            yield Result(f"longest round trip beside {kind}", worst, 50, True, "ms", notes={"median_ms": statistics.median(medians)})

    ROWS = (echoes, tunnels, bulk, tls_echo, tls_handshakes, deflate, memory, allocations, system_calls, idle_beside_busy,
            opening_handshakes, neighbours)
