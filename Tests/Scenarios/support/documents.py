"""The examples of a document: fenced blocks marked by a comment before them, and a shell that runs them.

    <!-- run -->           the shell runs the next block
    <!-- shows -->         the next block is the whole standard output of the command; `…` matches any text within a line
    <!-- check: NAME -->   the next block is written to the file NAME in the shell's folder
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .deadlines import Lines
from .gateway import BINARY, PROJECT

ARTICLES = PROJECT / "Sources" / "GatewayCore" / "GatewayCore.docc"
DOCUMENTS = [PROJECT / "README.md", *sorted(ARTICLES.glob("*.md"))]

MARKED = re.compile(r"^<!-- (run|shows|check: (\S+)) -->\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Sets up the loopback interface of a new network namespace, then executes the given program.
LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack("16sH14x", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@dataclass
class Step:
    line: int
    command: str
    shown: list = field(default_factory=list)


def steps(document):
    """The steps of a document, in order."""
    text = document.read_text()
    found = []
    for match in MARKED.finditer(text):
        kind, name, _, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if kind == "run":
            found.append(Step(line, body))
        elif kind == "shows":
            assert found, f"{document.name}:{line}: nothing ran before this output"
            found[-1].shown += [row for row in body.splitlines() if row.strip()]
        else:
            found.append(Step(line, f"cat > {shlex.quote(name)} <<'END-OF-FILE'\n{body}END-OF-FILE\n"))
    return found


def blocks(document, language):
    """(line, text) of every fenced block in this language."""
    text = document.read_text()
    return [(text.count("\n", 0, match.start()) + 1, match.group(2)) for match in FENCED.finditer(text) if match.group(1) == language]


def isolation():
    """Command prefix for a program in a network namespace, where every port of a document is free; empty if that is not permitted."""
    words = ["unshare", "--net", "--map-root-user"]
    probe = subprocess.run([*words, "true"], capture_output=True)
    return [*words, sys.executable, "-c", LOOPBACK_UP] if probe.returncode == 0 else []


def likeness(shown):
    return re.compile(".*".join(re.escape(part) for part in shown.rstrip().split("…")))


class Shell:
    """A bash that runs one block after another, like a reader who pastes them."""

    def __init__(self, folder):
        programs = folder / "bin"
        programs.mkdir()
        (programs / "sluice").symlink_to(BINARY)
        place = folder / "place"
        place.mkdir()
        # The documents' commands start in the root of the project.
        (place / "deploy").symlink_to(PROJECT / "deploy")
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(place), "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            [*isolation(), "bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place,
            env=environment, start_new_session=True)
        self.output, self.errors = Lines(self.process.stdout), Lines(self.process.stderr)
        self.count = 0
        self.seen = 0
        self.failures = folder / "failures"
        self.process.stdin.write(f"trap 'echo \"$BASH_COMMAND\" >> {self.failures}' ERR\n".encode())

    def perform(self, step, where):
        """Runs a step and checks its output."""
        self.count += 1
        mark = f"-- end of step {self.count} --"
        self.process.stdin.write(f"{step.command}\necho '{mark}'\n".encode())
        self.process.stdin.flush()
        start = self.seen
        self.output.wait_for(lambda line: line == mark, f"{where}: the end of the step", 30.0, start)
        written = []
        for index, wanted in enumerate(step.shown):
            # Programs in the background print a line when they are ready: the step ends only then.
            self.output.wait_for(lambda _: len(self.written(start)) > index, f"{where}: {wanted!r}", 15.0, start)
            written = self.written(start)
            assert likeness(wanted).fullmatch(written[index]), self.difference(where, step, written)
        written = self.written(start)
        assert len(written) == len(step.shown), self.difference(where, step, written)
        failed = self.failures.read_text() if self.failures.exists() else ""
        # A block with an expected failure prints the exit code.
        assert not failed or "exit code $?" in step.command, f"{where}: failed: {failed}; errors: {self.errors.all()[-10:]}"
        self.failures.unlink(missing_ok=True)
        self.seen = len(self.output.all())

    def written(self, start):
        lines = (line.rstrip() for line in self.output.all()[start:])
        return [line for line in lines if line and not line.startswith("-- end of step ")]

    def difference(self, where, step, written):
        return f"{where}: expected output {step.shown}, not {written}; errors: {self.errors.all()[-10:]}"

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
