"""Background sessions: transfers that go on without their program, and without a certain daemon."""

import json
import random
import socket
import sqlite3
import subprocess
import threading

import pytest

from support import container, gateway, units
from support.background import Background, HeldOrigin
from support.deadlines import Lines, eventually, seconds, sized
from support.programs import find, listens

SESSION = "org.example.background"


@pytest.fixture
def background(tmp_path):
    one = Background(tmp_path)
    yield one
    one.end()


@pytest.fixture
def held():
    one = HeldOrigin(random.Random(2).randbytes(300_000))
    yield one
    one.end()


FOUR = ["one", "two", "three", "sent"]


def start_four(background, held):
    """A program that starts three downloads and an upload, and is killed."""
    source = background.folder / "source"
    source.write_bytes(held.content)
    background.run(
        SESSION, "silent", "label", "one", "download", f"{held.base}/file", "label", "two", "download", f"{held.base}/file",
        "label", "three", "download", f"{held.base}/moved", "label", "sent", "upload", source, f"{held.base}/upload", "kill")
    source.unlink()


def check_four(background, held):
    counts, completions = background.completions()
    assert counts == {label: 1 for label in FOUR}, completions
    assert all(line[3] in ("200", "201") and line[4] == "0" for line in completions), completions
    for name in FOUR[:3]:
        assert (background.files / name).read_bytes() == held.content
    assert held.uploads["/upload"] == held.content


def test_transfers_survive_program_and_daemon(background, held):
    """The daemon is killed and started; a second program gets every message once, and complete files."""
    start_four(background, held)
    eventually(lambda: len(held.requests) >= 4, "all transfers have begun")
    background.kill_daemon()
    service = background.transferd()
    held.release()
    lines = background.run(SESSION, "silent", "list", "collect", 4)
    check_four(background, held)
    assert "data 4 6" in lines
    eventually(lambda: service.poll() == 0, "the daemon ends when nothing is left", 20)


def test_messages_wait_for_the_next_program(background, held):
    """All transfers end while no program runs; the messages are followed by urlSessionDidFinishEvents."""
    start_four(background, held)
    held.release()
    eventually(lambda: background.sluice("transfers", "--json") == "", "no transfer is left")
    lines = background.run(SESSION, "silent", "list", "events")
    check_four(background, held)
    assert lines[-2:] == ["events finished", "invalid"] and not any(line.startswith("listed") for line in lines)


def test_later_program_lists_what_goes_on(background, held):
    start_four(background, held)
    background.run(SESSION, "silent", "list", "kill")
    assert [line for line in background.log() if line.startswith("listed")] == [
        f"listed {number} {label} running" for number, label in enumerate(FOUR, 1)]
    held.release()
    background.run(SESSION, "silent", "collect", 4)
    check_four(background, held)


def test_session_belongs_to_one_program(background, held):
    first = background.start(SESSION, "silent", "label", "first", "download", f"{held.base}/file", "collect", 1)
    eventually(lambda: held.requests, "the first program's transfer has begun")
    lines = background.run(SESSION, "silent", "label", "second", "download", f"{held.base}/file", "collect", 1)
    assert any(line.startswith("completed 1 second 0 -996 ") for line in lines), lines
    held.release()
    background.finish(first)
    lines = background.run(SESSION, "silent", "label", "third", "download", f"{held.base}/file", "collect", 1)
    assert any(line.startswith("completed 1 third 200 0") for line in lines), lines


def test_daemon_may_be_killed_at_any_time(background, held):
    """No transfer is lost, none ends twice, and interrupted downloads go on where they were."""
    kills = sized(20, 1000)
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    source = background.folder / "source"
    source.write_bytes(held.content)
    labels = [f"transfer-{number}" for number in range(24)]
    words = ["silent"]
    for number, label in enumerate(labels):
        if number % 4 == 3:
            words += ["label", label, "upload", source, f"{held.base}/upload/{label}"]
        else:
            words += ["label", label, "download", f"{held.base}/slow/{label}"]
    program = background.start(SESSION, *words, "collect", len(labels))
    eventually(lambda: f"created 1 {labels[0]}" in background.log(), "the first transfer is created")
    pause = threading.Event()

    def created():
        return sum(line.startswith("created ") for line in background.log())

    for number in range(kills):
        requests, before = len(held.requests), created()
        if number % 4 == 0:
            # Some get beyond their start, on slow machines too.
            eventually(lambda: len(held.requests) > requests, f"seed {seed}: transfers go on")
        # The program waits 10 seconds for each answer: kills that follow each other faster than a slow machine answers fail it.
        eventually(lambda: created() > before or created() == len(labels), f"seed {seed}: transfers are created")
        pause.wait(chance.uniform(0, 0.1))
        background.kill_daemon()
    held.release()
    background.finish(program)
    counts, completions = background.completions()
    assert counts == {label: 1 for label in labels}, f"seed {seed}"
    assert all(line[3] in ("200", "201") and line[4] == "0" for line in completions), f"seed {seed}: {completions}"
    for number, label in enumerate(labels):
        content = held.uploads[f"/upload/{label}"] if number % 4 == 3 else (background.files / label).read_bytes()
        assert content == held.content, f"seed {seed}: {label}"


def test_interrupted_download_goes_on_where_it_was(background, held):
    program = background.start(SESSION, "silent", "label", "whole", "download", f"{held.base}/slow/file", "collect", 1)
    part = background.state / "sluice" / "transfers" / "org_2eexample_2ebackground" / "1.content"
    eventually(lambda: part.exists() and part.stat().st_size > 3 * held.PIECE, "a part has arrived")
    background.kill_daemon()
    eventually(lambda: len(held.requests) == 2, "the download goes on")
    start = int(held.requests[1][2]["Range"].removeprefix("bytes=").removesuffix("-"))
    assert start > 3 * held.PIECE and held.requests[1][2]["If-Range"] == '"v1"'
    held.release()
    background.finish(program)
    assert (background.files / "whole").read_bytes() == held.content


def test_interrupted_upload_goes_on_where_it_was(background):
    """The journal has the upload resource: the next daemon asks it for the offset and sends the rest."""
    held = HeldOrigin(random.Random(5).randbytes(24 << 20))
    source = background.folder / "source"
    source.write_bytes(held.content)
    program = background.start(SESSION, "silent", "label", "sent", "upload", source, f"{held.base}/resumable/file", "collect", 1)

    def has_begun():
        return held.parts and len(next(iter(held.parts.values())).content) >= len(held.content) // 2

    eventually(has_begun, "half has arrived")
    # The server's answer may be read, and noted in the journal, while more is sent.
    eventually(lambda: background.records()[0].get("uploadResumption"), "the journal has the upload resource")
    background.kill_daemon()
    eventually(lambda: len(held.requests) >= 2, "the next daemon asks for the offset")
    held.release()
    lines = background.finish(program)
    assert any(line.startswith("completed 1 sent 201 0") for line in lines), lines
    assert held.uploads["/resumable/file"] == held.content
    assert [request[0] for request in held.requests] == ["PUT", "HEAD", "PATCH"]
    assert int(held.requests[2][2]["Upload-Offset"]) >= len(held.content) // 2
    held.end()


def test_row_that_cannot_be_read_is_reported_and_kept(background, held):
    background.run(SESSION, "silent", "label", "one", "download", f"{held.base}/slow/one", "label", "two", "download",
                   f"{held.base}/file", "kill")
    part = background.state / "sluice" / "transfers" / "org_2eexample_2ebackground" / "1.content"
    eventually(part.exists, "a part has arrived")
    background.kill_daemon()
    path = background.state / "sluice" / "transfers.sqlite"
    with sqlite3.connect(path) as journal:
        journal.execute("UPDATE transfer SET record = '{}' WHERE task = 1")
    journal.close()
    held.release()
    lines = background.run(SESSION, "silent", "list", "collect", 1)
    assert any(line.startswith("completed 2 two 200 0") for line in lines), lines
    assert f"journal {path}: transfer 1 of session {SESSION} cannot be read (identifier is missing); " \
        "it does not go on: start it again in its program." in background.daemon_log()
    with sqlite3.connect(path) as journal:
        assert journal.execute("SELECT kind, number, record FROM unreadable").fetchall() == [("transfer", 1, "{}")]
    journal.close()
    assert part.exists()


def test_restart_of_the_machine_forgets_what_was_not_on_the_disk(background, held):
    """The journal names another boot: the file's bytes do not count, and the download begins anew."""
    program = background.start(SESSION, "silent", "label", "whole", "download", f"{held.base}/slow/file", "kill")
    background.finish(program, killed=True)
    part = background.state / "sluice" / "transfers" / "org_2eexample_2ebackground" / "1.content"
    eventually(lambda: part.exists() and part.stat().st_size > held.PIECE, "a part has arrived")
    eventually(lambda: "partial" in background.records()[0], "the journal has the part")
    background.kill_daemon()
    with sqlite3.connect(background.state / "sluice" / "transfers.sqlite") as journal:
        record = json.loads(journal.execute("SELECT record FROM transfer").fetchone()[0])
        record["partial"]["boot"] = "another"
        journal.execute("UPDATE transfer SET record = ?", (json.dumps(record).encode(),))
    journal.close()
    held.release()
    background.run(SESSION, "silent", "collect", 1)
    assert "Range" not in held.requests[1][2]
    assert (background.files / "whole").read_bytes() == held.content


def test_program_is_started_for_the_events_of_its_session(background, held):
    """The daemon starts the program again when all transfers are over, without its words for new transfers."""
    background.run(SESSION, "label", "one", "download", f"{held.base}/file", "label", "two", "download", f"{held.base}/none",
                   "kill")
    eventually(lambda: len(held.requests) == 2, "both transfers have begun")
    held.release()
    eventually(lambda: "invalid" in background.log(), "the started program has ended")
    lines = background.log()
    assert lines[lines.index("killed") + 1] == f"launched for {SESSION}"
    assert lines[-2:] == ["events finished", "invalid"]
    assert background.completions()[0] == {"one": 1, "two": 1}
    assert lines.count(f"launched for {SESSION}") == 1
    assert (background.files / "one").read_bytes() == held.content


def test_program_is_started_to_answer_a_challenge(background, nginx):
    background.run(SESSION, "user", "ada", "secret", "after", 0.1, "label", "private", "download",
                   f"{nginx.base}/private/file", "kill")
    eventually(lambda: "invalid" in background.log(), "the started program has ended")
    lines = background.log()
    assert "delayed 1" in lines and "challenge 1 The cellar" in lines, lines
    assert background.completions()[0] == {"private": 1}
    assert (background.files / "private").read_bytes() == nginx.content


def test_program_that_takes_no_message_is_not_started_in_a_loop(background, held):
    """Its log is a folder: it ends before it makes its session."""
    background.run(SESSION, "label", "one", "download", f"{held.base}/file", "kill")
    log = background.files / "log"
    log.rename(background.files / "log.old")
    log.mkdir()
    held.release()
    eventually(lambda: "started" in background.daemon_log(), "the program was started")
    eventually(lambda: not background.programs(), "it has ended")
    # The next start is 10 s later: until then the daemon waits.
    assert background.daemon and background.daemon_log().count("started") == 1
    log.rmdir()
    lines = background.run(SESSION, "events")
    assert any(line.startswith("completed 1 one 200 0") for line in lines), lines


def test_transfers_are_listed_and_steered_from_a_shell(background, held):
    program = background.start(SESSION, "silent", "label", "one", "download", f"{held.base}/slow/file",
                               "label", "two", "after", 3600, "download", f"{held.base}/file", "collect", 2)
    eventually(lambda: len(held.requests) == 1, "the first transfer has begun")
    eventually(lambda: "created 2 two" in background.log(), "both are created")

    def transfers():
        return {line["task"]: line for line in map(json.loads, background.sluice("transfers", "--json").splitlines())}

    listed = transfers()
    assert [listed[1][key] for key in ("session", "kind", "state", "label")] == [SESSION, "download", "running", "one"]
    assert listed[2]["state"] == "waiting" and listed[2]["url"] == f"{held.base}/file"
    assert "org.example.background" in background.sluice("transfers")
    background.sluice("transfers", "--suspend", SESSION, 1)
    assert transfers()[1]["state"] == "suspended"
    background.sluice("transfers", "--resume", SESSION, 1)
    eventually(lambda: transfers()[1]["state"] == "running", "it goes on")
    held.release()
    background.sluice("transfers", "--cancel", SESSION, 2)
    lines = background.finish(program)
    assert any(line.startswith("completed 2 two 0 -999 reason 0") for line in lines), lines
    assert (background.files / "one").read_bytes() == held.content
    background.sluice("transfers", "--cancel", SESSION, 2, code=66)
    background.sluice("transfers", "--cancel", SESSION, code=64)


def test_changes_are_followed_from_a_shell(background, held):
    program = background.start(SESSION, "silent", "label", "one", "download", f"{held.base}/file", "collect", 1)
    eventually(lambda: held.requests, "the transfer has begun")
    follower = subprocess.Popen([gateway.BINARY, "transfers", "--follow", "--json"], env=background.environment,
                                stdout=subprocess.PIPE)
    lines = Lines(follower.stdout)
    lines.wait_for(lambda line: '"running"' in line, "the running transfer")
    held.release()
    lines.wait_for(lambda line: '"finished"' in line, "the end of the transfer")
    background.finish(program)
    follower.kill()
    follower.wait()


def test_service_manager_passes_the_socket(background, held):
    """With a socket unit the daemon starts at the first connection: no program starts one."""
    folder = background.runtime / "sluice"
    folder.mkdir(mode=0o700)
    background.environment["SLUICE_TRANSFERD"] = "/nonexistent"
    held.release()
    manager = subprocess.Popen(
        [find("systemd-socket-activate"), "--listen", folder / "transferd.socket",
         *(word for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME") for word in ("-E", f"{name}={background.environment[name]}")),
         gateway.BINARY, "transferd"], env=background.environment, stderr=subprocess.DEVNULL)
    eventually(lambda: listens(folder / "transferd.socket"), "the manager listens")
    lines = background.run(SESSION, "silent", "label", "one", "download", f"{held.base}/file", "collect", 1)
    assert any(line.startswith("completed 1 one 200 0") for line in lines), lines
    manager.kill()
    manager.wait()


def test_user_units_start_the_daemon_at_login_and_at_the_first_connection(background, tmp_path):
    service, sockets = units.Unit("sluice-transferd.service"), units.Unit("sluice-transferd.socket")
    files = [service.moved(tmp_path, {"/usr/local/bin/sluice": gateway.BINARY}), sockets.moved(tmp_path, {})]
    got = units.analyze("verify", *files)
    assert (got.returncode, got.stdout + got.stderr) == (0, "")
    assert sockets["Socket", "ListenStream"] == "%t/sluice/transferd.socket" and sockets["Socket", "SocketMode"] == "0600"
    assert service["Install", "WantedBy"] == "default.target" and service["Service", "Type"] == "notify"
    where = tmp_path / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(where))
        notify.settimeout(seconds(20))
        daemon = background.transferd(NOTIFY_SOCKET=str(where))
        assert notify.recv(4096) == b"READY=1"
    eventually(lambda: daemon.poll() == 0, "the daemon ends when nothing is left")


def test_discretionary_transfer_waits_for_the_machine(background, held):
    held.release()
    background.environment["SLUICE_TRANSFERD_CONDITIONS"] = "battery"
    background.run(SESSION, "silent", "discretionary", "label", "one", "download", f"{held.base}/file", "kill")
    listed = json.loads(background.sluice("transfers", "--json"))
    assert listed["state"] == "waiting" and not held.requests
    background.environment["SLUICE_TRANSFERD_CONDITIONS"] = "good"
    background.kill_daemon()
    lines = background.run(SESSION, "silent", "discretionary", "collect", 1)
    assert any(line.startswith("completed 1 one 200 0") for line in lines), lines


def test_transfers_of_a_started_program_are_delayed(background, held):
    held.release()
    background.environment.update(SLUICE_LAUNCHED_FOR_SESSION=SESSION, SLUICE_TRANSFERD_BACKGROUND_DELAY="3600")
    background.run(SESSION, "silent", "anyway", "label", "one", "download", f"{held.base}/file", "kill")
    listed = json.loads(background.sluice("transfers", "--json"))
    assert listed["state"] == "waiting" and not held.requests


def framed(text):
    body = text.encode()
    return len(body).to_bytes(4, "big") + body


def test_peers_that_send_anything_do_not_harm_the_daemon(background, held):
    background.environment["SLUICE_TRANSFERD_IDLE_TIME"] = "60"
    program = background.start(SESSION, "silent", "label", "one", "download", f"{held.base}/file", "collect", 1)
    eventually(lambda: held.requests, "the transfer has begun")
    number = background.daemon
    attach = '{"attach":{"_0":{"version":3,"identifier":"%s","settings":%s,"isLaunchedForEvents":false,"isReattachment":false}}}'
    payloads = [
        b"", b"\0", b"\0\0\0\0", b"\xff\xff\xff\xff", random.Random(3).randbytes(100_000), framed("[" * 100_000),
        framed('{"observe":{"version":9}}'), framed('{"observe":{"version":3}}') * 3,
        framed('{"request":{"number":1,"_1":{"resume":{"task":1}}}}'),
        framed('{"observe":{"version":3}}') + framed('{"request":{"number":1,"_1":{"resume":{"task":1}}}}'),
        framed('{"observe":{"version":3}}') + framed('{"steer":{"number":1,"session":"x","task":-1,"_3":"cancel"}}'),
        framed(attach % ("../x", "{}")), framed(attach % (SESSION, "{}")), framed('{"attach":{"_0":null}}'),
    ]
    for payload in payloads:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(seconds(20))
            peer.connect(str(background.runtime / "sluice" / "transferd.socket"))
            try:
                peer.sendall(payload)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass
    held.release()
    lines = background.finish(program)
    assert any(line.startswith("completed 1 one 200 0") for line in lines), lines
    assert background.daemon == number


def test_journal_that_cannot_be_read_is_named_with_the_log_and_a_remedy(background):
    (background.state / "sluice").mkdir(mode=0o700)
    journal = background.state / "sluice" / "transfers.sqlite"
    journal.write_bytes(b"no database" * 1000)
    failed = background.sluice("transfers", code=69, within=60)
    assert f"; see its log {background.state}/sluice/transferd.log" in failed, failed
    assert f"sluice: {journal}: file is not a database; move it away" in background.daemon_log()


def test_full_disk_fails_its_download_and_the_daemon_goes_on(background, tmp_path):
    if not container.Root.possible():
        pytest.skip("this system allows no mount namespaces")
    held = HeldOrigin(random.Random(3).randbytes(8 << 20))
    held.release()
    # A small disk for journal and files, which the program and the daemon that it starts see.
    script = 'mount -t tmpfs -o size=4m,mode=700 none "$0" && exec "$@"'
    background.wrapper = [*container.Root.apart(), find("bash"), "-c", script, str(background.state)]
    small = tmp_path / "small"
    small.write_bytes(b"small")
    words = ["silent", "label", "large", "download", f"{held.base}/file", "collect", 1]
    try:
        for number in range(3):
            words += ["label", f"sent-{number}", "upload", small, f"{held.base}/upload/{number}", "collect", number + 2]
        lines = background.run(SESSION, *words, within=120)
        assert any(line.startswith("completed 1 large ") and "The disk is full." in line for line in lines), lines
        assert all(held.uploads[f"/upload/{number}"] == b"small" for number in range(3)), lines
    finally:
        held.end()


@pytest.mark.parametrize("program, text", [
    ("/nonexistent", "/nonexistent cannot be executed"), ("", "install it, put it into PATH, or set transferDaemonPath")])
def test_session_without_a_daemon_says_what_it_needs(background, held, program, text):
    background.environment.update(SLUICE_TRANSFERD=program, PATH="/nonexistent")
    if not program:
        del background.environment["SLUICE_TRANSFERD"]
    lines = background.run(SESSION, "label", "one", "download", f"{held.base}/file", "collect", 1)
    assert any(line.startswith("completed 1 one 0 -997 ") and text in line for line in lines), lines
