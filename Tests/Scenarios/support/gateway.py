"""The built binary as a process: command line, two output streams, signals and exit code."""

import os
import re
import resource
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from .deadlines import Lines, eventually, seconds

PROJECT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("SLUICE_BINARY", PROJECT / ".build" / "release" / "sluice"))

# Signals that end a process at a trap, which must never happen to the gateway.
TRAPS = {signal.SIGILL, signal.SIGTRAP, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE}


class Gateway:
    """A running `sluice`. It is ready when the constructor returns, unless `ready` is false."""

    def __init__(self, *arguments, ready=True, environment=None, descriptors=None, inherited=(), errors=subprocess.PIPE,
                 directory=None, wrapper=(), program=BINARY):
        """
        descriptors: limit of open files of the process, or (soft limit, hard limit).
        inherited: descriptors that the process inherits; wrapper: command prefix, a program that executes the binary.
        program: path of the binary for the wrapper, if it differs.
        errors: file for standard error, which is the log, instead of a pipe that is read.
        """
        def prepare():
            if descriptors is not None:
                both = descriptors if isinstance(descriptors, tuple) else (descriptors, descriptors)
                resource.setrlimit(resource.RLIMIT_NOFILE, both)

        self.arguments = [str(word) for word in arguments]
        self.process = subprocess.Popen(
            [*(str(word) for word in wrapper), str(program), *self.arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=directory,
            env={**os.environ, **(environment or {})}, pass_fds=inherited, preexec_fn=prepare)
        self.output = Lines(self.process.stdout)
        self.log = Lines(self.process.stderr) if errors == subprocess.PIPE else None
        if ready:
            try:
                self.wait_ready()
            except AssertionError as failure:
                self.kill()
                lines = self.log.all()[-20:] if self.log else "elsewhere"
                raise AssertionError(f"sluice {' '.join(self.arguments)} did not get ready: {failure}; log: {lines}") from None

    # -- output

    def wait_ready(self, within=60.0):
        self.output.wait_for(lambda line: line.strip() == "ready", "the line 'ready'", within)

    @property
    def listeners(self):
        """The printed addresses of the listeners, in order."""
        found = (re.match(r"listening on (\S+)", line) for line in self.output.all())
        return [match.group(1) for match in found if match]

    def url(self, index=0):
        return self.listeners[index]

    def port(self, index=0):
        return urlsplit(self.url(index)).port

    def address(self, index=0):
        return ("127.0.0.1", self.port(index))

    def wait_log(self, pattern, within=60.0, start=0):
        """Waits for a line of the log that matches the regular expression, and returns it."""
        return self.log.wait_for(lambda line: re.search(pattern, line), f"a line of the log like {pattern!r}", within, start)

    # -- resources

    @property
    def pid(self):
        return self.process.pid

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def running(self):
        return self.process.poll() is None

    def cpu(self):
        """Seconds of CPU time so far."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self, descriptors, within=60.0):
        """Waits until at most `descriptors` descriptors are open: everything that was closed is released."""
        eventually(lambda: self.descriptors() <= descriptors, f"{descriptors} descriptors left of {self.descriptors()}", within)

    # -- end

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, within=60.0):
        """Waits for the end, and for all that it wrote; returns the exit code."""
        try:
            code = self.process.wait(timeout=seconds(within))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"sluice {' '.join(self.arguments)} did not end within {seconds(within):g} s") from None
        self._read_to_end()
        return code

    def stop(self, within=60.0):
        """Sends SIGTERM; returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def kill(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        self._read_to_end()

    def _read_to_end(self):
        self.output.wait_for_end()
        if self.log:
            self.log.wait_for_end()

    def trapped(self):
        """The signal of the trap that ended the process, or None."""
        code = self.process.poll()
        return signal.Signals(-code) if code is not None and code < 0 and signal.Signals(-code) in TRAPS else None


def run(*arguments, within=60.0, **more):
    """Runs a command of `sluice` to its end; returns the finished process with its output as text."""
    words = [str(BINARY), *(str(word) for word in arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds(within), stdin=subprocess.DEVNULL, **more)
