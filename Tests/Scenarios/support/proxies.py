"""Proxies configured for one test: tinyproxy and squid (HTTP) and microsocks (SOCKS 5)."""

import os
import shutil
import tempfile
import textwrap
from pathlib import Path

from .programs import Program, find, free_port
from .web import logged, own

USER, PASSWORD = "ada", "secret"


class Tinyproxy:
    """An HTTP proxy, with a password if `asks`."""

    def __init__(self, folder, asks=False):
        self.port = free_port()
        self.log = folder / "tinyproxy.log"
        self.log.touch()
        configuration = folder / "tinyproxy.conf"
        lines = [f"Port {self.port}", "Listen 127.0.0.1", f'LogFile "{self.log}"', "LogLevel Connect", "MaxClients 50",
                 "Timeout 60", "DisableViaHeader Yes"]
        lines += [f"BasicAuth {USER} {PASSWORD}"] if asks else []
        lines += ['User root', 'Group root'] if os.getuid() == 0 else []
        configuration.write_text("\n".join(lines) + "\n")
        credential = f"{USER}:{PASSWORD}@" if asks else ""
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = f"http://{credential}127.0.0.1:{self.port}"
        self.program = Program(find("tinyproxy"), "-d", "-c", configuration)
        self.program.wait_listening(self.port)

    def end(self):
        self.program.end()


class SecureTinyproxy:
    """tinyproxy behind socat, which has the TLS."""

    def __init__(self, folder, certificate, asks=False):
        self.proxy = Tinyproxy(folder, asks)
        self.port = free_port()
        self.url = self.proxy.url.replace("http:", "https:").replace(str(self.proxy.port), str(self.port))
        chain, key = certificate
        self.program = Program(
            find("socat"), f"openssl-listen:{self.port},bind=127.0.0.1,reuseaddr,fork,cert={chain},key={key},verify=0",
            f"tcp:127.0.0.1:{self.proxy.port}")
        self.program.wait_listening(self.port)

    def end(self):
        self.program.end()
        self.proxy.end()


class Squid:
    """squid at `localhost` that authenticates each request: by Negotiate with the tickets of `realm`, otherwise by Digest
    (ada:secret)."""

    HELPERS = Path("/usr/lib/squid")

    def __init__(self, realm=None):
        # squid refuses to run as root, and pytest's folders are not accessible to other users.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="squid-"))
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.log = folder / "access.log"
        self.log.touch()
        environment = dict(os.environ)
        if realm:
            shutil.copy(realm.keytab, folder / "keytab")
            shutil.copy(realm.folder / "krb5.conf", folder / "krb5.conf")
            environment |= {"KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5RCACHENAME": "none:"}
            asks = [f"negotiate program {self.HELPERS}/negotiate_kerberos_auth -k {folder}/keytab -s HTTP/localhost",
                    "negotiate children 1 startup=1", "negotiate keep_alive on"]
        else:
            (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
            asks = [f"digest program {self.HELPERS}/digest_file_auth {folder}/users", "digest children 1 startup=1",
                    "digest realm The fence"]
        configuration = folder / "squid.conf"
        configuration.write_text("".join(f"auth_param {line}\n" for line in asks) + textwrap.dedent(f"""
            http_port 127.0.0.1:{self.port}
            visible_hostname localhost
            pid_filename none
            cache deny all
            cache_log {folder}/cache.log
            logformat short %>Hs %rm %un
            access_log stdio:{self.log} short
            coredump_dir {folder}
            netdb_filename none
            pinger_enable off
            shutdown_lifetime 0 seconds
            acl known proxy_auth REQUIRED
            http_access allow known
            http_access deny all
            """))
        self.program = Program(find("squid"), "-N", "-f", configuration, env=environment, **own(folder))
        self.program.wait_listening(self.port, within=60)

    def users(self, method, count):
        """By request with the method so far, status and user; see `logged`."""
        return [(int(status), user) for status, _, user in logged(self.log, method, count)]

    def end(self):
        self.program.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Microsocks:
    def __init__(self, asks=False):
        self.port = free_port()
        words = ["-u", USER, "-P", PASSWORD] if asks else []
        credential = f"{USER}:{PASSWORD}@" if asks else ""
        self.base = f"socks5h://127.0.0.1:{self.port}"
        self.url = f"socks5h://{credential}127.0.0.1:{self.port}"
        self.program = Program(find("microsocks"), "-i", "127.0.0.1", "-p", self.port, *words)
        self.program.wait_listening(self.port)

    def end(self):
        self.program.end()
