"""What is measured of rooms: messages to many members, against µWebSockets, and what members and history cost each other."""

import contextlib
import json
import statistics
import tempfile
from pathlib import Path

import peers
import rows
from peers import BUILT, LOAD_CORE, SERVER_CORE, MeasurementFailed, Peer, Sluice, wsload
from rows import Result

RECEIVERS = 200


class Rooms(Sluice):
    """`sluice serve` with one loop and rooms: `kept-` with presence and history, `lossy-` in which slow members lose messages.

    With `cluster`, the address of a Redis, it is a node of a cluster.
    """

    def __init__(self, cluster=None):
        self._heard = None
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "sluice.yaml"
        file.write_text(json.dumps({
            **({"cluster": cluster} if cluster else {}),
            "control": {"address": "none"}, "log-level": "error", "loops": 1, "max-connections": 100_000,
            "rooms": {"command-rate": 1_000_000, "policies": [
                {"name": "kept", "pattern": "kept-*", "presence": True, "history-size": 100, "recovery": "stream"},
                {"name": "lossy", "pattern": "lossy-*", "slow-readers": "drop-oldest"},
                {"name": "plain", "pattern": "*", "presence": False}]},
            "listeners": [{
                "name": "web", "listen": "ws://127.0.0.1:0", "max-connections": 100_000, "max-connections-per-client": 100_000}],
            "routes": [
                {"name": "chat", "path": "/chat/{room}", "target": "chat"}, {"name": "rooms", "path": "/rooms", "target": "rooms"}]}))
        Peer.__init__(self, [self.binary, "serve", "--config", file], SERVER_CORE)
        try:
            self.port = self._announced("listening on")
        except MeasurementFailed:
            self.end()
            raise

    def end(self):
        super().end()
        self._folder.cleanup()


class Redis(Peer):
    """Keeps nothing, like the rooms that are measured."""

    def __init__(self):
        port = peers.free_port()
        super().__init__(["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1"], LOAD_CORE, port)


class MicroWebSockets(Peer):
    """uwsroom on the library of PyPI's socketify, which is there for x86-64 alone."""

    def __init__(self):
        found = list(BUILT.parent.glob("bench-venv/lib/python3*/site-packages/socketify/libsocketify_linux_amd64.so"))
        if not found:
            raise MeasurementFailed("µWebSockets is not there; see deploy/install-dependencies --benchmarks")
        port = peers.free_port()
        super().__init__([BUILT / "uwsroom", port, found[0]], SERVER_CORE, port)


class Fanning(rows.Bench):
    """Every delivery is checked: a message that is lost, changed or out of order fails the run."""

    def compare(self, ours, yardstick):
        """The medians of two ways to run `wsload`, run in turn: of each field a pair."""
        runs = ([], [])
        self.interleave(lambda: runs[0].append(ours()) or 0, lambda: runs[1].append(yardstick()) or 0, turns=self.size.turns)

        def medians(field):
            return tuple(statistics.median(field(run) for run in each) for each in runs)

        return medians

    def load(self, peer, *options, path="/", receivers=RECEIVERS):
        words = ["-c", receivers, "-s", 64, "--text", "--path", path, *self.size.timing(), *options]
        return wsload("ws-fanout", peer.port, *words, pids=[peer.pid])

    # -- the rows

    def fan_out(self):
        with Rooms() as ours, MicroWebSockets() as theirs:
            for name, options in (("one in flight", ["-d", 1]), ("16 in flight", ["-d", 16]), ("300 a second", ["--rate", 300])):
                medians = self.compare(
                    lambda: self.load(ours, *options, path="/chat/room"), lambda: self.load(theirs, *options))
                mine, yard = medians(lambda run: 1e6 / run["srv_cpu_s_per_Mmsg"])
                rates = medians(lambda run: run["deliveries_per_s"])
                yield Result(f"chat to {RECEIVERS} / µWebSockets, {name}", mine / yard, 1.0, False, ours=mine, yardstick=yard,
                             measure="deliveries per CPU s", notes={"per_s": rates[0], "their_per_s": rates[1]})
                mine, yard = medians(lambda run: run["lat_us"]["p99"])
                yield Result(f"99th percentile / µWebSockets, {name}", mine / yard, 1.0, True, ours=mine, yardstick=yard, measure="µs")

    def kept_rooms(self):
        """The protocol's rooms with presence and history, against those without."""
        with Rooms() as ours:
            for name, options in (("one in flight", ["-d", 1]), ("16 in flight", ["-d", 16])):
                medians = self.compare(
                    lambda: self.load(ours, *options, "--room", "kept-a", path="/rooms"),
                    lambda: self.load(ours, *options, "--room", "other", path="/rooms"))
                mine, yard = medians(lambda run: run["srv_cpu_s_per_Mmsg"])
                yield Result(f"presence and history / without, {name}", mine / yard, 1.1, True, ours=mine, yardstick=yard,
                             measure="CPU µs/delivery", notes={"per_s": medians(lambda run: run["deliveries_per_s"])[0]})

    def large_room(self):
        """Memory at the end of the run against that at its beginning, in a room of 10 000 with 10 messages a second."""
        members = 10_000 if self.size is rows.FULL else self.size.idle
        seconds = 20 if self.size is rows.FULL else 6
        for name, options in (("chat", ["--path", "/chat/room"]), ("protocol", ["--room", "other", "--path", "/rooms"])):
            with Rooms() as ours:
                words = ["-c", members, "-s", 64, "--text", "--rate", 10, "-t", seconds, "-w", 3, *options]
                run = wsload("ws-fanout", ours.port, *words, pids=[ours.pid], seconds=120)
            growth = (run["srv_rss_last_kb"] - run["srv_rss_first_kb"]) / 1024
            yield Result(f"growth, 10 messages/s to {members}, {name}", growth, 1.0, True, "MiB", notes={
                "per_s": run["deliveries_per_s"], "cpu_percent": run["srv_cpu_pct"], "p99_ms": run["lat_us"]["p99"] / 1000,
                "memory_MiB": run["srv_rss_last_kb"] / 1024})

    def stalled_reader(self):
        """A member that reads nothing, for which the room loses messages, against the room without it."""
        with Rooms() as ours:
            for name, options in (("one in flight", ["-d", 1]), ("16 in flight", ["-d", 16])):
                medians = self.compare(
                    lambda: self.load(ours, *options, "--stalled", 1, path="/chat/lossy-a"),
                    lambda: self.load(ours, *options, path="/chat/lossy-b"))
                mine, yard = medians(lambda run: run["srv_cpu_s_per_Mmsg"])
                yield Result(f"beside a stalled reader / without, {name}", mine / yard, 1.03, True, ours=mine, yardstick=yard,
                             measure="CPU µs/delivery")
                mine, yard = medians(lambda run: run["lat_us"]["p99"])
                yield Result(f"99th percentile beside it / without, {name}", mine / yard, 1.1, True, ours=mine, yardstick=yard,
                             measure="µs")

    def nodes(self):
        """Deliveries for each second of the nodes' CPU time, 100 members on each node, and what a publication costs Redis.

        All nodes share a core: what they deliver together in a second says nothing here.
        """
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(Redis())
            nodes = [stack.enter_context(Rooms(f"redis://127.0.0.1:{redis.port}")) for _ in range(3)]
            alone = stack.enter_context(Rooms())
            costs = {}

            def rate(taking_part):
                first, *others = taking_part
                before = peers.cpu_seconds(redis.pid)
                words = [word for other in others for word in ("--also", other.port)]
                run = wsload(
                    "ws-fanout", first.port, "-c", 100 * len(taking_part) - 1, "-s", 64, "--text", "--path", "/chat/room",
                    "--rate", 300, *self.size.timing(), *words, pids=[node.pid for node in taking_part])
                publications = 300 * (self.size.turn + self.size.warmup)
                if first is not alone:
                    cost = (peers.cpu_seconds(redis.pid) - before) / publications * 1e6
                    costs.setdefault(len(taking_part), []).append(cost)
                return 1e6 / run["srv_cpu_s_per_Mmsg"]

            counts = range(1, len(nodes) + 1)
            rates = self.interleave(
                lambda: rate([alone]), *(lambda count=count: rate(nodes[:count]) for count in counts), turns=self.size.turns)
        for count, mine in zip(counts, rates[1:]):
            yield Result(f"chat over {count} node{'s' if count > 1 else ''} / without a cluster", mine / rates[0], 0.8, False, ours=mine,
                         yardstick=rates[0], measure="deliveries per CPU s",
                         notes={"redis_us_per_publication": statistics.median(costs[count])})

    ROWS = (fan_out, kept_rooms, large_room, stalled_reader, nodes)
