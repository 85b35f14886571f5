"""Redis servers of one test alone."""
import os
import signal
import subprocess

from support.deadlines import Lines
from support.programs import free_port, run

DEADLINE = 60


class Redis:
    """A server on a Unix socket, and on a port if the options name one."""

    def __init__(self, directory, *options, name="redis"):
        self.directory = directory
        self.path = directory / f"{name}.sock"
        self.options = options
        self.process = None
        self.start()

    @property
    def url(self):
        return f"unix://{self.path}"

    def start(self):
        self.path.unlink(missing_ok=True)
        port = [] if "--port" in self.options else ["--port", "0"]
        self.process = subprocess.Popen(
            ["redis-server", "--unixsocket", str(self.path), "--dir", str(self.directory), "--save", "", *port,
             *(str(option) for option in self.options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.output = Lines(self.process.stdout)
        try:
            self.output.wait_for(
                lambda line: "ready to accept connections" in line.lower(), "a server that is ready", DEADLINE)
        except AssertionError:
            self.kill()
            raise

    def command(self, *words):
        done = run("redis-cli", "-s", self.path, "--raw", *words, within=DEADLINE, check=True)
        return done.stdout.removesuffix("\n")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.resume()
            self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Sentinel:
    """A sentinel that watches a primary by the name `main`, and alone decides that it is down."""

    def __init__(self, directory, primary_port):
        self.port = free_port()
        file = directory / "sentinel.conf"
        file.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {directory}\nsentinel monitor main 127.0.0.1 {primary_port} 1\n"
            "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n")
        self.process = subprocess.Popen(
            ["redis-server", str(file), "--sentinel"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.output = Lines(self.process.stdout)
        self.output.wait_for(lambda line: "+slave" in line, "a sentinel that knows a replica", DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
