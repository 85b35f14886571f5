"""The command line as a client of a running gateway: one process for each command."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass

from .deadlines import seconds
from .gateway import BINARY, TRAPS


@dataclass
class Run:
    code: int
    output: bytes
    errors: str

    @property
    def text(self):
        return self.output.decode()

    @property
    def lines(self):
        return self.text.splitlines()

    @property
    def json(self):
        return json.loads(self.output)

    def failed(self, code):
        """Expects this exit code; returns the one line on standard error."""
        assert self.code == code, (self.code, self.output, self.errors)
        lines = self.errors.splitlines()
        assert len(lines) == 1 and lines[0].startswith("sluice: "), lines
        return lines[0]


def clean(environment=None):
    """The environment of this process without variables that the command reads."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_") and key != "NO_COLOR"}
    return {**kept, **(environment or {})}


class Client:
    """`sluice COMMAND … --control URL`."""

    def __init__(self, url, *options):
        self.url = url
        self.options = [str(word) for word in options]

    def words(self, *arguments):
        return [str(BINARY), *(str(word) for word in arguments), "--control", self.url, *self.options]

    def run(self, *arguments, text=b"", within=60.0, environment=None):
        """Runs the command to its end, whatever its exit code."""
        done = subprocess.run(
            self.words(*arguments), input=text.encode() if isinstance(text, str) else text, capture_output=True,
            timeout=seconds(within), env=clean(environment))
        assert -done.returncode not in TRAPS, f"{arguments} ended by {signal.Signals(-done.returncode).name}: {done.stderr}"
        return Run(done.returncode, done.stdout, done.stderr.decode())

    def __call__(self, *arguments, **more):
        """Runs the command, which must succeed; returns its output."""
        run = self.run(*arguments, **more)
        assert run.code == 0 and not run.errors, (arguments, run.code, run.output, run.errors)
        return run.text

    def start(self, *arguments, environment=None):
        return subprocess.Popen(
            self.words(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean(environment))
