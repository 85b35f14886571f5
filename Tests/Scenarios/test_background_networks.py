"""Background sessions where networks come and go, in network namespaces; and where everything fails at random."""

import os
import random
import signal
import threading

import pytest

from support import networks
from support.background import Background, HeldOrigin
from support.deadlines import eventually, sized
from support.machine import Machine

pytestmark = pytest.mark.skipif(not networks.allowed(), reason="network namespaces are not available")

SESSION = "org.example.networks"


@pytest.fixture
def machine():
    one = Machine()
    yield one
    one.close()


@pytest.fixture
def background(tmp_path, machine):
    one = Background(tmp_path, wrapper=machine.near.entering)
    yield one
    one.end()


@pytest.fixture
def origin(machine):
    with machine.far.inside():
        one = HeldOrigin(random.Random(7).randbytes(300_000), machine.far.address)
    yield one
    one.end()


def completed(lines, label):
    return any(line.split()[:5] == ["completed", "1", label, "200", "0"] for line in lines)


def waits(background):
    """Whether the transfer waits for a network in its first attempt, instead of failing again and again."""
    records = background.records()
    return len(records) == 1 and "running" in records[0]["phase"] and records[0]["failures"] == 0


def test_transfer_waits_for_a_network(background, machine, origin):
    machine.join(1, up=False)
    origin.release()
    program = background.start(SESSION, "silent", "label", "one", "download", f"{origin.base}/file", "collect", 1)
    eventually(lambda: "created 1 one" in background.log() and waits(background), "the transfer runs")
    machine.near.ip("link", "set", "near1", "up")
    machine.near.ip("link", "set", "near1", "down")
    assert waits(background) and not origin.requests
    machine.near.ip("link", "set", "near1", "up")
    machine.route(1)
    assert completed(background.finish(program), "one")
    assert origin.clients == ["198.18.1.1"]


def test_daemon_without_a_network_waits_for_one(background, machine, origin):
    """The daemon is killed while its network is gone; the next one has the transfer when it is back."""
    machine.join(1)
    machine.route(1)
    program = background.start(SESSION, "silent", "label", "one", "download", f"{origin.base}/slow/file", "collect", 1)
    eventually(lambda: origin.requests, "the transfer has begun")
    machine.near.ip("link", "set", "near1", "down")
    background.kill_daemon()
    number = eventually(lambda: background.daemon, "another daemon runs")
    eventually(lambda: waits(background), "the transfer waits")
    origin.release()
    machine.near.ip("link", "set", "near1", "up")
    machine.route(1)
    assert completed(background.finish(program), "one")
    assert (background.files / "one").read_bytes() == origin.content
    assert background.daemon in (number, None)


@pytest.mark.parametrize(("kind", "word"), [
    ("cellular", "no-cellular"), ("expensive", "no-expensive"), ("constrained", "no-constrained")])
def test_transfer_waits_for_a_network_that_it_may_use(background, machine, origin, kind, word):
    machine.join(1)
    machine.route(1)
    origin.release()
    background.environment["URLLOADING_INTERFACES"] = f"near1={kind}"
    program = background.start(SESSION, "silent", word, "label", "one", "download", f"{origin.base}/file", "collect", 1)
    eventually(lambda: "created 1 one" in background.log() and waits(background), "the transfer waits")
    assert not origin.requests
    machine.join(2)
    machine.route(2, metric=200)
    assert completed(background.finish(program), "one")
    assert origin.clients == ["198.18.2.1"]


LABELS = [f"{kind}-{number}" for kind in ("download", "upload", "resumable") for number in range(3)]


class Chaos:
    """Kills the program and the daemon and takes the network down, at random."""

    def __init__(self, background, machine, origin, chance, round_number):
        self.background, self.machine, self.origin, self.chance = background, machine, origin, chance
        self.labels = [f"{label}-{round_number}" for label in LABELS]
        self.pause = threading.Event()
        self.counts = {"program": 0, "daemon": 0, "network": 0}
        self.program = None

    def begin(self, source):
        words = ["silent"]
        for label in self.labels:
            kind = label.split("-")[0]
            path = {"download": "slow", "upload": "upload", "resumable": "resumable"}[kind]
            words += ["label", label, *([] if kind == "download" else ["upload", source]),
                      *(["download"] if kind == "download" else []), f"{self.origin.base}/{path}/{label}"]
        self.program = self.background.start(SESSION, *words, "collect", len(self.labels))
        eventually(lambda: any(f" {self.labels[-1]}" in line for line in self.background.log() if line.startswith("created")),
                   "all transfers are created", 30)

    def missing(self):
        counts = self.background.completions()[0]
        return [label for label in self.labels if not counts[label]]

    def ensure_program(self):
        """Starts the program again, for the messages that it has not got."""
        if self.program.poll() is None:
            return
        self.program.communicate()
        if self.missing():
            self.program = self.background.start(SESSION, "silent", "collect", len(self.missing()))

    def fault(self):
        kind = self.chance.choice(list(self.counts))
        self.counts[kind] += 1
        self.pause.wait(self.chance.uniform(0, 0.3))
        if kind == "daemon":
            self.background.kill_daemon()
        elif kind == "network":
            self.machine.near.ip("link", "set", "near1", "down")
            self.pause.wait(self.chance.uniform(0, 0.5))
            self.machine.near.ip("link", "set", "near1", "up")
            self.machine.route(1)
        else:
            for number in self.background.programs():
                os.kill(number, signal.SIGKILL)
            # It may have been started so shortly before that it is not itself yet.
            self.program.kill()
            self.program.communicate()
            # Marks in the log which completions one program has got.
            with open(self.background.files / "log", "a", encoding="ascii") as log:
                log.write("== killed\n")
            self.ensure_program()

    def finish(self):
        def is_over():
            self.ensure_program()
            return not self.missing() and self.program.poll() is not None

        eventually(is_over, "all messages have arrived", 60)

    def check(self):
        """No message is lost, and none arrives twice but the one that a killed program was about to confirm."""
        generation, seen, last = 0, {}, {}
        for line in self.background.log():
            if line == "== killed":
                generation += 1
            elif line.startswith("completed "):
                _, _, label, status, code = line.split()[:5]
                assert status in ("200", "201") and code == "0", line
                if label in seen:
                    assert seen[label] < generation and last[seen[label]] == label, f"{label} arrived twice"
                seen[label], last[generation] = generation, label
        assert set(self.labels) <= set(seen)
        for label in self.labels:
            kind = label.split("-")[0]
            content = (self.background.files / label).read_bytes() if kind == "download" \
                else self.origin.uploads[f"/{kind}/{label}"]
            assert content == self.origin.content, label


@pytest.mark.timeout(sized(600, 3600))
def test_nothing_is_lost_whatever_fails(background, machine, origin):
    """The program, the daemon and the network fail at random; every transfer ends once, with the right content."""
    machine.join(1)
    machine.route(1)
    source = background.folder / "source"
    source.write_bytes(origin.content)
    seed = random.randrange(1 << 32)
    totals = {}
    try:
        chance = random.Random(seed)
        for number in range(sized(2, 40)):
            origin.hold()
            chaos = Chaos(background, machine, origin, chance, number)
            chaos.begin(source)
            for _ in range(6):
                chaos.fault()
            origin.release()
            chaos.finish()
            chaos.check()
            totals = {kind: totals.get(kind, 0) + count for kind, count in chaos.counts.items()}
            assert background.sluice("transfers", "--json") == ""
    except AssertionError as failure:
        raise AssertionError(f"seed {seed}: {failure}") from failure
    requests = [request[0] for request in origin.requests]
    print(f"seed {seed}: killed {totals}; {len(requests)} requests, {requests.count('PATCH')} of them parts of uploads")
