"""Every command, output and configuration in the README and the articles is run, and every link has a target."""

import json
import re
import urllib.error
import urllib.request

import pytest

from support import documents, gateway
from support.documents import ARTICLES, DOCUMENTS, PROJECT

SNIPPETS = [pytest.param(text, id=f"{document.name}:{line}") for document in DOCUMENTS for line, text in documents.blocks(document, "yaml")]
RUNNABLE = [document for document in DOCUMENTS if documents.steps(document)]


def named(paths):
    return [pytest.param(path, id=path.name) for path in paths]


@pytest.fixture
def shell(tmp_path):
    one = documents.Shell(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize("document", named(RUNNABLE))
def test_commands_print_the_documented_output(document, shell):
    for step in documents.steps(document):
        shell.perform(step, f"{document.name}:{step.line}")


@pytest.mark.parametrize("text", SNIPPETS)
def test_configurations_pass_the_check(text, tmp_path):
    file = tmp_path / "snippet.yaml"
    file.write_text(text)
    run = gateway.run("check", "--without-files", "--config", file)
    assert run.returncode == 0, run.stderr


def test_the_readme_has_examples():
    assert len(documents.steps(PROJECT / "README.md")) >= 9


def test_every_shell_block_is_run():
    for document in DOCUMENTS:
        marked = sum(not step.command.startswith("cat > ") for step in documents.steps(document))
        assert marked == len(documents.blocks(document, "sh")), f"{document.name}: a block of sh without <!-- run --> before it"


@pytest.mark.parametrize("document", named(DOCUMENTS))
def test_links_have_targets(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for name in re.findall(r"<doc:([\w-]+)>", document.read_text()):
        assert (ARTICLES / f"{name}.md").exists(), f"{document.name} links to the article {name}"


def test_options_and_keys_for_those_who_come_from_other_tools_exist():
    helps = gateway.run("bridge", "--help").stdout + gateway.run("connect", "--help").stdout
    keys = set(re.findall(r"^### `(?:[\w.\[\]-]+\.)?([\w-]+)`$", (ARTICLES / "Configuration.md").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| (?!---).* \| (.*) \|$", (ARTICLES / "ComingFromOtherTools.md").read_text(), re.MULTILINE)
    named = " ".join(rows)
    assert len(rows) > 40
    options = set(re.findall(r"--[a-z][a-z-]+", named))
    assert not {option for option in options if not re.search(rf"{option}\b", helps)}
    words = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)(?:: [^`]*)?`", named)) - set(re.findall(r"`target: ([a-z-]+)`", named))
    assert len(words) > 15 and not words - keys


def test_operations_documents_every_field_of_the_log(bridge):
    one = bridge("ws://127.0.0.1:0", "echo", "--log-format", "json")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{one.port()}/", timeout=10)
    line = json.loads(one.wait_log("connection closed"))
    page = (ARTICLES / "Operations.md").read_text()
    missing = sorted(name for name in line if f"| `{name}` |" not in page)
    assert not missing, f"Operations.md explains no {', '.join(missing)}"


def test_documented_exit_codes_equal_those_of_the_help():
    codes = re.findall(r"^  (\d+)  ", gateway.run("--help").stdout, re.MULTILINE)
    assert len(codes) == 7
    assert re.findall(r"^\| (\d+) \|", (ARTICLES / "Operations.md").read_text(), re.MULTILINE) == codes
