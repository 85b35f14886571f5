"""The examples of a document: fenced blocks that a comment before them marks for running, and a shell to run them in.

    <!-- run -->           the next block is given to the shell
    <!-- shows -->         what standard output then says, and nothing else; `…` stands for any text within a line
    <!-- check: NAME -->   the next block becomes the file NAME in the shell's folder
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

# Raises the loopback interface of a fresh network namespace, then becomes the program it is given.
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
    """What a document wants run, in order."""
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
    """Words that start a program in a network of its own, where every port of a document is free; none where the system forbids it."""
    words = ["unshare", "--net", "--map-root-user"]
    probe = subprocess.run([*words, "true"], capture_output=True)
    return [*words, sys.executable, "-c", LOOPBACK_UP] if probe.returncode == 0 else []


def likeness(shown):
    return re.compile(".*".join(re.escape(part) for part in shown.rstrip().split("…")))


class Shell:
    """A bash that is given one block after another, as a reader pastes them."""

    def __init__(self, folder):
        programs = folder / "bin"
        programs.mkdir()
        (programs / "sluice").symlink_to(BINARY)
        place = folder / "place"
        place.mkdir()
        # Whoever reads begins at the top of the project.
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
        """Runs a step and waits for what it shows."""
        self.count += 1
        mark = f"-- end of step {self.count} --"
        self.process.stdin.write(f"{step.command}\necho '{mark}'\n".encode())
        self.process.stdin.flush()
        start = self.seen
        self.output.wait_for(lambda line: line == mark, f"{where}: the end of the step", 30.0, start)
        told = []
        for index, wanted in enumerate(step.shown):
            # Programs in the background say something when they are ready; not before that is the step over.
            self.output.wait_for(lambda _: len(self.told(start)) > index, f"{where}: {wanted!r}", 15.0, start)
            told = self.told(start)
            assert likeness(wanted).fullmatch(told[index]), self.difference(where, step, told)
        told = self.told(start)
        assert len(told) == len(step.shown), self.difference(where, step, told)
        failed = self.failures.read_text() if self.failures.exists() else ""
        # A block that is to show a failure shows its exit code.
        assert not failed or "exit code $?" in step.command, f"{where}: failed: {failed}; errors: {self.errors.all()[-10:]}"
        self.failures.unlink(missing_ok=True)
        self.seen = len(self.output.all())

    def told(self, start):
        lines = (line.rstrip() for line in self.output.all()[start:])
        return [line for line in lines if line and not line.startswith("-- end of step ")]

    def difference(self, where, step, told):
        return f"{where}: shown is {step.shown}, but it said {told}; errors: {self.errors.all()[-10:]}"

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
