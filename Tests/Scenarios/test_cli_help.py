"""Help texts of the command line, and its completion scripts for shells."""

import re
import subprocess

import pytest

from support import gateway
from support.client import clean
from support.deadlines import seconds
from support.gateway import BINARY
from support.programs import find

COMMANDS = [
    name for name in re.findall(r"^  ([a-z]+)(?: |$)", gateway.run("--help").stdout.partition("EXIT CODES")[2], re.M) if name != "help"]


def test_help_explains_every_option_and_keeps_examples_on_their_lines():
    for name in COMMANDS:
        text, _, usage = gateway.run(name, "--help").stdout.partition("USAGE:")
        options = usage.partition("\n\n")[2]
        for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+|<[\w=:]+>)(.*)$", options, re.M):
            assert option[1].strip() or re.search(rf"^  (?:-\w, )?{re.escape(option[0])}[^\n]*\n {{10,}}\S", options, re.M), f"{name} {option} says nothing"
        lines = text[text.index("EXAMPLE"):].splitlines()
        broken = [line for line in lines if line and not re.match(r"  |[A-Z]{4}", line)]
        assert not broken, "examples and columns are not broken into lines"


def script(shell, folder):
    file = folder / "script"
    file.write_text(gateway.run("--generate-completion-script", shell).stdout)
    return file


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_parses_its_completion_script(shell, tmp_path):
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


def test_wrong_usage_is_one_line_that_names_the_help():
    got = gateway.run("ls", "--bogus")
    assert got.returncode == 64 and not got.stdout, got
    (line,) = got.stderr.splitlines()
    found = re.fullmatch(r"sluice: (.+); see '(sluice.* --help)'", line)
    assert found, line
    assert "EXIT CODES" in gateway.run(*found[2].split()[1:]).stdout
