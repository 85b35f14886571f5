"""Proxies configured for one test: tinyproxy (HTTP) and microsocks (SOCKS 5)."""

import os

from .programs import Program, find, free_port

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
