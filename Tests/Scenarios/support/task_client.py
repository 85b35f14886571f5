"""The library's clients (Tests/Programs/TaskClient) as processes: they print a report as one line of JSON at their end."""

import json
import os
import signal
import subprocess
from pathlib import Path

from . import gateway
from .deadlines import Lines, seconds

BINARY = Path(os.environ.get("SLUICE_TASK_CLIENT", gateway.BINARY.parent / "TaskClient"))


class TaskClient:
    """A running client."""

    def __init__(self, *arguments, text=""):
        assert BINARY.exists(), f"there is no binary at {BINARY}: build the product TaskClient, or set SLUICE_TASK_CLIENT"
        self.arguments = [str(word) for word in arguments]
        self.process = subprocess.Popen(
            [str(BINARY), *self.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.output, self.errors = Lines(self.process.stdout), Lines(self.process.stderr)
        self.reported = None
        self.peak = None
        self.process.stdin.write(text.encode())
        self.process.stdin.close()

    def report(self, within=60.0):
        """Waits for the end, which must not be a crash, and returns the printed report."""
        if self.reported is not None:
            return self.reported
        if not (self.output.wait_for_end(within) and self.errors.wait_for_end(within)):
            self.kill()
            raise AssertionError(f"{self} did not end within {seconds(within):g} s")
        self._reap()
        code, errors, lines = self.process.returncode, self.errors.all(), self.output.all()
        assert code >= 0, f"{self} ended by {signal.Signals(-code).name}: {errors}"
        assert code in (0, 1) and not errors, f"{self} ended with exit code {code}: {errors}"
        assert len(lines) == 1, f"one line was expected of {self}, not {lines}"
        self.reported = json.loads(lines[0])
        failed = "failure" in self.reported or "error" in self.reported
        assert code == (1 if failed else 0), f"exit code {code} with {self.reported}"
        return self.reported

    def memory(self):
        """Peak resident memory so far, in bytes."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
        except (StopIteration, FileNotFoundError):
            self.report()
            return self.peak

    def _reap(self):
        if self.process.returncode is None:
            _, status, usage = os.wait4(self.process.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.peak = usage.ru_maxrss << 10

    def kill(self):
        if self.process.returncode is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self._reap()
        self.output.wait_for_end()
        self.errors.wait_for_end()

    def __str__(self):
        return f"TaskClient {' '.join(self.arguments)}"
