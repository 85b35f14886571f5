"""The README's instructions for using the library in another package."""

import json
import re
import subprocess

import pytest

from support import documents, loading
from support.deadlines import seconds
from support.documents import PROJECT
from support.programs import find

README = (PROJECT / "README.md").read_text()
CHAPTER = README[README.index("\n## The library"):README.index("\n## What is not there")]


def described(folder):
    """The package manager's description of a manifest."""
    words = [find("swift"), "package", "--package-path", folder, "dump-package"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=seconds(60)).stdout)


@pytest.fixture(scope="module")
def blocks():
    """The README's manifest and program."""
    texts = [match.group(2) for match in documents.FENCED.finditer(CHAPTER) if match.group(1) == "swift"]
    assert len(texts) == 2
    return texts


def test_the_manifest_names_an_existing_product(blocks, tmp_path):
    (tmp_path / "Package.swift").write_text(blocks[0])
    manifest, ours = described(tmp_path), described(PROJECT)
    target, = manifest["targets"]
    product, package = target["dependencies"][0]["product"][:2]
    assert manifest["dependencies"][0]["sourceControl"][0]["traits"] == []
    source = manifest["dependencies"][0]["sourceControl"][0]
    # A package is identified by the last part of its URL.
    assert package == source["identity"] == ours["name"]
    assert product in [one["name"] for one in ours["products"]]
    assert f"`Sources/{target['name']}/main.swift`" in CHAPTER
    assert manifest["toolsVersion"] == ours["toolsVersion"]


def test_the_library_does_not_fetch_the_gateways_packages(blocks, tmp_path):
    by_path = f'.package(name: "sluice", path: "{PROJECT}"'
    (tmp_path / "Package.swift").write_text(re.sub(r'\.package\(url: "[^"]*", branch: "[^"]*"', by_path, blocks[0]))
    sources = tmp_path / "Sources" / "App"
    sources.mkdir(parents=True)
    (sources / "main.swift").write_text(blocks[1])
    words = [find("swift"), "package", "--package-path", tmp_path, "show-dependencies", "--format", "json"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=seconds(120)).stdout
    tree = json.loads(shown[shown.index("{"):])

    def names(package):
        return {name for one in package["dependencies"] for name in {one["identity"]} | names(one)}

    ours, = tree["dependencies"]
    assert names(ours) == {"swift-collections", "swift-http-types"}


def test_the_system_packages_are_those_that_building_needs():
    words = re.search(r"apt-get install (.*)$", CHAPTER, re.MULTILINE).group(1).split()
    script = (PROJECT / "deploy" / "install-dependencies").read_text()
    assert words == re.search(r"^building=\((.*)\)$", script, re.MULTILINE).group(1).split()
    image = (PROJECT / "deploy" / "Dockerfile").read_text()
    running = re.search(r"To run, the program needs (.*)\.$", CHAPTER, re.MULTILINE).group(1)
    assert all(word in image for word in re.findall(r"`([\w-]+)`", running))


def test_the_program_is_built_by_the_package_and_runs(blocks, nginx, tmp_path):
    assert blocks[1] == (loading.SOURCES / "Recipe" / "main.swift").read_text()
    ended = loading.run("Recipe", f"{nginx.base}/file", home=tmp_path)
    assert (ended.code, ended.output, ended.errors) == (0, f"200 with {len(nginx.content)} bytes\n", "")
