"""Programs that take part in a measurement: built once, started pinned to a core, ended by process id."""

import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent.parent / ".build" / "bench"
# With one core only, both get it; the driver refuses to measure like that.
SERVER_CORE, LOAD_CORE = (sorted(os.sched_getaffinity(0)) * 2)[:2]

PROGRAMS = {
    "floor": ["-O3", "floor.c", "-lcrypto"],
    "wsload": ["-O3", "-march=native", "-DTLS", "wsload.c", "-lssl", "-lcrypto"],
    "lwsecho": ["-O3", "lwsecho.c", "-lwebsockets"],
    "deflateecho": ["-O3", "deflateecho.c", "-lcrypto", "-lz"],
    "deflateload": ["-O3", "deflateload.c", "-lz"],
    "uwsroom": ["-O3", "uwsroom.c", "-ldl"],
    "multiload": ["-O3", "multiload.c", "-lcurl"],
    "countmalloc.so": ["-O2", "-shared", "-fPIC", "countmalloc.c"],
}


class MeasurementFailed(Exception):
    """A run that says nothing: an error was counted, a peer did not start, or time ran out."""


def build(names=PROGRAMS):
    """Compiles of `names` what is missing or older than its source, and makes the certificate that the TLS rows share."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for name in names:
        words = PROGRAMS[name]
        source = next(HERE / word for word in words if word.endswith(".c"))
        target = BUILT / name
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        command = ["cc", "-w", "-o", str(target)] + [str(HERE / word) if word.endswith(".c") else word for word in words]
        subprocess.run(command, check=True, timeout=120)
    if not certificate().exists():
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", str(key()), "-out", str(certificate())],
            check=True, timeout=60, stderr=subprocess.DEVNULL)


def certificate():
    return BUILT / "certificate.pem"


def key():
    return BUILT / "key.pem"


def raise_descriptor_limit(wanted=100_000):
    """As far as it may: many connections need many descriptors, here and in every program started from here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (wanted, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, soft), max(limit, hard)))
            return
        except (ValueError, PermissionError):
            continue


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise MeasurementFailed(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def cpu_seconds(pid):
    """CPU time of a whole process so far, in seconds, to the nanosecond."""
    # The kernel numbers another process's CPU clock by its id: clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Peer:
    """A running program. `port` is where it listens; `with` ends it."""

    def __init__(self, words, core, port=None, environment=None, listens=True):
        self.words = [str(word) for word in words]
        self.port = port
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["taskset", "--cpu-list", str(core)] + self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors, env={**os.environ, **(environment or {})})
        if port is not None and listens:
            try:
                wait_until(lambda: self._alive() and answers(port), f"{self.words[0]} listening on {port}")
            except MeasurementFailed:
                self.end()
                raise

    @property
    def pid(self):
        return self.process.pid

    def _alive(self):
        if self.process.poll() is None:
            return True
        raise MeasurementFailed(f"{' '.join(self.words)} ended with {self.process.returncode}: {self.complaint()}")

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()[-400:]

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=5)
        self.process.stdout.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Allocations:
    """Counts what is allocated by programs that are started with `environment`."""

    def __enter__(self):
        # Without a buffer: that would go on giving what was read first.
        self._page = tempfile.NamedTemporaryFile(buffering=0)
        self._page.truncate(4096)
        self.environment = {"LD_PRELOAD": str(BUILT / "countmalloc.so"), "COUNTMALLOC_FILE": self._page.name}
        return self

    def __exit__(self, *_):
        self._page.close()

    def count(self):
        self._page.seek(0)
        return int.from_bytes(self._page.read(8), "little")


class Floor(Peer):
    def __init__(self, mode, upstream=None, core=SERVER_CORE, **more):
        port = free_port()
        words = [BUILT / "floor", mode, port] + ([f"127.0.0.1:{upstream}"] if upstream else [])
        super().__init__(words, core, port, **more)


class Sink(Peer):
    """The far end of a relay: echoes, swallows or pours, as `behaviour` says."""

    def __init__(self, behaviour):
        port = free_port()
        super().__init__([BUILT / "wsload", "serve-tcp", f"127.0.0.1:{port}", "--behave", behaviour], LOAD_CORE, port)


class Sluice(Peer):
    """`sluice bridge LISTEN TARGET`: the port is the one it prints."""

    binary = None

    def __init__(self, listen, target, *options, core=SERVER_CORE, environment=None):
        self._heard = None
        words = [self.binary, "bridge", listen, target, "--max-connections", "100000", "--log-level", "error", *options]
        super().__init__(words, core, environment=environment)
        try:
            self.port = self._announced("listening on")
        except MeasurementFailed:
            self.end()
            raise

    def _announced(self, words):
        """The port of the first address that was printed behind these words."""
        found = re.search(words.encode() + rb" ?\S*?:(\d+)", self._said())
        if not found:
            raise MeasurementFailed(f"no '{words}' in {self._heard!r}")
        return int(found.group(1))

    def _said(self):
        """All that it prints until it is ready."""
        if self._heard is None:
            self._heard = self._read_until_ready()
        return self._heard

    def _read_until_ready(self):
        heard = b""
        deadline = time.monotonic() + 10
        pipe = self.process.stdout.fileno()
        while b"\nready\n" not in b"\n" + heard:
            ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(pipe, 4096) if ready else b""
            if not piece:
                raise MeasurementFailed(f"{' '.join(self.words)} never said it was ready: {heard!r} {self.complaint()}")
            heard += piece
        return heard


class CompactEcho(Sluice):
    """`sluice serve` with an echo under TLS whose records are compact, which no option of a bridge asks for."""

    def __init__(self, core=SERVER_CORE):
        self._heard = None
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "sluice.yaml"
        file.write_text(json.dumps({
            "control": {"address": "none"}, "log-level": "error", "max-connections": 100_000,
            "listeners": [{
                "name": "echo", "listen": "wss://127.0.0.1:0", "max-connections": 100_000, "max-connections-per-client": 100_000,
                "tls": {"certificate": str(certificate()), "key": str(key()), "records": "compact"}}],
            "routes": [{"name": "echo", "path": "/echo", "target": "echo"}]}))
        Peer.__init__(self, [self.binary, "serve", "--config", file], core)
        try:
            self.port = self._announced("listening on")
        except MeasurementFailed:
            self.end()
            raise

    def end(self):
        super().end()
        self._folder.cleanup()


def wsload(mode, port, *options, pids=(), seconds=60):
    """One run of the load generator; its line of JSON as a dictionary."""
    words = ["taskset", "--cpu-list", str(LOAD_CORE), str(BUILT / "wsload"), mode, f"127.0.0.1:{port}"]
    words += [str(option) for option in options]
    for pid in pids:
        words += ["--pid", str(pid)]
    return run_json(words, seconds)


def run_json(words, seconds):
    try:
        run = subprocess.run([str(word) for word in words], capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise MeasurementFailed(f"{' '.join(map(str, words))}: no end within {seconds} s") from late
    try:
        result = json.loads(run.stdout)
    except json.JSONDecodeError as unreadable:
        raise MeasurementFailed(f"{' '.join(map(str, words))}: {run.stderr.decode().strip()[-300:]}") from unreadable
    if result.get("errors"):
        raise MeasurementFailed(f"{result['errors']} errors, the first: {result.get('first_error')}")
    return result


def have(program):
    return shutil.which(program) is not None
