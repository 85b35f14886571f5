"""A client of Server-Sent Events (WHATWG HTML §9.2)."""

import json
import threading

from .deadlines import eventually


class Events:
    """Reads a stream of events on a thread."""

    def __init__(self, control, path, headers=None):
        self.connection = control.connection(within=60)
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **(headers or {})})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers["Content-Type"] == "text/event-stream"
        self.all, self.comments, self.ended = [], 0, False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        event = {}
        try:
            for line in self.response:
                line = line.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    event[name] = value
                elif event:
                    self.all.append(self._body(event))
                    event = {}
        except (OSError, ValueError, AttributeError):
            pass
        self.ended = True

    @staticmethod
    def _body(event):
        body = json.loads(event["data"])
        if "id" in event:
            assert event["id"] == body.get("position", str(body["number"]))
        # The last event of a tap has a name and no type.
        assert event["event"] == body.get("type", "end")
        return body

    def wait_for(self, wanted, what, within=60.0):
        return eventually(lambda: next((event for event in list(self.all) if wanted(event)), None), what, within)

    def wait_type(self, kind, **members):
        return self.wait_for(lambda event: event["type"] == kind and members.items() <= event.items(), f"{kind} {members}")

    def close(self):
        if self.connection.sock:
            self.connection.sock.shutdown(2)
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
