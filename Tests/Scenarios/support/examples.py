"""The configurations in deploy/examples, with only addresses and files replaced by those of a test."""

import re

from .gateway import PROJECT

FOLDER = PROJECT / "deploy" / "examples"
# Reserved names, files of the system, and wildcard addresses.
ELSEWHERE = re.compile(r"[\w.-]+\.(?:example|internal)\b|/etc/\S+|/run/\S+|\*:\d+")


def text(name):
    return (FOLDER / name).read_text()


def settings(name):
    """The example without its comments."""
    return re.sub(r"(?m)^\s*#.*\n|\s+#.*$", "", text(name))


def moved(folder, name, changes):
    """Writes the example to `folder` with each key of `changes`, which must occur, replaced by its value, and with a control
    plane on any port unless it has its own."""
    made = settings(name)
    for old, new in changes.items():
        assert old in made, f"{name} has no {old}"
        made = made.replace(old, str(new))
    left = [found for found in ELSEWHERE.findall(made) if found not in changes.values()]
    assert not left, f"{name}: not replaced: {left}"
    if not re.search(r"(?m)^control:", made):
        made += '\ncontrol: {address: "http://127.0.0.1:0"}\n'
    file = folder / name
    file.write_text(made)
    return file


def trusting(authority):
    """The environment with this authority as the system's only trusted root."""
    return {"SSL_CERT_FILE": str(authority.certificate)}
