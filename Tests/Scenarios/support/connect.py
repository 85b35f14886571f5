"""`sluice connect` as a process: in pipes, or at a pseudo-terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from .deadlines import Lines, eventually, seconds
from .gateway import BINARY, TRAPS


class Connect:
    """One running `sluice connect` in pipes. `stdin` stays open until `finish`."""

    def __init__(self, *arguments, output=subprocess.PIPE, environment=None):
        self.arguments = [str(word) for word in arguments]
        self.process = subprocess.Popen(
            [str(BINARY), "connect", *self.arguments], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})})
        self.errors = Lines(self.process.stderr)
        self._output = Lines(self.process.stdout) if output == subprocess.PIPE else None

    @property
    def output(self):
        return self._output

    def send(self, data):
        self.process.stdin.write(data.encode() if isinstance(data, str) else data)
        self.process.stdin.flush()
        return self

    def finish(self):
        """Ends standard input."""
        self.process.stdin.close()
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, within=60.0):
        """Waits for the end; returns the exit code."""
        try:
            code = self.process.wait(timeout=seconds(within))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self} did not end within {seconds(within):g} s; errors: {self.errors.all()}") from None
        self.errors.wait_for_end()
        if self.output:
            self.output.wait_for_end()
        assert code >= 0, f"{self} ended by {signal.Signals(-code).name}: {self.errors.all()}"
        return code

    def memory(self):
        """Peak resident memory so far, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def trapped(self):
        code = self.process.poll()
        return code is not None and code < 0 and signal.Signals(-code) in TRAPS

    def __str__(self):
        return f"sluice connect {' '.join(self.arguments)}"


def connect(*arguments, text=b"", within=60.0, environment=None):
    """Runs it to its end with `text` on standard input; returns (exit code, standard output as bytes, standard error as text)."""
    words = [str(BINARY), "connect", *(str(word) for word in arguments)]
    run = subprocess.run(words, input=text.encode() if isinstance(text, str) else text, capture_output=True,
                         timeout=seconds(within), env={**os.environ, **(environment or {})})
    assert run.returncode >= 0, f"{words} ended by {signal.Signals(-run.returncode).name}: {run.stderr}"
    return run.returncode, run.stdout, run.stderr.decode()


def events(output):
    return [json.loads(line) for line in output.splitlines()]


class Terminal:
    """`sluice connect` at a terminal, and everything that it wrote there."""

    def __init__(self, *arguments, columns=80, environment=None, program=None):
        """program: command to run in place of `sluice connect`."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.descriptor, self.other = ours, theirs
        self.before = termios.tcgetattr(theirs)
        self.shown = b""
        variables = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
        self.process = subprocess.Popen(
            [*(program or [str(BINARY), "connect"]), *(str(word) for word in arguments)], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**variables, "TERM": "xterm", **(environment or {})}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def type(self, keys):
        os.write(self.descriptor, keys.encode())
        return self

    def _read(self, wait):
        ready, _, _ = select.select([self.descriptor], [], [], wait)
        if not ready:
            return False
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:
            return False
        self.shown += piece
        return bool(piece)

    @property
    def text(self):
        """The output without the escape sequences for colours and cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown.decode(errors="replace"))

    def wait_for(self, pattern, within=60.0):
        deadline = time.monotonic() + seconds(within)
        while not re.search(pattern, self.text, re.DOTALL):
            assert time.monotonic() < deadline, f"{pattern!r} was not shown: {self.text!r}"
            self._read(0.05)
        return self

    def is_raw(self):
        return not termios.tcgetattr(self.other)[3] & termios.ICANON

    def restored(self):
        return termios.tcgetattr(self.other) == self.before

    def wait_raw(self):
        eventually(self.is_raw, "raw mode of the terminal")
        return self

    def wait(self, within=60.0):
        """Waits for the end; returns the exit code."""
        deadline = time.monotonic() + seconds(within)
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end: {self.text!r}"
            self._read(0.02)
        while self._read(0):
            pass
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.descriptor)
        os.close(self.other)
