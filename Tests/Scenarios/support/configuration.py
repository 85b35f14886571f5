"""Configuration files for `sluice serve`, written as JSON, which is YAML too."""

import json


def write(path, listeners, routes, upstreams=(), **more):
    """`more` are top-level keys, with `_` in place of `-`."""
    document = {"listeners": listeners, "routes": routes}
    if upstreams:
        document["upstreams"] = list(upstreams)
    document.update({key.replace("_", "-"): value for key, value in more.items()})
    path.write_text(json.dumps(document, indent=2))
    return path


def extended(text, more):
    """The YAML `text` with further top-level keys."""
    return text + "".join(f"{key}: {json.dumps(value)}\n" for key, value in more.items())


def listener(name, listen, **more):
    return {"name": name, "listen": listen, **{key.replace("_", "-"): value for key, value in more.items()}}


def route(name, target, **more):
    return {"name": name, "target": target, **{key.replace("_", "-"): value for key, value in more.items()}}


def upstream(name, *endpoints, **more):
    return {"name": name, "endpoints": list(endpoints), **{key.replace("_", "-"): value for key, value in more.items()}}
