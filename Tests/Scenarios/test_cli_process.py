"""The command line as a process: output that cannot be written, descriptors that are closed, arguments that are not text."""

import subprocess

import pytest

from support import configuration
from support.deadlines import seconds
from support.gateway import BINARY

INPUT_OR_OUTPUT = 74


@pytest.fixture
def file(tmp_path):
    return configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo", path="/echo")])


def closing(redirections, *words, **more):
    """Runs a command with redirections of a shell, like `>&-`."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", BINARY, *words], capture_output=True, timeout=seconds(30), check=False, **more)


# -- standard output

@pytest.mark.parametrize("redirection,reason", [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
@pytest.mark.parametrize("words", [
    [], ["--help"], ["help"], ["help", "ls"], ["ls", "--help"], ["--version"], ["--generate-completion-script", "bash"],
    ["token", "--name", "ops", "--scope", "read"], ["token", "--name", "ops", "--scope", "read", "--json"],
    ["check", "--config", "{file}"], ["check", "--config", "{file}", "--json"]], ids=" ".join)
def test_output_that_cannot_be_written_exits_74(words, redirection, reason, file):
    got = closing(redirection, *(word.format(file=file) for word in words))
    assert got.returncode == INPUT_OR_OUTPUT, got
    assert got.stderr.decode() == f"sluice: standard output: {reason}\n", got
