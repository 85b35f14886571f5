"""What the command line says of itself: help texts, and scripts that complete commands in shells."""

import re
import subprocess

import pytest

from support import gateway
from support.client import clean
from support.deadlines import seconds
from support.gateway import BINARY
from support.programs import find

COMMANDS = re.findall(r"^  ([a-z]+)(?: |$)", gateway.run("--help").stdout.partition("EXIT CODES")[2], re.M)
# Talk to a running gateway.
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "help"])
def test_the_help_of_a_command_is_complete(name):
    text = gateway.run(name, "--help").stdout
    assert text == gateway.run("help", name).stdout
    assert "EXAMPLE" in text and "EXIT CODES" in text, text
    assert re.search(rf"sluice {name}\b", text.partition("USAGE:")[0]), "an example of this very command"
    usage, _, options = text.partition("USAGE:")[2].partition("\n\n")
    for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+|<[\w=:]+>)(.*)$", options, re.M):
        assert option[1].strip() or re.search(rf"^  (?:-\w, )?{re.escape(option[0])}[^\n]*\n {{10,}}\S", options, re.M), f"{name} {option} says nothing"
    told = text.partition("USAGE:")[0]
    broken = [line for line in told[told.index("EXAMPLE"):].splitlines() if line and not re.match(r"  |[A-Z]{4}", line)]
    assert not broken, "what is to be copied, and what stands in columns, is not broken into lines"
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("USAGE:")), "lines fit a terminal"


def script(shell, folder):
    file = folder / "script"
    file.write_text(gateway.run("--generate-completion-script", shell).stdout)
    return file


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_script(shell, tmp_path):
    done = subprocess.run([find(shell), "-n", script(shell, tmp_path)], capture_output=True, text=True, timeout=seconds(60))
    assert done.returncode == 0 and not done.stderr, done.stderr


def completed(shell, program, *words):
    return subprocess.run(
        [find(shell), *words, program], capture_output=True, text=True, timeout=seconds(60),
        env=clean({"PATH": f"{BINARY.parent}:/usr/local/bin:/usr/bin:/bin"})).stdout.split()


def test_bash_completes_commands_and_options(tmp_path):
    file = script("bash", tmp_path)
    name = re.search(r"complete .*-F (\w+) sluice", file.read_text()).group(1)

    def words(*typed):
        line = " ".join(typed)
        given = " ".join(f"'{word}'" for word in typed)
        return completed("bash", (
            f"source {file}; COMP_WORDS=({given}); COMP_CWORD={len(typed) - 1}; COMP_LINE='{line}'; COMP_POINT={len(line)}; "
            f"{name} sluice '{typed[-1]}' '{typed[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""), "-c")

    assert {"attach", "get", "put", "drain"} <= {word.strip() for word in words("sluice", "")}
    assert {"--to", "--resume", "--output", "--control"} <= {word.strip() for word in words("sluice", "get", "--")}


def test_fish_completes_commands_and_options(tmp_path):
    file = script("fish", tmp_path)
    found = completed("fish", f"source {file}; complete --do-complete 'sluice '", "--no-config", "-c")
    assert {"attach", "get", "put", "drain"} <= set(found)
    assert "--resume" in completed("fish", f"source {file}; complete --do-complete 'sluice get --'", "--no-config", "-c")


@pytest.mark.parametrize("words", [
    ["ls", "--bogus"], ["bogus"], ["open"], ["show"], ["send"], ["close", "--nonsense", "1"], ["token"], ["ls", "too", "many"], ["serve", "--config"],
    ["--generate-completion-script", "csh"], ["connect"], ["bridge", "tcp://127.0.0.1:0"]])
def test_wrong_usage_is_one_line_with_the_next_thing_to_try(words):
    got = gateway.run(*words)
    assert got.returncode == 64 and not got.stdout, got
    (line,) = got.stderr.splitlines()
    found = re.fullmatch(r"sluice: (.+); see '(sluice.* --help)'", line)
    assert found, line
    assert "EXIT CODES" in gateway.run(*found[2].split()[1:]).stdout


@pytest.mark.parametrize("words, meant", [(["serv"], "serve"), (["sned", "1", "x"], "send"), (["lisetners"], "listeners"), (["LS"], "ls")])
def test_a_command_that_is_not_there_is_named_with_the_one_that_was_meant(words, meant):
    done = gateway.run(*words)
    assert done.returncode == 64
    assert done.stderr == f"sluice: there is no command '{words[0]}' (did you mean '{meant}'?); see 'sluice --help'\n"


def test_a_word_far_from_every_command_is_just_unknown():
    assert gateway.run("frobnicate").stderr == "sluice: there is no command 'frobnicate'; see 'sluice --help'\n"
