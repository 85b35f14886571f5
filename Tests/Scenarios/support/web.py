"""Web servers configured for one test: nginx, Apache's httpd, Hypercorn, and a small one in Python."""

import hashlib
import os
import shutil
import sys
import tempfile
import textwrap
import threading
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .deadlines import eventually
from .programs import Program, find, free_port, unprivileged

TEXT = "".join(f"line {number} of a text that shrinks well when it is packed\n" for number in range(5000))


def logged(log, target, count):
    """The words of the log's lines that have the word `target` (all lines without one), once there are `count` or more: a server
    writes a request's line after it has answered the client."""
    def lines():
        found = [line.split() for line in log.read_text().splitlines()]
        return [words for words in found if target is None or target in words]

    eventually(lambda: len(lines()) >= count, f"{count} lines about {target or 'anything'} in {log}", within=30)
    return lines()


class Nginx:
    """nginx over a folder of files:

    /file, /text (with gzip), /slow/file (limited), /moved → /file, /upload/… (PUT, DELETE), /private/file (Basic, ada:secret),
    /brief/… (idle connections are closed after 50 ms), /later (425 to early data),
    /sparse (10 GiB of zeros with a mark at the end).
    """

    MARK = b"the end of ten gibibytes"
    SPARSE_SIZE = 10 << 30
    SLOW_RATE = 2 << 20

    def __init__(self, folder, server_certificate=None, client_authority=None, content=None, slow_rate=SLOW_RATE,
                 http2=False, early_data=False, requests_per_connection=1000, streams=128):
        self.folder = folder
        self.files = folder / "files"
        self.uploads = folder / "upload"
        for one in (self.files, self.uploads, folder / "temporary"):
            one.mkdir(parents=True, exist_ok=True)
        self.content = os.urandom(4 << 20) if content is None else content
        self.file, self.text = self.files / "file", self.files / "text"
        self.file.write_bytes(self.content)
        self.text.write_text(TEXT)
        with open(self.files / "sparse", "wb") as sparse:
            sparse.seek(self.SPARSE_SIZE - len(self.MARK))
            sparse.write(self.MARK)
        (folder / "users").write_text("ada:{PLAIN}secret\n")
        self.port = free_port()
        self.log = folder / "access.log"
        self.log.touch()  # The server may listen before it opens its log.
        self.scheme = "https" if server_certificate else "http"
        self.base = f"{self.scheme}://{'localhost' if server_certificate else '127.0.0.1'}:{self.port}"
        configuration = folder / "nginx.conf"
        limits = f"keepalive_requests {requests_per_connection}; http2_max_concurrent_streams {streams};"
        configuration.write_text(
            self._configuration(server_certificate, client_authority, slow_rate, http2, early_data, limits))
        self.program = Program(find("nginx"), "-c", configuration, "-p", folder, "-e", "stderr")
        self.program.wait_listening(self.port)

    def _configuration(self, certificate, client_authority, slow_rate, http2, early_data, limits):
        secure = ""
        if certificate:
            secure = f"ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};"
        if client_authority:
            secure += f" ssl_verify_client on; ssl_client_certificate {client_authority.certificate};"
        if early_data:
            # Each request on a connection of its own, if they are far enough apart.
            secure += " ssl_early_data on; keepalive_timeout 50ms;"
        temporary = " ".join(f"{kind}_temp_path {self.folder}/temporary;"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.getuid() == 0 else ""
        return textwrap.dedent(f"""\
            daemon off;
            {user}
            worker_processes 1;
            pid {self.folder}/nginx.pid;
            events {{ worker_connections 1024; }}
            http {{
                log_format wire '$connection $connection_requests $status $request_method $request_uri $bytes_sent';
                access_log {self.log} wire;
                {limits}
                {temporary}
                default_type application/octet-stream;
                client_max_body_size 0;
                sendfile on;
                server {{
                    listen 127.0.0.1:{self.port}{' ssl' if certificate else ''}{' http2' if http2 else ''};
                    {secure}
                    root {self.files};
                    location = /moved {{ return 302 /file; }}
                    location = /text {{ default_type text/plain; gzip on; gzip_types text/plain; gzip_min_length 1; }}
                    location /slow/ {{ alias {self.files}/; limit_rate {slow_rate}; }}
                    location /brief/ {{ alias {self.files}/; keepalive_timeout 50ms; }}
                    location = /later {{ if ($ssl_early_data) {{ return 425; }} return 200 "later"; }}
                    location /upload/ {{
                        alias {self.uploads}/; dav_methods PUT DELETE; create_full_put_path on;
                    }}
                    location /private/ {{
                        alias {self.files}/; auth_basic "The cellar"; auth_basic_user_file {self.folder}/users;
                    }}
                }}
            }}
            """)

    def requests(self, target=None, count=0):
        """(connection, method, target, status) of the requests so far, in the order in which they ended; see `logged`."""
        return [(words[0], words[3], words[4], int(words[2])) for words in logged(self.log, target, count)]

    def end(self):
        self.program.end()


def own(folder):
    """Changes the owner of the folder and its content to the user of `unprivileged`; returns that user."""
    user = unprivileged()
    if user:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user["user"], user["group"])
    return user


class Apache:
    """httpd with Digest authentication (ada:secret) and with PUT and DELETE (DAV): /private/file, /dav/…, and both at once:
    /vault/…"""

    REALM = "The attic"

    def __init__(self, content, server_certificate=None):
        """With a certificate: TLS and HTTP/2."""
        # httpd refuses to run as root, and pytest's folders are not accessible to other users.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="httpd-"))
        for one in ("private", "dav", "vault"):
            (folder / one).mkdir(parents=True, exist_ok=True)
        (folder / "private" / "file").write_bytes(content)
        self.uploads, self.vault = folder / "dav", folder / "vault"
        secret = hashlib.md5(f"ada:{self.REALM}:secret".encode()).hexdigest()
        (folder / "users").write_text(f"ada:{self.REALM}:{secret}\n")
        self.port = free_port()
        self.base = f"https://localhost:{self.port}" if server_certificate else f"http://127.0.0.1:{self.port}"
        self.log = folder / "access.log"
        self.log.touch()  # The server may listen before it opens its log.
        modules = ["mpm_event", "alias", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest", "dav", "dav_fs", "dav_lock"]
        secure = ""
        if server_certificate:
            modules += ["socache_shmcb", "ssl", "http2"]
            # Copies that the user of httpd can read.
            certificate, key = (shutil.copy(file, folder) for file in server_certificate)
            secure = f"Protocols h2 http/1.1\nSSLEngine on\nSSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n"
        load = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules)
        configuration = folder / "httpd.conf"
        configuration.write_text(load + "\n" + secure + textwrap.dedent(f"""
            ServerName localhost
            Listen 127.0.0.1:{self.port}
            PidFile {folder}/httpd.pid
            DefaultRuntimeDir {folder}
            Mutex file:{folder}
            DavLockDB {folder}/locks
            ErrorLog {folder}/error.log
            LogFormat "%>s %m %U%q" short
            CustomLog {self.log} short
            Alias /private {folder}/private
            Alias /dav {folder}/dav
            Alias /vault {folder}/vault
            <LocationMatch "^/(private|vault)/">
                AuthType Digest
                AuthName "{self.REALM}"
                AuthDigestProvider file
                AuthUserFile {folder}/users
                Require valid-user
            </LocationMatch>
            <Location /dav>
                Dav On
                Require all granted
            </Location>
            <Location /vault>
                Dav On
            </Location>
            """))
        self.program = Program(find("apache2", "httpd"), "-X", "-f", configuration, "-d", folder, **own(folder))
        self.program.wait_listening(self.port)

    def statuses(self, target, count):
        """The statuses of the requests for a path with query so far; see `logged`."""
        return [int(words[0]) for words in logged(self.log, target, count)]

    def end(self):
        self.program.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Hypercorn:
    """A server in Python with HTTP/2 and TLS: /file, /pieces (without a length), /echo (the request's body)."""

    APPLICATION = """
        from pathlib import Path

        CONTENT = Path(__file__).with_name("file").read_bytes()

        async def application(scope, receive, send):
            if scope["type"] != "http":
                return
            body, more = b"", True
            while more:
                message = await receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
            answer = body if scope["path"] == "/echo" else CONTENT
            fields = [] if scope["path"] == "/pieces" else [(b"content-length", str(len(answer)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            for start in range(0, len(answer), 50_000):
                await send({"type": "http.response.body", "body": answer[start:start + 50_000], "more_body": True})
            await send({"type": "http.response.body"})
    """

    def __init__(self, folder, content, server_certificate, streams=100):
        (folder / "file").write_bytes(content)
        (folder / "hypercorn.toml").write_text(f"h2_max_concurrent_streams = {streams}\n")
        (folder / "application.py").write_text(textwrap.dedent(self.APPLICATION))
        self.port = free_port()
        self.base = f"https://localhost:{self.port}"
        certificate, key = server_certificate
        self.program = Program(
            sys.executable, "-m", "hypercorn", "--config", folder / "hypercorn.toml", "--bind", f"127.0.0.1:{self.port}",
            "--certfile", certificate, "--keyfile", key, f"{folder}/application.py:application")
        self.program.wait_listening(self.port)

    def end(self):
        self.program.end()


class Origin:
    """A small server with cookies, a counter and an echo: /login, /name, /count, /echo."""

    def __init__(self):
        self.requests = []
        self.visits = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def _handler(self):
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                origin.requests.append((self.command, self.path, dict(self.headers), body))
                text, fields = origin.answer(self.command, self.path, self.headers, body)
                self.send_response(200)
                for name, value in {"Content-Length": len(text), **fields}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, method, path, headers, body):
        """(body, fields)."""
        if path == "/login":
            return b"welcome", {"Set-Cookie": "user=ada; Path=/; HttpOnly"}
        if path == "/name":
            cookies = SimpleCookie(headers.get("Cookie", ""))
            name = cookies["user"].value if "user" in cookies else "nobody"
            return name.encode(), {"Cache-Control": "no-store"}
        if path == "/count":
            self.visits += 1
            return str(self.visits).encode(), {"Cache-Control": "max-age=600"}
        return body, {"Content-Type": headers.get("Content-Type", "application/octet-stream"), "Cache-Control": "no-store"}

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
