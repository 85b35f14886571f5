"""Checks the control plane's responses against the gateway's own OpenAPI document."""

import json
import re

import jsonschema_rs


class Description:
    def __init__(self, document):
        self.document = self._strict(document)
        self.operations = []
        for path, methods in document["paths"].items():
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/:?]+", re.escape(path)) + "$")
            self.operations += [(method.upper(), pattern, operation) for method, operation in methods.items()]
        self.validators = {}

    def _strict(self, value):
        """Makes undocumented members an error, although clients have to ignore them."""
        if isinstance(value, dict):
            if "properties" in value:
                value.setdefault("additionalProperties", False)
            for inner in value.values():
                self._strict(inner)
        elif isinstance(value, list):
            for inner in value:
                self._strict(inner)
        return value

    def operation(self, method, path):
        bare = path.split("?")[0]
        method = "GET" if method == "HEAD" else method
        return next((operation for other, pattern, operation in self.operations if other == method and pattern.match(bare)), None)

    def check(self, method, path, answer):
        operation = self.operation(method, path)
        if operation is None:
            return
        name = operation["operationId"]
        documented = operation["responses"].get(str(answer.status))
        assert documented is not None, f"{name} answers {answer.status}, which is not documented: {answer.body[:300]!r}"
        media = answer.headers.get("content-type", "").split(";")[0]
        if not answer.body:
            return
        media = "*/*" if "*/*" in documented.get("content", {}) else media
        assert media in documented.get("content", {}), f"{name} answers {answer.status} as {media}, which is not documented"
        schema = documented["content"][media].get("schema")
        if schema and media.endswith("json"):
            errors = [f"{error.message} at {error.instance_path}" for error in self._validator(schema).iter_errors(answer.json)]
            assert not errors, f"{name} answers {answer.status} against its schema: {errors[:3]}"

    def _validator(self, schema):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            whole = {**schema, "components": self.document["components"]}
            self.validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self.validators[key]
