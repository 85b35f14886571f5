"""The configurations in deploy/examples, run with addresses and files that a test can have, and otherwise as they stand."""

import re

from .gateway import PROJECT

FOLDER = PROJECT / "deploy" / "examples"
# Names that are nobody's, files of the system, and every address of the machine.
ELSEWHERE = re.compile(r"[\w.-]+\.(?:example|internal)\b|/etc/\S+|/run/\S+|\*:\d+")


def text(name):
    return (FOLDER / name).read_text()


def settings(name):
    """Without what is only said to people."""
    return re.sub(r"(?m)^\s*#.*\n|\s+#.*$", "", text(name))


def moved(folder, name, changes):
    """The example as a file in `folder`: each key of `changes`, which must stand there, replaced by its value; with a control
    plane at any port unless it has its own."""
    made = settings(name)
    for old, new in changes.items():
        assert old in made, f"{name} has no {old}"
        made = made.replace(old, str(new))
    left = [found for found in ELSEWHERE.findall(made) if found not in changes.values()]
    assert not left, f"{name}: no test has {left}"
    if not re.search(r"(?m)^control:", made):
        made += '\ncontrol: {address: "http://127.0.0.1:0"}\n'
    file = folder / name
    file.write_text(made)
    return file


def trusting(authority):
    """The environment in which this authority is all that the system knows."""
    return {"SSL_CERT_FILE": str(authority.certificate)}
