"""The command line as a process: output that cannot be written, descriptors that are closed, arguments that are not text."""

import os
import subprocess

import pytest

from support import configuration, websocket
from support.deadlines import eventually, seconds
from support.gateway import BINARY
from support.programs import free_port

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


# -- descriptors that are closed at the start

@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_no_socket_gets_the_number_of_a_closed_standard_stream(closed, file):
    """The addresses are printed and the log is written into no socket of the gateway."""
    streams = " ".join(f"{number}>&-" for number in closed)
    address = ("127.0.0.1", free_port())
    running = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {streams}', "sh", BINARY, "bridge", "ws://%s:%d/" % address, "echo"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def served():
            assert running.poll() is None, f"it ended with {running.returncode}"
            try:
                return websocket.connect(address)
            except OSError:
                return None

        with eventually(served, "the listener") as client:
            assert {os.readlink(f"/proc/{running.pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
            client.text("hello")
            client.expect_text("hello")
            client.close_cleanly()
        running.terminate()
        assert running.wait(seconds(20)) == 0
    finally:
        running.kill()
        running.wait()


def test_a_closed_standard_input_is_an_empty_one(listener):
    running = subprocess.Popen(["sh", "-c", 'exec "$@" <&-', "sh", BINARY, "connect", listener.url("tcp")], stdout=subprocess.PIPE)
    try:
        peer = listener.accept()
        peer.expect_end()
        peer.send(b"answer")
        peer.close()
        assert running.communicate(timeout=seconds(20))[0] == b"answer"
        assert running.returncode == 0
    finally:
        running.kill()
        running.wait()


# -- arguments

@pytest.mark.parametrize("words,position", [
    ([b"\xff"], 1), ([b"token", b"--scope", b"read", b"--name", b"caf\xe9"], 5), ([b"check", b"--config", b"/tmp/\xfe.yaml"], 3),
    ([b"connect", b"ws://127.0.0.1:1/\xed\xa0\x80"], 2)])
def test_an_argument_that_is_not_utf8_exits_64(words, position):
    got = subprocess.run([bytes(BINARY), *words], capture_output=True, timeout=seconds(30), stdin=subprocess.DEVNULL, check=False)
    assert got.returncode == 64 and not got.stdout, got
    assert got.stderr.startswith(b"sluice: argument %d is not valid UTF-8; " % position), got


def test_arguments_are_found_although_a_library_changed_the_environment(tmp_path):
    source, library = tmp_path / "changing.c", tmp_path / "changing.so"
    source.write_text(
        '#include <stdlib.h>\n__attribute__((constructor)) static void change(void) { setenv("CHANGED", "1", 1); }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=seconds(60))
    got = subprocess.run(
        [BINARY, "check", "--config", "/nowhere.yaml"], capture_output=True, timeout=seconds(30), check=False,
        env={**os.environ, "LD_PRELOAD": str(library)})
    assert got.returncode == 78 and got.stderr == b"/nowhere.yaml: no such file\n", got


def test_an_argument_may_have_any_character(tmp_path):
    name = tmp_path / "\N{REPLACEMENT CHARACTER}\N{LATIN SMALL LETTER E WITH ACUTE}\N{GRINNING FACE}.yaml"
    got = subprocess.run([BINARY, "check", "--config", name], capture_output=True, timeout=seconds(30), check=False)
    assert got.returncode == 78 and got.stderr == f"{name}: no such file\n".encode(), got
