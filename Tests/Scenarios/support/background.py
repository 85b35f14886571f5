"""Programs with background sessions, and the daemon that carries out their transfers."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import gateway, loading
from .deadlines import eventually, seconds


class HeldOrigin:
    """A server that answers only once `release` was called: GET with the content, or a range of it, PUT with 201; /moved
    redirects to /file, /away to the `Location` in `away`. From /slow/… it sends the content at once, but for the last piece,
    in pieces of 16 KiB every 10 ms. Uploads to /resumable/… are continued at /part/…
    (draft-ietf-httpbis-resumable-upload, version 9): half of the content is read, the rest once `release` was called."""

    PIECE = 16 << 10

    def __init__(self, content, address="127.0.0.1"):
        self.content = content
        self.uploads = {}
        self.parts = {}
        self.requests = []
        self.clients = []
        self.away = None
        self.gate = threading.Event()
        self.server = QuietServer((address, 0), self._handler())
        self.base = f"http://{address}:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def release(self):
        self.gate.set()

    def hold(self):
        self.gate.clear()

    def _handler(self):
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                origin.clients.append(self.client_address[0])
                if self.path.startswith(("/resumable/", "/part/")):
                    return self.resumable(self.path.rsplit("/", 1)[1])
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                origin.requests.append((self.command, self.path, dict(self.headers)))
                if self.path.startswith("/slow/"):
                    return self.trickle()
                origin.gate.wait(seconds(60))
                if self.command == "PUT":
                    if len(body) == int(self.headers.get("Content-Length", 0)):
                        origin.uploads[self.path] = body
                    self.reply(201, b"stored")
                elif self.path == "/moved":
                    self.reply(302, b"", Location="/file")
                elif self.path == "/away":
                    self.reply(302, b"", Location=origin.away)
                else:
                    self.reply(200, origin.content, ETag='"v1"', **{"Accept-Ranges": "bytes"})

            def trickle(self):
                fields = {"ETag": '"v1"', "Accept-Ranges": "bytes"}
                start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
                rest, size = origin.content[start:], len(origin.content)
                if start:
                    fields["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
                self.reply(206 if start else 200, b"", **{**fields, "Content-Length": len(rest)})
                for offset in range(0, len(rest), origin.PIECE):
                    is_last = offset + origin.PIECE >= len(rest)
                    origin.gate.wait(seconds(60) if is_last else 0.01)
                    try:
                        self.wfile.write(rest[offset:offset + origin.PIECE])
                    except OSError:
                        return  # The daemon was killed.

            def resumable(self, name):
                origin.requests.append((self.command, self.path, dict(self.headers)))
                if self.command == "PUT":
                    # A later one is another upload.
                    name = f"{name}.{len(origin.requests)}"
                    origin.parts[name] = Part()
                    self.wfile.write(f"HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 9\r\n"
                                     f"Location: /part/{name}\r\n\r\n".encode())
                part = origin.parts.get(name)
                if part is None:
                    return self.reply(404, b"")
                generation = part.enter()
                with part.lock:
                    if self.command == "HEAD":
                        return self.reply(204, b"", **{"Upload-Offset": len(part.content), "Upload-Complete": "?0",
                                                       "Upload-Draft-Interop-Version": "9"})
                    offset, length = int(self.headers.get("Upload-Offset", 0)), int(self.headers["Content-Length"])
                    if offset != len(part.content):
                        return self.reply(409, b"", **{"Upload-Offset": len(part.content)})
                    if not self.receive(part, generation, length):
                        self.close_connection = True
                        return None
                    origin.uploads["/resumable/" + name.split(".")[0]] = bytes(part.content)
                    return self.reply(201, b"stored", **{"Upload-Complete": "?1"})

            def receive(self, part, generation, length):
                """Whether all bytes have arrived; not if another request is about the same upload."""
                half = len(origin.content) // 2
                while length:
                    while len(part.content) >= half and not origin.gate.wait(0.01):
                        if part.generation != generation:
                            return False
                    try:
                        piece = self.rfile.read1(min(length, 65536))
                    except OSError:
                        return False
                    if not piece:
                        return False
                    part.content += piece
                    length -= len(piece)
                return True

            def reply(self, status, body, **fields):
                try:
                    self.send_response(status)
                    if status != 204:
                        fields = {"Content-Length": len(body), **fields}
                    for name, value in fields.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # The daemon was killed.

            do_GET = do_PUT = do_HEAD = do_PATCH = answer

            def log_message(self, *_):
                pass

        return Handler

    def end(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # The daemon was killed.


class Part:
    """A part of an upload at a server. One request at a time appends to it."""

    def __init__(self):
        self.content = bytearray()
        self.lock = threading.Lock()
        self.generation = 0
        self._counting = threading.Lock()

    def enter(self):
        with self._counting:
            self.generation += 1
            return self.generation


class Background:
    """The folders of one user: socket, journal, and the files that programs got."""

    def __init__(self, folder, wrapper=(), **variables):
        """`wrapper`: command prefix of the programs, which the daemon that they start inherits."""
        self.folder, self.wrapper = folder, list(wrapper)
        self.runtime, self.state, self.files = folder / "runtime", folder / "state", folder / "files"
        for one in (self.runtime, self.state, self.files):
            one.mkdir(mode=0o700)
        self.environment = loading.environment(
            None, folder, XDG_RUNTIME_DIR=str(self.runtime), XDG_STATE_HOME=str(self.state),
            SLUICE_TRANSFERD=str(gateway.BINARY), SLUICE_TRANSFERD_CONDITIONS="good",
            SLUICE_TRANSFERD_IDLE_TIME="0.3", **variables)

    # -- programs

    def start(self, identifier, *words):
        binary = loading.FOLDER / "BackgroundLoader"
        assert binary.exists(), f"there is no binary at {binary}: build the product BackgroundLoader"
        return subprocess.Popen(
            [*self.wrapper, binary, identifier, self.files, *map(str, words)], env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def run(self, identifier, *words, within=60.0):
        """The lines that a program printed, until it ended; `kill` among its words is no failure."""
        process = self.start(identifier, *words)
        return self.finish(process, killed="kill" in words, within=within)

    @staticmethod
    def finish(process, killed=False, within=60.0):
        try:
            output, errors = process.communicate(timeout=seconds(within))
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            raise AssertionError(f"the program did not end: {output[-2000:]} {errors[-2000:]}") from None
        assert process.returncode == (-signal.SIGKILL if killed else 0), f"{process.returncode}: {output} {errors}"
        return output.splitlines()

    def log(self):
        """The lines of all programs."""
        path = self.files / "log"
        return path.read_text().splitlines() if path.exists() else []

    def completions(self):
        """How often each label was completed, and all lines about that."""
        lines = [line.split(maxsplit=4) for line in self.log() if line.startswith("completed ")]
        return Counter(line[2] for line in lines), lines

    # -- the daemon

    @property
    def daemon(self):
        """Process number; `None` if none runs."""
        try:
            number = int((self.runtime / "sluice" / "transferd.lock").read_text() or 0)
            state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] if number else "Z"
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None
        return None if state == "Z" else number

    def kill_daemon(self, within=60.0):
        number = eventually(lambda: self.daemon, "a daemon runs", within)
        os.kill(number, signal.SIGKILL)
        eventually(lambda: self.daemon != number, "the daemon is gone", within)

    def records(self):
        """The transfers in the journal's file; none before the daemon has made it."""
        if not (self.state / "sluice" / "transfers.sqlite").exists():
            return []
        journal = sqlite3.connect(f"file:{self.state}/sluice/transfers.sqlite?mode=ro", uri=True, timeout=10)
        try:
            if not journal.execute("SELECT name FROM sqlite_master WHERE name = 'transfer'").fetchall():
                return []
            return [json.loads(row[0]) for row in journal.execute("SELECT record FROM transfer ORDER BY session, task")]
        finally:
            journal.close()

    def daemon_log(self):
        path = self.state / "sluice" / "transferd.log"
        return path.read_text() if path.exists() else ""

    def transferd(self, **variables):
        """Starts the daemon as a service manager would."""
        return subprocess.Popen([gateway.BINARY, "transferd"], env={**self.environment, **variables},
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sluice(self, *words, code=0, within=60.0):
        """What the command printed: on standard output, or on standard error if it is to fail."""
        ended = subprocess.run([gateway.BINARY, *map(str, words)], env=self.environment, capture_output=True, text=True,
                               timeout=seconds(within))
        assert ended.returncode == code, f"{ended.returncode}: {ended.stdout} {ended.stderr}"
        return ended.stderr if code else ended.stdout

    def programs(self):
        """Numbers of the running programs with these folders, those that the daemon started included."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"/BackgroundLoader") and str(self.files).encode() in words:
                found.append(int(path.parent.name))
        return found

    def end(self):
        """Ends what still runs: first the programs, which would start another daemon. No daemon may have trapped."""
        def is_over():
            # Read once: the daemon may end at any time.
            running = [number for number in (*self.programs(), self.daemon) if number]
            for number in running:
                try:
                    os.kill(number, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not running

        eventually(is_over, "programs and daemon are gone")
        assert "Fatal error" not in self.daemon_log(), self.daemon_log()[-4000:]
