"""Holds every answer that a scenario gets against the OpenAPI document of the gateway itself."""

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
        """Members that are not described are wrong here, although clients must bear them."""
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
        told = operation["responses"].get(str(answer.status))
        assert told is not None, f"{name} answers {answer.status}, which is not described: {answer.body[:300]!r}"
        media = answer.headers.get("content-type", "").split(";")[0]
        if not answer.body:
            return
        media = "*/*" if "*/*" in told.get("content", {}) else media
        assert media in told.get("content", {}), f"{name} answers {answer.status} as {media}, which is not described"
        schema = told["content"][media].get("schema")
        if schema and media.endswith("json"):
            errors = [f"{error.message} at {error.instance_path}" for error in self._validator(schema).iter_errors(answer.json)]
            assert not errors, f"{name} answers {answer.status} not as described: {errors[:3]}"

    def _validator(self, schema):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            whole = {**schema, "components": self.document["components"]}
            self.validators[key] = jsonschema_rs.Draft202012Validator(whole)
        return self.validators[key]
