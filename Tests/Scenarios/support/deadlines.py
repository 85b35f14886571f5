"""Waiting for conditions, with a deadline and without sleeping for fixed times."""

import os
import threading
import time

# Factor of all deadlines, for slow or busy machines and for binaries with a sanitizer.
PATIENCE = float(os.environ.get("SLUICE_TEST_PATIENCE", "1"))
NIGHTLY = os.environ.get("SLUICE_TEST_SIZE", "quick") == "nightly"


def seconds(amount):
    return amount * PATIENCE


def sized(quick, nightly):
    """A size for this run: `quick` with `deploy/test`, `nightly` with `deploy/test --nightly`."""
    return nightly if NIGHTLY else quick


def eventually(condition, what, within=60.0):
    """Polls `condition` and returns its first true result; for states without events, such as a count in /proc."""
    deadline = time.monotonic() + seconds(within)
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds(within):g} s: {what}")
        time.sleep(0.005)


class Lines:
    """The lines of a stream so far, read by a thread so that the pipe never fills."""

    def __init__(self, stream):
        self._lines = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        with stream:
            for raw in stream:
                with self._changed:
                    self._lines.append(raw.decode(errors="replace").rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def all(self):
        with self._changed:
            return list(self._lines)

    def wait_for(self, wanted, what, within=60.0, start=0):
        """The first line from `start` on for which `wanted` holds; fails at the deadline or when the stream has ended."""
        def find():
            return next((line for line in self._lines[start:] if wanted(line)), None)

        with self._changed:
            self._changed.wait_for(lambda: find() is not None or self._ended, timeout=seconds(within))
            found = find()
            if found is None:
                state = "the stream ended" if self._ended else f"not within {seconds(within):g} s"
                raise AssertionError(f"{what}: {state}; last lines: {self._lines[-20:]}")
            return found

    def wait_for_end(self, within=60.0):
        self._thread.join(seconds(within))
        return not self._thread.is_alive()
