"""The built binary as a process, known by its command line, its two output streams, its signals and its exit code alone."""

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

# How a process ends that ran into a trap. The gateway must never.
TRAPS = {signal.SIGILL, signal.SIGTRAP, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE}


class Gateway:
    """One running `sluice`. It is ready when the constructor returns, unless `ready` is false."""

    def __init__(self, *arguments, ready=True, environment=None, descriptors=None, inherited=(), errors=subprocess.PIPE,
                 directory=None, wrapper=(), program=BINARY):
        """
        descriptors: the limit of open files of the process; or two, the soft and the hard one.
        inherited: descriptors that it keeps; wrapper: words before the binary, of a program that ends by executing it.
        program: where that program finds the binary, if elsewhere.
        errors: a file for standard error, where the log goes, instead of a pipe that is read.
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
                told = self.log.all()[-20:] if self.log else "elsewhere"
                raise AssertionError(f"sluice {' '.join(self.arguments)} did not get ready: {failure}; log: {told}") from None

    # -- what it says

    def wait_ready(self, within=15.0):
        self.output.wait_for(lambda line: line.strip() == "ready", "the line 'ready'", within)

    @property
    def listeners(self):
        """The addresses after `listening on `, in order."""
        found = (re.match(r"listening on (\S+)", line) for line in self.output.all())
        return [match.group(1) for match in found if match]

    def url(self, index=0):
        return self.listeners[index]

    def port(self, index=0):
        return urlsplit(self.url(index)).port

    def address(self, index=0):
        return ("127.0.0.1", self.port(index))

    def wait_log(self, pattern, within=10.0, start=0):
        """A line of the log that the regular expression finds."""
        return self.log.wait_for(lambda line: re.search(pattern, line), f"a line of the log like {pattern!r}", within, start)

    # -- what the system says of it

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

    def settle(self, descriptors, within=20.0):
        """Waits until no more descriptors are open than `descriptors`: everything that was closed is really gone."""
        eventually(lambda: self.descriptors() <= descriptors, f"{descriptors} descriptors left of {self.descriptors()}", within)

    # -- its end

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, within=20.0):
        """The exit code."""
        try:
            return self.process.wait(timeout=seconds(within))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"sluice {' '.join(self.arguments)} did not end within {seconds(within):g} s") from None

    def stop(self, within=20.0):
        """SIGTERM, and the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def kill(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        self.output.wait_for_end()
        if self.log:
            self.log.wait_for_end()

    def trapped(self):
        """The signal of a trap that ended it, if one did."""
        code = self.process.poll()
        return signal.Signals(-code) if code is not None and code < 0 and signal.Signals(-code) in TRAPS else None


def run(*arguments, within=20.0, **more):
    """Runs a command of `sluice` to its end; the finished process with its output as text."""
    words = [str(BINARY), *(str(word) for word in arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds(within), stdin=subprocess.DEVNULL, **more)
