"""deploy/Dockerfile and deploy/kubernetes.yaml. No test runs a container: the tests read the Dockerfile, build the file system of
its last stage as a folder, and start the binary there as the image does."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from support import configuration, container, websocket
from support.client import Client
from support.control import Control
from support.gateway import BINARY, PROJECT
from support.programs import run


def same_debian():
    """Whether this system is the image's Debian release, so that its package database applies."""
    image = container.of("FROM", 1)[0][0]
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"VERSION_CODENAME=(\w+)", file.read()).group(1) in image


def linked_statically():
    return not any("swift" in path.name for path in container.libraries())


def test_the_image_has_two_stages_and_does_not_run_as_root():
    build, last = container.of("FROM")
    assert build[-2:] == ["AS", "build"] and last != build
    assert container.of("COPY", 1) == [["--from=build", "/out/sluice", "/usr/local/bin/sluice"]]
    user, = container.of("USER", 1)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user[0]), "Kubernetes wants a number"
    names = [name for stage, name, _ in container.instructions() if stage == 1]
    assert names.index("RUN") < names.index("USER") < names.index("ENTRYPOINT") and "ADD" not in names


def test_the_image_uses_the_toolchain_and_options_of_deploy_build():
    script = (PROJECT / "deploy" / "install-dependencies").read_text()
    version = re.search(r"the Swift (\d+\.\d+) toolchain", script).group(1)
    assert container.of("FROM", 0)[0][0].startswith(f"swift:{version}-")
    build, ours = container.of("RUN", 0)[-1], (PROJECT / "deploy" / "build").read_text()
    for word in ("--static-swift-stdlib", "--configuration", "release", "--product"):
        assert word in build and word in ours, word


def test_the_build_has_the_packages_of_install_dependencies():
    script = (PROJECT / "deploy" / "install-dependencies").read_text()
    assert sorted(container.installed_packages(0)) == sorted(re.search(r"building=\((.*?)\)", script).group(1).split())


def test_every_copied_file_exists_and_is_not_ignored():
    ignored = (PROJECT / "deploy" / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    for words in container.of("COPY", 0):
        for source in words[:-1]:
            name = source.rstrip("*")
            assert f"!{name}" in ignored, f"{name} is left out"
            # Package.resolved is not committed; without it the build resolves the packages.
            assert (PROJECT / name).exists() or source.endswith("*"), source
    folders = set(re.findall(r'path: "(\w+)/', (PROJECT / "Package.swift").read_text()))
    copied = {words[0] for words in container.of("COPY", 0)}
    assert folders | {"Sources", "Tests"} <= copied


def test_a_release_binary_links_the_swift_runtime_statically():
    swift = shutil.which("swift")
    if BINARY.parent.name != "release" or not swift or not (Path(swift).resolve().parents[1] / "lib" / "swift_static").is_dir():
        pytest.skip("another binary than deploy/build makes, or a toolchain without the runtime as an archive")
    assert linked_statically(), container.libraries()


def test_the_last_stage_installs_exactly_the_libraries_of_the_binary():
    if not same_debian() or not linked_statically():
        pytest.skip("another system than the image's, or a debug binary, which links the Swift runtime dynamically")
    wanted = {container.owner(path) for path in container.libraries()}
    named = set(container.installed_packages(1)) - {"ca-certificates"}
    assert named <= wanted, f"not needed: {named - wanted}"
    # libc6 is essential, and libgcc-s1 comes with it.
    assert wanted <= container.closure("libc6", *named), wanted


@pytest.fixture
def image(tmp_path):
    if not same_debian() or not linked_statically():
        pytest.skip("another system than the image's, or a debug binary, which links the Swift runtime dynamically")
    if not container.Root.possible():
        pytest.skip("this system allows no mount namespaces")
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [configuration.route("echo", "echo", path="/echo")],
        control={"address": "http://127.0.0.1:0"})
    return container.Root(tmp_path / "root", file)


def health_check():
    text = re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", container.FILE.read_text(), re.MULTILINE).group(1)
    return json.loads(text)


def test_the_image_starts_reports_health_and_stops(image, sluice):
    entry, = container.of("ENTRYPOINT", 1)
    command, = container.of("CMD", 1)
    assert container.of("STOPSIGNAL", 1) == [["SIGTERM"]]
    gateway = sluice(*command, wrapper=image.wrapper, program=entry[0])
    control = Control.of(gateway)
    with websocket.connect(gateway.address(), "/echo") as client:
        client.text("hello")
        client.expect_text("hello")
    if os.getuid() == 0:
        with open(f"/proc/{gateway.pid}/status", encoding="ascii") as status:
            text = status.read()
        assert re.search(r"^Uid:\t10001\t10001\t", text, re.MULTILINE) and re.search(r"^CapEff:\t0+$", text, re.MULTILINE)

    def health():
        got = run(*image.wrapper, *health_check(), env={**os.environ, "SLUICE_CONTROL": control.url})
        return got.returncode, got.stdout

    assert health() == (0, "ok: ready\n")
    assert gateway.stop() == 0
    assert health() == (69, "")


# -- Kubernetes

@pytest.fixture(scope="module")
def cluster():
    documents = yaml.safe_load_all((PROJECT / "deploy" / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def test_the_pod_fits_the_image(cluster):
    pod = cluster["Deployment"]["spec"]["template"]["spec"]
    one, = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and one["securityContext"]["readOnlyRootFilesystem"]
    assert not one["securityContext"]["allowPrivilegeEscalation"] and one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert one["args"] == container.of("CMD", 1)[0]
    mount, = one["volumeMounts"]
    assert f"{mount['mountPath']}/{next(iter(cluster['ConfigMap']['data']))}" == one["args"][-1]
    port, = one["ports"]
    assert f"ws://*:{port['containerPort']}" in cluster["ConfigMap"]["data"]["sluice.yaml"]
    assert cluster["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert cluster["Service"]["spec"]["selector"] == cluster["Deployment"]["spec"]["selector"]["matchLabels"]


def test_the_probes_succeed(cluster, sluice, tmp_path):
    text = cluster["ConfigMap"]["data"]["sluice.yaml"]
    for old, new in (("ws://*:8080", "ws://127.0.0.1:0"), ("ws://app.default.svc.cluster.local:9000/app", "echo")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "sluice.yaml").write_text(text + 'control: {address: "http://127.0.0.1:0"}\n')
    one, = cluster["Deployment"]["spec"]["template"]["spec"]["containers"]
    gateway = sluice(*one["args"][:-1], tmp_path / "sluice.yaml")
    client = Client(Control.of(gateway).url)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        program, *words = one[probe]["exec"]["command"]
        assert program == container.of("ENTRYPOINT", 1)[0][0]
        assert client(*words) == "ok: ready\n"
