"""The scripts in deploy/, as far as they can be tested without building or installing anything."""

import os
import subprocess

import pytest

from support.deadlines import seconds
from support.gateway import PROJECT


@pytest.fixture
def script(tmp_path):
    """Runs a script with stand-ins for the programs that build and install; fails if one of them was called."""
    for name in ("swift", "apt-get", "sudo", "pip"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/called-{name}\nexit 1\n")
        (tmp_path / name).chmod(0o755)

    def run(name, *words):
        got = subprocess.run(
            [str(PROJECT / "deploy" / name), *words], capture_output=True, text=True, timeout=seconds(20), stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert not list(tmp_path.glob("called-*")), "something was built or installed"
        return got

    return run


@pytest.mark.parametrize("name,mentions", [
    ("run", ["deploy/run bridge", "deploy/run help"]), ("test", ["--nightly", "--sanitize", "--scenarios-only"]),
    ("bench", ["--quick", "--only"]), ("install-dependencies", ["--tests", "--list"])])
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_printed_at_once(script, name, mentions, word):
    got = script(name, word)
    assert got.returncode == 0, got
    assert all(text in got.stdout for text in [f"deploy/{name}", *mentions]), got.stdout
    assert not any(line.startswith("#") for line in got.stdout.splitlines())


@pytest.mark.parametrize("name", ["test", "install-dependencies"])
def test_an_unknown_argument_exits_64_and_lists_the_known_ones(script, name):
    got = script(name, "--nonsense")
    assert got.returncode == 64 and "--nonsense" in got.stderr and "--help" in got.stderr, got


@pytest.mark.parametrize("words", [["--config", "missing.yaml"], ["--config=missing.yaml"], ["missing.yaml"], ["serve", "--config", "missing.yaml"]])
def test_a_missing_configuration_is_reported_before_building(script, words):
    got = script("run", *words)
    assert (got.returncode, got.stderr) == (78, "deploy/run: missing.yaml: no such file, or not readable\n"), got


@pytest.fixture
def checkout(tmp_path):
    """A copy of the scripts where installing does nothing and building creates a program that prints its arguments."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "run").write_text((PROJECT / "deploy" / "run").read_text())
    program = "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n"
    build = f"mkdir -p \"$(dirname \"$0\")/../.build/release\"\ncat > \"$(dirname \"$0\")/../.build/release/sluice\" <<'END'\n{program}END\n"
    for name, text in (("install-dependencies", ""), ("build", f"echo the build talks\n{build}chmod +x \"$(dirname \"$0\")/../.build/release/sluice\"\n")):
        (tmp_path / "deploy" / name).write_text(f"#!/usr/bin/env bash\nset -e\n{text}")
    for file in (tmp_path / "deploy").iterdir():
        file.chmod(0o755)
    (tmp_path / "my file.yaml").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("words, passed", [
    ([], ["serve"]), (["--log-level", "debug"], ["serve", "--log-level", "debug"]), (["--version"], ["--version"]),
    (["my file.yaml"], ["serve", "--config", "my file.yaml"]), (["--config", "my file.yaml"], ["serve", "--config", "my file.yaml"]),
    (["bridge", "tcp://127.0.0.1:0", "echo", "--header", "A: b c"], ["bridge", "tcp://127.0.0.1:0", "echo", "--header", "A: b c"]),
    (["help", "bridge"], ["help", "bridge"]), (["connect", "ws://x/?a=*&b"], ["connect", "ws://x/?a=*&b"])])
def test_run_passes_arguments_unchanged_and_returns_the_exit_code(checkout, words, passed):
    got = subprocess.run([str(checkout / "deploy" / "run"), *words], capture_output=True, text=True, timeout=seconds(20), cwd=checkout)
    assert (got.stdout.splitlines(), got.returncode) == (passed, 3), got
    assert got.stderr == "the build talks\n"
