"""The scripts in deploy/, as far as they can be tried without building or installing anything."""

import os
import subprocess

import pytest

from support.deadlines import seconds
from support.gateway import PROJECT


@pytest.fixture
def script(tmp_path):
    """Runs one with stand-ins for what builds and installs; whether any of them was called is found in the folder."""
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
def test_an_unknown_argument_is_64_and_names_the_known_ones(script, name):
    got = script(name, "--nonsense")
    assert got.returncode == 64 and "--nonsense" in got.stderr and "--help" in got.stderr, got
