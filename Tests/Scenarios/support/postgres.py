"""A throw-away PostgreSQL server."""

import os
import shutil
import tempfile
from pathlib import Path

from .programs import Program, run, unprivileged


class Postgres:
    """A cluster without authentication, on a port and a Unix socket."""

    def __init__(self, port):
        homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        assert homes, "PostgreSQL is not installed: run deploy/install-dependencies --tests"
        self.port = port
        # Not below pytest's folder, which is not accessible to the server's user `nobody`.
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-postgres-"))
        self.socket = self.folder / f".s.PGSQL.{port}"
        self.server = None
        try:
            self._start(homes[-1])
        except BaseException:
            self.end()
            raise

    def _start(self, programs):
        account = unprivileged()
        if account:
            os.chown(self.folder, account["user"], account["group"])
        made = run(programs / "initdb", "-D", self.folder / "data", "-U", "tester", "--auth=trust", "--no-sync", within=120,
                   cwd=self.folder, **account)
        assert made.returncode == 0, made.stderr
        self.server = Program(programs / "postgres", "-D", self.folder / "data", "-p", self.port, "-h", "127.0.0.1",
                              "-k", self.folder, "-c", "fsync=off", cwd=self.folder, **account)
        self.server.output.wait_for(lambda line: "ready to accept connections" in line, "the database", within=60)

    def end(self):
        if self.server:
            self.server.end()
        shutil.rmtree(self.folder, ignore_errors=True)
