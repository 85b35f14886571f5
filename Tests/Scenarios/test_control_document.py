"""The OpenAPI document describes the interface: schemathesis generates requests from it and checks the responses."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from support import configuration
from support.control import Control

# Streams of events end after this time.
BOUNDED = "[parameters]\ndurationMs = 20"

# 502 and 504: the target cannot be reached. 503: the gateway is overloaded.
SETTINGS = """
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 502, 503, 504]
positive_data_acceptance.enabled = false
# A closed connection is reported before other mistakes in a request.
negative_data_rejection.expected-statuses = ["4xx", 502, 503, 504]
{parameters}
"""


SECRET = "slc_" + "A" * 43


@pytest.fixture
def serve(sluice, tmp_path):
    def start(**control):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")],
            control={"address": "http://127.0.0.1:0", "targets": ["127.0.0.1"], **control})
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


def test_the_document_lists_operations_with_scopes_and_used_schemas(serve):
    _, control = serve()
    document = control.get("/openapi.json").expect(200)
    assert document["openapi"].startswith("3.1")
    operations = {operation["operationId"]: operation for methods in document["paths"].values() for operation in methods.values()}
    assert {"listConnections", "openConnection", "send", "getMetrics", "getDocument"} <= set(operations)
    for name, operation in operations.items():
        assert operation["summary"] and operation["responses"], name
        # Every operation but the probes and the document needs a scope.
        assert name.removesuffix("InV1") in ("getLiveness", "getReadiness", "getStartup", "getDocument") or operation["x-scope"], name
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


def test_every_example_matches_its_schema(serve):
    _, control = serve()
    document = control.get("/openapi.json").expect(200)
    found = []

    def check(schema, example, place):
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})
        errors = [error.message for error in validator.iter_errors(example)]
        assert not errors, f"{place}: {errors[:3]}"
        found.append(place)

    def look(value, place):
        if isinstance(value, list):
            for index, inner in enumerate(value):
                look(inner, f"{place}/{index}")
        if not isinstance(value, dict):
            return
        if isinstance(value.get("schema"), dict) and "example" in value:
            check(value["schema"], value["example"], place)
        if isinstance(value.get("examples"), list):
            for example in value["examples"]:
                check(value, example, place)
        for name, inner in value.items():
            if name not in ("example", "examples"):
                look(inner, f"{place}/{name}")

    look(document, "")
    assert len(found) > 200
    # The examples of events match their schemas too.
    for path, model in (("/v1/events", "Event"), ("/v1/connections/{id}/tap", "TapRecord"), ("/v1/rooms/{name}/events", "RoomEvent")):
        media = document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"]
        assert media["x-event-data"] == {"$ref": f"#/components/schemas/{model}"}
        check(media["x-event-data"], json.loads(media["example"]["data"]), path)


def schemathesis(control, folder, *words, settings=SETTINGS.format(parameters=BOUNDED), left_out=()):
    (folder / "schemathesis.toml").write_text(settings)
    nightly = os.environ.get("SLUICE_TEST_SIZE") == "nightly"
    # One worker: several fail with some versions of Python.
    run = subprocess.run(
        [Path(sys.executable).parent / "st", "--config-file", folder / "schemathesis.toml", "--no-color", "run", control.url + "/openapi.json",
         "--phases", "examples,coverage,fuzzing", "--max-examples", "200" if nightly else "8", "--seed", "1", "--request-timeout", "60",
         "--suppress-health-check", "all", "--max-failures", "20", "--continue-on-failure", "--warnings", "off", *words,
         *(word for one in left_out for word in ("--exclude-operation-id", one))],
        capture_output=True, text=True, timeout=1150, cwd=folder)
    said = [line[:400] for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    assert run.returncode == 0, "\n".join(said[-80:])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("aim", [pytest.param(aim, marks=pytest.mark.xdist_group(aim)) for aim in ("open", "closed", "unknown")])
def test_schemathesis_finds_no_undocumented_response(serve, tmp_path, aim):
    """The requests name a connection that is open, closed, or unknown."""
    gateway, control = serve()
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    left_out = []
    if aim == "closed":
        control.close(name)
        control.closed(name)
    elif aim == "open":
        # `closeConnection` would close it, and `receive` would wait ten minutes for a message.
        left_out = ["closeConnection", "receive"]
    name = "4000000000" if aim == "unknown" else name
    parameters = f'{BOUNDED}\nid = "{name}"'
    # Paths without an id behave the same for all three.
    words = () if aim == "open" else ("--include-path-regex", r"\{id\}")
    schemathesis(control, tmp_path, *words, settings=SETTINGS.format(parameters=parameters), left_out=left_out)
    # The gateway is unharmed.
    assert control.get("/readyz").expect(200)["phase"] == "ready"
    assert not [line for line in gateway.log.all() if "internal-error" in line or "an operation failed" in line]


@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("token")
def test_schemathesis_finds_no_bypass_of_tokens(serve, tmp_path):
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    entry = {"name": "ops", "hash": f"sha256:{digest}", "scopes": ["read", "operate", "configure", "metrics"]}
    _, control = serve(tokens=[entry])
    document = control.get("/openapi.json").expect(200)
    assert document["security"] == [{"bearer": []}] and "bearer" in document["components"]["securitySchemes"]
    # `receive` would wait for messages on connections that it opened.
    schemathesis(control, tmp_path, "-H", f"Authorization: Bearer {SECRET}", left_out=["receive"])


def test_probes_version_and_metrics_have_aliases_under_v1(serve):
    _, control = serve()
    for path in ("/livez", "/readyz", "/startupz", "/version"):
        assert control.get("/v1" + path).expect(200) == control.get(path).expect(200)
    assert control.get("/v1/metrics").body.startswith(control.get("/metrics").body[:100])
