"""The interface is what its OpenAPI document says: schemathesis makes requests of the document and judges the answers by it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import configuration
from support.control import Control
from support.deadlines import seconds

# What follows events for as long as somebody listens has no end to wait for; it has scenarios of its own.
ENDLESS = ["followEvents"]

# A gateway that cannot reach what it was told to open says so with 502 or 504, and one that has too much to do with 503.
SETTINGS = """
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 502, 503, 504]
positive_data_acceptance.enabled = false
{parameters}
"""


@pytest.fixture
def served(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo", path="/echo")],
        control={"address": "http://127.0.0.1:0", "targets": ["127.0.0.1"]})
    gateway = sluice("serve", "--config", file)
    return gateway, Control.of(gateway)


def test_the_document_describes_what_there_is(served):
    _, control = served
    document = control.get("/openapi.json").expect(200)
    assert document["openapi"].startswith("3.1")
    operations = {operation["operationId"]: operation for methods in document["paths"].values() for operation in methods.values()}
    assert {"listConnections", "openConnection", "send", "getMetrics", "getDocument"} <= set(operations)
    for name, operation in operations.items():
        assert operation["summary"] and operation["responses"], name
        # Everything that changes something, or tells something, needs a scope.
        assert name in ("getLiveness", "getReadiness", "getStartup", "getDocument") or operation["x-scope"], name
    references = set()

    def look(value):
        if isinstance(value, dict):
            references.update([value["$ref"]] if "$ref" in value else [])
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(document)
    assert references == {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("aim", ["lives", "is over", "never was"])
def test_schemathesis_finds_nothing_that_is_not_described(served, tmp_path, aim):
    """The requests are about a connection that lives, or is over, or never was."""
    gateway, control = served
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    left_out = ENDLESS
    if aim == "is over":
        control.close(name)
        control.closed(name)
    elif aim == "lives":
        # It is to live on, and nobody wants to wait ten minutes for a message that does not come.
        left_out = ENDLESS + ["closeConnection", "receive"]
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS.format(parameters=f'[parameters]\nid = "{name}"' if aim != "never was" else ""))
    nightly = os.environ.get("SLUICE_TEST_SIZE") == "nightly"
    run = subprocess.run(
        [Path(sys.executable).parent / "st", "--config-file", settings, "run", control.url + "/openapi.json", "--phases", "examples,coverage,fuzzing",
         "--max-examples", "200" if nightly else "12", "--seed", "1", "--workers", "2", "--request-timeout", "60", "--no-color",
         "--suppress-health-check", "all", "--max-failures", "20", "--continue-on-failure", "--warnings", "off",
         *(word for one in left_out for word in ("--exclude-operation-id", one))],
        capture_output=True, text=True, timeout=seconds(560), cwd=tmp_path)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    # It was not for lack of asking, and the gateway came through it.
    assert control.get("/readyz").expect(200)["phase"] == "ready"
    assert not [line for line in gateway.log.all() if "internal-fault" in line or "an operation failed" in line]
