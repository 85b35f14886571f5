"""Programs that use the URL loading system: the Loader, controlled by options, and those in Tests/Programs/Compatibility."""

import json
import os
import signal
import subprocess
from pathlib import Path

from . import gateway
from .deadlines import seconds

FOLDER = Path(os.environ.get("SLUICE_PROGRAMS", gateway.BINARY.parent))
SOURCES = gateway.PROJECT / "Tests" / "Programs" / "Compatibility"
COMPATIBILITY = sorted(path.name for path in SOURCES.iterdir() if path.is_dir())


class FinishedProgram:
    """A program that has ended."""

    def __init__(self, words, environment, within, text=""):
        self.words = [str(word) for word in words]
        process = subprocess.Popen(
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            self.output, self.errors = process.communicate(text, timeout=seconds(within))
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            raise AssertionError(f"{self} did not end within {seconds(within):g} s: {output[-2000:]} {errors[-2000:]}") from None
        self.code = process.returncode
        assert self.code >= 0, f"{self} ended by {signal.Signals(-self.code).name}: {self.errors[-2000:]}"

    def __str__(self):
        return " ".join(self.words)


def environment(authority=None, home=None, **more):
    """A program's environment: trusted roots, folders of its files, and no proxies but those in `more`."""
    values = {key: value for key, value in os.environ.items()
              if key not in ("SSL_CERT_FILE", "SSL_CERT_DIR") and not key.lower().endswith("_proxy")}
    values.update(more)
    if authority:
        values["SSL_CERT_FILE"] = str(authority.certificate)
    if home:
        values.update(HOME=str(home), XDG_DATA_HOME=str(home), XDG_CACHE_HOME=str(home))
    return values


def run(name, *words, authority=None, home=None, within=60.0, text="", variables=None):
    binary = FOLDER / name
    assert binary.exists(), f"there is no binary at {binary}: build the product {name}, or set SLUICE_PROGRAMS"
    return FinishedProgram([binary, *words], environment(authority, home, **variables or {}), within, text)


class Report(dict):
    """The Loader's report of one transfer."""

    def __getattr__(self, name):
        return self.get(name)

    @property
    def code(self):
        """The code of the error, or None."""
        return self["error"]["code"] if "error" in self else None

    def has(self, *events):
        """Whether these events occurred in this order, among others."""
        rest = iter(self["events"])
        return all(event in rest for event in events)


def load(*words, fails=False, **more):
    """Runs the Loader; returns a report for each transfer."""
    ended = run("Loader", "load", *words, **more)
    assert ended.code in (0, 1) and not ended.errors, f"{ended}: {ended.code} {ended.errors[-2000:]}"
    reports = [Report(json.loads(line)) for line in ended.output.splitlines()]
    assert reports, f"{ended} reported nothing"
    for report in reports:
        check(report)
    assert ended.code == (1 if fails else 0), [report.get("error") for report in reports]
    return reports


def load_one(*words, **more):
    report, = load(*words, **more)
    return report


def check(report):
    """Invariants of every transfer, however it ended."""
    assert report["events"][-1] == "completed" and report["events"].count("completed") == 1, report
    assert report["events"][-2] == "metrics", report
    assert report.state == 3, report
    if "error" in report:
        assert report.error["domain"] == "NSURLErrorDomain", report
        assert report.error.get("failingURL") and report.error["failingURL"] == report.error.get("failingURLText"), report
    order = ["fetchStart", "lookupStart", "lookupEnd", "connectStart", "secureStart", "secureEnd", "connectEnd", "requestStart",
             "requestEnd", "responseStart", "responseEnd"]
    for transaction in report.transactions:
        dates = [transaction["dates"][name] for name in order if name in transaction["dates"]]
        assert dates == sorted(dates) and dates[0] == 0, transaction
        if transaction["reused"]:
            assert not {"lookupStart", "connectStart", "secureStart", "connectEnd"} & transaction["dates"].keys(), transaction


def socket(*words, fails=False, **more):
    ended = run("Loader", "socket", *words, **more)
    assert ended.code == (1 if fails else 0) and not ended.errors, f"{ended}: {ended.code} {ended.output} {ended.errors[-2000:]}"
    return Report(json.loads(ended.output))
