"""Parses systemd unit files as far as the tests need it."""

import re

from .gateway import PROJECT
from .programs import find, run

FOLDER = PROJECT / "deploy"


class Unit:
    """`values[SECTION, KEY]` are the values in order; a key may occur several times."""

    def __init__(self, name):
        self.file = FOLDER / name
        self.values = {}
        section = None
        for line in self.file.read_text().splitlines():
            if header := re.fullmatch(r"\[(\w+)\]", line):
                section = header.group(1)
            elif line and not line.startswith("#"):
                key, value = line.split("=", 1)
                self.values.setdefault((section, key), []).append(value)

    def __getitem__(self, place):
        """The value of a key that occurs once."""
        value, = self.values[place]
        return value

    def seconds(self, place):
        number, unit = re.fullmatch(r"(\d+)(s|min)", self[place]).groups()
        return int(number) * {"s": 1, "min": 60}[unit]

    def moved(self, folder, changes):
        """Writes the unit to `folder` with each key of `changes` replaced."""
        text = self.file.read_text()
        for old, new in changes.items():
            assert old in text, f"{self.file.name} has no {old}"
            text = text.replace(old, str(new))
        (folder / self.file.name).write_text(text)
        return folder / self.file.name


def analyze(*words):
    return run(find("systemd-analyze"), *words)


def system_calls(filters):
    """(allowed, refused) system calls of `SystemCallFilter=` lines."""
    sets, current = {}, None
    for line in analyze("syscall-filter", "--no-pager").stdout.splitlines():
        if re.fullmatch(r"@[\w-]+", line):
            current = sets.setdefault(line, [])
        elif line.startswith("    ") and current is not None and not line.strip().startswith("#"):
            current.append(line.strip())
    assert len(sets) > 20, sets

    def names(word):
        if not word.startswith("@"):
            return {word}
        return set().union(*(names(inner) for inner in sets[word]))

    allowed = set()
    for line in filters:
        named = set().union(*(names(word) for word in line.removeprefix("~").split()))
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed, names("@known") - allowed
