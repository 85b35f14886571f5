"""deploy/Dockerfile, parsed, and the file system of its last stage built as a folder, because the tests run no containers."""

import json
import os
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

from .gateway import BINARY, PROJECT
from .programs import find, run

FILE = PROJECT / "deploy" / "Dockerfile"


def instructions():
    """(stage, name, words) of each instruction, the stages counted from 0."""
    text = re.sub(r"(?m)^#.*\n", "", FILE.read_text()).replace("\\\n", " ")
    found, stage = [], -1
    for line in filter(str.strip, text.splitlines()):
        name, rest = line.split(None, 1)
        stage += name == "FROM"
        found.append((stage, name, json.loads(rest) if rest.startswith("[") else shlex.split(rest)))
    return found


def of(name, stage=None):
    return [words for at, found, words in instructions() if found == name and stage in (None, at)]


def installed_packages(stage):
    """The packages that `apt-get install` names in a stage."""
    words, = [words for words in of("RUN", stage) if "apt-get" in words]
    words = words[words.index("install") + 1:]
    return [word for word in words[:words.index("&&")] if not word.startswith("-")]


def field(package, name):
    return run("dpkg-query", "-W", f"-f=${{{name}}}", package).stdout


@cache
def closure(*packages):
    """These packages and all their dependencies that this system has installed."""
    known, waiting = set(), list(packages)
    while waiting:
        package = waiting.pop()
        if package in known or not field(package, "db:Status-Status") == "installed":
            continue
        known.add(package)
        depends = re.sub(r"\([^)]*\)|:\w+", "", ", ".join((field(package, "Depends"), field(package, "Pre-Depends"))))
        waiting += [name.strip() for name in re.split(r"[,|]", depends) if name.strip()]
    return frozenset(known)


def libraries(binary=BINARY):
    """Paths of the shared libraries that a program loads."""
    found = re.findall(r"(?:=> |^\s+)(/\S+) \(0x", run("ldd", binary).stdout, re.MULTILINE)
    assert found, f"{binary} loads nothing"
    return [Path(path) for path in found]


def owner(library):
    """The package that owns a file, with or without /usr, since one is a link to the other."""
    bare = re.sub(r"^/usr", "", str(library.parent.resolve() / library.name))
    for path in (bare, f"/usr{bare}"):
        got = run("dpkg-query", "-S", path)
        if got.returncode == 0:
            return got.stdout.split(":")[0]
    raise AssertionError(f"{library} is of no package")


class Root:
    """A root folder with the binary and the shared libraries of the packages of the last stage; it has no shell."""

    def __init__(self, folder, configuration):
        self.folder = folder
        for path in ("usr/lib64", "usr/lib", "etc/sluice", "proc", "tmp"):
            (folder / path).mkdir(parents=True)
        for name in ("lib", "lib64"):
            (folder / name).symlink_to(f"usr/{name}")
        # Every Debian image has libc6, which is essential.
        for package in closure("libc6", *installed_packages(1)):
            for line in run("dpkg", "-L", package).stdout.splitlines():
                if re.search(r"^(/usr)?/lib(64)?/.*\.so\b", line) and Path(line).is_file():
                    target = folder / line.lstrip("/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(line, target)
                    target.chmod(0o755)
        (program,) = of("COPY", 1)
        target = folder / program[-1].lstrip("/")
        target.parent.mkdir(parents=True)
        shutil.copyfile(BINARY, target)
        target.chmod(0o755)
        shutil.copyfile(configuration, folder / "etc/sluice/sluice.yaml")
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)

    @property
    def wrapper(self):
        """Command prefix that starts a program in the root; as the image's user if the tests run as root."""
        script = 'mount --rbind /proc "$0/proc" && exec chroot ${1:+"$1"} "$0" "${@:2}"'
        user, = of("USER", 1)
        return [*self.apart(), find("bash"), "-c", script, self.folder,
                f"--userspec={user[0]}" if os.getuid() == 0 else ""]

    @staticmethod
    def apart():
        """Command prefix that starts a program in a mount namespace of its own, in which it may mount."""
        return [find("unshare"), "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]

    @classmethod
    def possible(cls):
        return subprocess.run([*cls.apart(), "true"], capture_output=True).returncode == 0
