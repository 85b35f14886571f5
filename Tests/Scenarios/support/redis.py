"""A Redis server of this test alone, on a Unix socket."""
import os
import signal
import subprocess

DEADLINE = 20


class Redis:
    def __init__(self, directory, *options):
        self.directory = directory
        self.path = directory / "redis.sock"
        self.options = options
        self.process = None
        self.start()

    @property
    def url(self):
        return f"unix://{self.path}"

    def start(self):
        self.path.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self.path), "--dir", str(self.directory), "--save", "",
             *self.options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "ready to accept connections" in line.lower():
                break
        else:
            raise AssertionError("redis-server ended")

    def command(self, *words):
        run = subprocess.run(
            ["redis-cli", "-s", str(self.path), "--raw", *(str(word) for word in words)], capture_output=True, text=True,
            check=True, timeout=DEADLINE)
        return run.stdout.removesuffix("\n")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

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
