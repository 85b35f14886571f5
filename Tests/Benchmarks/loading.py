"""What is measured of the URL loading system: rows like those of the gateway, against the toolchain's own and against curl."""

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import peers
import rows
from peers import BUILT, HERE, LOAD_CORE, SERVER_CORE, Floor, MeasurementFailed, Peer, run_json
from rows import Result

LIMIT = 900
LINE = b"a line of text of a length that lines of logs have, more or less, most of the time\n"


class Web(Peer):
    """nginx on the load's core, over a folder in memory where there is one."""

    def __init__(self, folder):
        for name in ("files", "upload", "temporary"):
            (folder / name).mkdir()
        self.folder, self.files, self.uploads = folder, folder / "files", folder / "upload"
        (self.files / "small").write_bytes(bytes(1024))
        port, multiplexed = peers.free_port(), peers.free_port()
        temporary = " ".join(f"{kind}_temp_path {folder}/temporary;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {folder}/nginx.pid; {'user root;' if os.getuid() == 0 else ''}
            events {{ worker_connections 4096; }}
            http {{
                access_log off; {temporary} default_type application/octet-stream; client_max_body_size 0; sendfile on;
                keepalive_requests 1000000000;
                server {{
                    listen 127.0.0.1:{port} backlog=4096; root {self.files};
                    location /upload/ {{ alias {self.uploads}/; dav_methods PUT; }}
                }}
                server {{
                    listen 127.0.0.1:{multiplexed} backlog=4096 ssl http2; root {self.files};
                    ssl_certificate {peers.certificate()}; ssl_certificate_key {peers.key()};
                }}
            }}""")
        nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not nginx:
            raise MeasurementFailed("nginx is not there")
        super().__init__([nginx, "-c", folder / "nginx.conf", "-p", folder, "-e", "stderr"], LOAD_CORE, port)
        self.base = f"http://127.0.0.1:{port}"
        # HTTP/2 for those that offer it in their handshake.
        self.multiplexed = f"https://127.0.0.1:{multiplexed}"

    def put(self, name, size, piece=b""):
        """A file of this size: of nothing, which takes no room, or of repetitions of `piece`."""
        with open(self.files / name, "wb") as file:
            if piece:
                block = piece * (1 + (1 << 20) // len(piece))
                for at in range(0, size, len(block)):
                    file.write(block[:size - at])
            else:
                file.truncate(size)
        return self.files / name


class Loading(rows.Bench):
    """`programs` is where the release programs of the package are."""

    programs = None

    @contextlib.contextmanager
    def web(self):
        memory = Path("/dev/shm")
        place = memory if memory.is_dir() and shutil.disk_usage(memory).free > 3 * self.size.bulk else None
        with tempfile.TemporaryDirectory(dir=place) as folder, Web(Path(folder)) as web:
            yield web

    @staticmethod
    def pinned(*words):
        return run_json(["env", f"SSL_CERT_FILE={peers.certificate()}", "taskset", "--cpu-list", SERVER_CORE, *words], LIMIT)

    def ours(self, *words):
        return self.pinned(self.programs / "TransferBenchmark", *words)

    def session(self, *words):
        return self.pinned(self.programs / "SessionBenchmark", *words)

    def foundation(self, *words):
        """The same source with the toolchain's own URL loading."""
        binary, source = BUILT / "transfer-foundation", HERE / "TransferBenchmark" / "main.swift"
        if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
            with tempfile.TemporaryDirectory() as folder:
                text = source.read_text().replace("import URLLoading\n", "import FoundationNetworking\n")
                (Path(folder) / "main.swift").write_text(text)
                subprocess.run(["swiftc", "-O", "-swift-version", "6", Path(folder) / "main.swift", "-o", binary], check=True, timeout=300)
        return self.pinned(binary, *words)

    @staticmethod
    def timed(command):
        """Seconds that a shell command takes on the measured core."""
        began = time.monotonic()
        run = subprocess.run(["taskset", "--cpu-list", str(SERVER_CORE), "sh", "-c", command], capture_output=True, timeout=LIMIT)
        if run.returncode != 0:
            raise MeasurementFailed(f"{command}: {run.stderr.decode().strip()[-300:]}")
        return time.monotonic() - began

    # -- the rows

    def requests_in_sequence(self):
        with self.web() as web:
            words = ["repeat", f"{web.base}/small", self.size.requests, 1]

            def cpu(run):
                return run["cpu_seconds"] / run["count"] * 1e6

            mine, yard = self.interleave(lambda: cpu(self.ours(*words)), lambda: cpu(self.foundation(*words)))
            yield Result("GET 1 KiB in sequence / Foundation", mine / yard, 0.12, True, ours=mine, yardstick=yard,
                         measure="CPU µs/request")

    def requests_in_flight(self):
        with self.web() as web:
            words = [f"{web.base}/small", self.size.requests * 2, 32]

            def rate(run):
                return run["count"] / run["seconds"]

            mine, foundation, curl = self.interleave(
                lambda: rate(self.ours("repeat", *words)), lambda: rate(self.foundation("repeat", *words)),
                lambda: rate(self.pinned(BUILT / "multiload", *words)))
            yield Result("GET 1 KiB, 32 in flight / Foundation", mine / foundation, 3, False, ours=mine, yardstick=foundation,
                         measure="requests/s")
            yield Result("GET 1 KiB, 32 in flight / libcurl", mine / curl, 1, False, ours=mine, yardstick=curl,
                         measure="requests/s")

    def requests_multiplexed(self):
        with self.web() as web:
            words = [self.size.requests * 2, 100]

            def rate(run):
                return run["count"] / run["seconds"]

            mine, foundation, curl = self.interleave(
                lambda: rate(self.ours("repeat", f"{web.multiplexed}/small", *words)),
                # HTTP/1.1 without TLS: it takes no roots but those of the system.
                lambda: rate(self.foundation("repeat", f"{web.base}/small", *words)),
                lambda: rate(self.pinned(BUILT / "multiload", f"{web.multiplexed}/small", *words, peers.certificate())))
            yield Result("GET 1 KiB, HTTP/2, 100 in flight / Foundation", mine / foundation, 3, False, ours=mine,
                         yardstick=foundation, measure="requests/s")
            yield Result("GET 1 KiB, HTTP/2, 100 in flight / libcurl", mine / curl, 1, False, ours=mine, yardstick=curl,
                         measure="requests/s")

    def downloads_multiplexed(self):
        with self.web() as web:
            web.put("bulk", self.size.bulk)
            url, target = f"{web.multiplexed}/bulk", web.folder / "got"

            def checked(seconds):
                if target.stat().st_size != self.size.bulk:
                    raise MeasurementFailed("the file is not whole")
                target.unlink()
                return seconds

            # The temporary file of a download is to lie in the same file system as curl's.
            os.environ["TMPDIR"] = str(web.folder)
            try:
                mine, yard = self.interleave(
                    lambda: checked(self.ours("download", url, target)["seconds"]),
                    lambda: checked(self.timed(f"curl -sf --http2 --cacert {peers.certificate()} -o {target} {url}")))
            finally:
                del os.environ["TMPDIR"]
            rates = [self.size.bulk / seconds / 1e6 for seconds in (mine, yard)]
            yield Result("download by HTTP/2 / curl --http2", yard / mine, 0.9, False, ours=rates[0], yardstick=rates[1],
                         measure="MB/s")

    def bulk_results(self, name, curl, mine, yard, memory):
        rates = [self.size.bulk / seconds / 1e6 for seconds in (mine, yard)]
        yield Result(f"{name} / {curl}", yard / mine, 0.9, False, ours=rates[0], yardstick=rates[1], measure="MB/s")
        early, late = (statistics.median(each) / (1 << 20) for each in zip(*memory))
        yield Result(f"{name}, memory above idle", max(early, late), 8, True, "MiB", notes={"first_half": early, "second_half": late})
        yield Result(f"{name}, memory that grows", max(0.0, late - early), 1, True, "MiB")

    def downloads(self):
        with self.web() as web:
            web.put("bulk", self.size.bulk)
            url, target, memory = f"{web.base}/bulk", web.folder / "got", []

            def checked(measure):
                seconds = measure()
                if target.stat().st_size != self.size.bulk:
                    raise MeasurementFailed("the file is not whole")
                target.unlink()
                return seconds

            def ours():
                run = self.ours("download", url, target)
                memory.append((run["early_bytes"], run["late_bytes"]))
                return run["seconds"]

            # The temporary file of a download is to lie in the same file system as curl's.
            os.environ["TMPDIR"] = str(web.folder)
            try:
                mine, yard = self.interleave(lambda: checked(ours), lambda: checked(lambda: self.timed(f"curl -sf -o {target} {url}")))
            finally:
                del os.environ["TMPDIR"]
            yield from self.bulk_results("download to a file", "curl -o", mine, yard, memory)

    def uploads(self):
        with self.web() as web:
            source, memory = web.put("bulk", self.size.bulk), []
            target, url = web.uploads / "bulk", f"{web.base}/upload/bulk"

            def checked(measure):
                seconds = measure()
                if target.stat().st_size != self.size.bulk:
                    raise MeasurementFailed("what arrived is not whole")
                target.unlink()
                return seconds

            def ours():
                run = self.ours("upload", source, url)
                memory.append((run["early_bytes"], run["late_bytes"]))
                return run["seconds"]

            mine, yard = self.interleave(lambda: checked(ours), lambda: checked(lambda: self.timed(f"curl -sf -T {source} {url}")))
            yield from self.bulk_results("upload from a file", "curl -T", mine, yard, memory)

    def lines(self):
        with self.web() as web:
            size = self.size.text // len(LINE) * len(LINE)
            web.put("text", size, LINE)
            url = f"{web.base}/text"

            def ours():
                run = self.session("lines", url)
                if run["count"] != size // len(LINE):
                    raise MeasurementFailed(f"{run['count']} lines, not {size // len(LINE)}")
                return run["seconds"]

            mine, yard = self.interleave(ours, lambda: self.timed(f"curl -sf {url} | wc -l"))
            yield Result("bytes(for:).lines / curl | wc -l", yard / mine, 0.3, False, ours=size / mine / 1e6, yardstick=size / yard / 1e6,
                         measure="MB/s")

    def socket_messages(self):
        with Floor("ws-echo", core=LOAD_CORE) as echo:
            count = self.size.requests * 4

            def cpu(run):
                return run["cpu_seconds"] / run["count"] * 1e6

            mine, yard = self.interleave(
                lambda: cpu(self.session("socket", f"ws://127.0.0.1:{echo.port}/echo", count)),
                lambda: cpu(self.session("direct", "127.0.0.1", echo.port, "/echo", count)))
            yield Result("WebSocket echo 512 B / SessionTasks", mine / yard, 2, True, ours=mine, yardstick=yard, measure="CPU µs/message")

    def tasks(self):
        with self.web() as web:
            run = self.session("rounds", f"{web.base}/small", self.size.tasks)
            yield Result("growth per task that was run", run["grown_bytes"] / run["count"], 4, True, "B")
            run = self.session("suspended", f"{web.base}/small", self.size.tasks)
            yield Result("memory of a suspended task", run["grown_bytes"] / run["count"] / 1024, 4, True, "KiB")

    ROWS = (
        requests_in_sequence, requests_in_flight, requests_multiplexed, downloads, downloads_multiplexed, uploads, lines,
        socket_messages, tasks)
