"""Transfers of the REST interface that go on without the gateway."""

import random

import pytest

from support.background import Background, HeldOrigin
from support.configured import Configured
from support.deadlines import eventually
from support.events import Events
from support.programs import listens

NAME = "sluice.gateway.edge"


@pytest.fixture
def background(tmp_path):
    one = Background(tmp_path)
    yield one
    one.end()


@pytest.fixture
def held():
    one = HeldOrigin(random.Random(3).randbytes(300_000))
    yield one
    one.end()


@pytest.fixture
def folder(tmp_path):
    one = tmp_path / "served"
    one.mkdir()
    return one


@pytest.fixture
def serve(sluice, tmp_path, folder, background):
    """Starts a gateway with the same configuration each time."""
    def start(**control):
        settings = {"transfers": {"directories": [str(folder)], "background": "edge"}, **control}
        return Configured(sluice, tmp_path, control=settings, environment=background.environment)

    return start


def make(control, url, **more):
    return control.post("/v1/transfers", {"url": url, **more}).expect(201)


def show(control, name):
    return control.get(f"/v1/transfers/{name}").expect(200)


def verb(control, name, word, body=None):
    return control.post(f"/v1/transfers/{name}:{word}", body)


def reaches(control, name, state, within=20.0):
    def look():
        one = show(control, name)
        assert one["state"] == state or one["state"] not in ("finished", "failed", "cancelled"), one
        return one if one["state"] == state else None

    return eventually(look, f"transfer {name} is {state}", within)


def start_two(gateway, held, folder):
    """A download and an upload, both of which have begun."""
    source = folder / "source"
    source.write_bytes(held.content)
    download = make(gateway.control, f"{held.base}/slow/file", destination=str(folder / "got"), description="the big one",
                    labels={"of": "test"}, priority=0.75)
    upload = make(gateway.control, f"{held.base}/upload", file=str(source))
    assert download["background"] and upload["background"] and (download["id"], upload["id"]) == ("1", "2")
    eventually(lambda: show(gateway.control, "1").get("writtenBytes", 0) > held.PIECE, "a part has arrived")
    eventually(lambda: len(held.requests) == 2, "the upload has begun")
    source.unlink()
    return download


def check_two(gateway, held, folder):
    done = reaches(gateway.control, "1", "finished")
    assert done["response"]["status"] == 200 and done["contentBytes"] == len(held.content) and done["progress"] == 1
    assert (folder / "got").read_bytes() == held.content
    assert [path.name for path in folder.iterdir()] == ["got"]
    sent = reaches(gateway.control, "2", "finished")
    assert (sent["response"]["status"], sent["sentBytes"]) == (201, len(held.content))
    assert held.uploads["/upload"] == held.content
    assert gateway.control.request("GET", "/v1/transfers/2/content").body == b"stored"


def test_transfers_go_on_when_the_gateway_is_killed(serve, background, held, folder):
    gateway = serve()
    download = start_two(gateway, held, folder)
    gateway.gateway.kill()
    gateway.gateway.wait()
    gateway = serve()
    listed = {one["id"]: one for one in gateway.control.get("/v1/transfers").expect(200)["items"]}
    assert set(listed) == {"1", "2"}
    for key in ("kind", "method", "url", "destination", "description", "labels", "priority", "background", "attempt"):
        assert listed["1"][key] == download[key], key
    # Written with the same clock, but for the last millisecond.
    assert listed["1"]["createdAt"][:19] == download["createdAt"][:19]
    assert listed["1"]["state"] == listed["2"]["state"] == "running" and listed["2"]["file"] == str(folder / "source")
    assert listed["1"]["writtenBytes"] > held.PIECE and listed["1"]["expectedWriteBytes"] == len(held.content)
    events = Events(gateway.control, "/v1/events?transfer=1,2")
    held.release()
    check_two(gateway, held, folder)
    for name in ("1", "2"):
        ended = events.wait_for(lambda event, name=name: event.get("transfer") == name, f"the end of {name}")
        assert (ended["type"], ended["reason"]) == ("transferEnded", "finished")
    # Neither was begun a second time, and the next one has another id.
    assert len(held.requests) == 2
    assert make(gateway.control, f"{held.base}/file", destination=str(folder / "more"))["id"] == "3"


def test_daemon_and_gateway_are_killed(serve, background, held, folder):
    gateway = serve()
    start_two(gateway, held, folder)
    gateway.gateway.kill()
    gateway.gateway.wait()
    background.kill_daemon()
    gateway = serve()
    held.release()
    check_two(gateway, held, folder)


def test_transfers_that_ended_meanwhile_are_listed_by_the_next_gateway(serve, background, held, folder):
    gateway = serve()
    start_two(gateway, held, folder)
    assert gateway.gateway.stop() == 0
    held.release()
    eventually(lambda: background.sluice("transfers", "--json") == "", "no transfer is left")
    gateway = serve()
    check_two(gateway, held, folder)
    # They are the gateway's now, and end with it.
    gateway.gateway.stop()
    assert serve().control.get("/v1/transfers").expect(200)["items"] == []


def test_verbs_reach_the_transfers_of_an_earlier_gateway(serve, background, held, folder):
    gateway = serve()
    for name in ("suspended", "cancelled", "deleted"):
        make(gateway.control, f"{held.base}/slow/{name}", destination=str(folder / name))
    eventually(lambda: len(held.requests) == 3, "all have begun")
    gateway.gateway.kill()
    gateway.gateway.wait()
    control = serve().control
    assert verb(control, "1", "suspend").expect(200)["state"] == "suspended"
    assert verb(control, "2", "cancel").expect(200)["state"] == "cancelled"
    assert control.request("DELETE", "/v1/transfers/3").status == 204
    assert control.request("PATCH", "/v1/transfers/1", {"description": "later"}).expect(200)["description"] == "later"
    control.get("/v1/transfers/3").problem(404, "unknown-transfer")
    # A shell and the next gateway see the same.
    assert background.sluice("transfers", "--json").count('"suspended"') == 1
    held.release()
    assert verb(control, "1", "resume").expect(200)["state"] == "running"
    reaches(control, "1", "finished")
    assert verb(control, "2", "restart").expect(200)["attempt"] == 2
    reaches(control, "2", "finished")
    assert (folder / "cancelled").read_bytes() == (folder / "suspended").read_bytes() == held.content
    assert not (folder / "deleted").exists() and held.requests[-1][2].get("Range")


def test_deleted_and_steered_transfers_stay_so(serve, background, held, folder):
    gateway = serve()
    for name in ("kept", "deleted"):
        make(gateway.control, f"{held.base}/slow/{name}", destination=str(folder / name))
    eventually(lambda: len(held.requests) == 2, "both have begun")
    assert gateway.control.request("DELETE", "/v1/transfers/2").status == 204
    background.sluice("transfers", "--suspend", NAME, 1)
    reaches(gateway.control, "1", "suspended")
    gateway.gateway.kill()
    gateway.gateway.wait()
    listed = serve().control.get("/v1/transfers").expect(200)["items"]
    assert [(one["id"], one["state"]) for one in listed] == [("1", "suspended")]


def test_file_of_another_is_not_replaced_and_ones_own_is_recognized(serve, background, held, folder):
    gateway = serve()
    make(gateway.control, f"{held.base}/file", destination=str(folder / "other"))
    make(gateway.control, f"{held.base}/file", destination=str(folder / "own"))
    eventually(lambda: len(held.requests) == 2, "both have begun")
    gateway.gateway.kill()
    gateway.gateway.wait()
    (folder / "other").write_text("another file")
    # As a gateway leaves it that is killed before it has confirmed the message.
    (folder / "own").write_bytes(held.content)
    (folder / ".sluice-transfer-2.part").write_bytes(b"left")
    held.release()
    control = serve().control
    assert reaches(control, "1", "failed")["error"]["code"] == "file-unusable"
    reaches(control, "2", "finished")
    assert (folder / "other").read_text() == "another file"
    assert sorted(path.name for path in folder.iterdir()) == ["other", "own"]


def test_redirect_to_a_refused_address_is_refused_by_the_daemon(serve, background, held, folder):
    gateway = serve(targets=["127.0.0.1"])
    held.away = held.base.replace("127.0.0.1", "127.0.0.2") + "/file"
    held.release()
    for number in range(2):
        name = make(gateway.control, f"{held.base}/away", destination=str(folder / f"got-{number}"))["id"]
        assert reaches(gateway.control, name, "failed")["error"]["code"] == "target-not-allowed"
        if number == 0:
            gateway.gateway.kill()
            gateway.gateway.wait()
            background.kill_daemon()
            gateway = serve(targets=["127.0.0.1"])
    assert not list(folder.iterdir())
    # What is allowed changes with a reload, for the daemon too.
    gateway.control_settings["targets"] = ["127.0.0.0/30"]
    gateway.write()
    gateway.control.post("/v1/configuration:reload").expect(200)

    def is_permitted():
        name = make(gateway.control, f"{held.base}/away", destination=str(folder / "got"))["id"]
        ended = eventually(lambda: show(gateway.control, name)["state"] in ("failed", "finished") and show(gateway.control, name),
                           "the transfer ends")
        # Nothing listens there: it is tried again.
        return ended["state"] != "failed" or ended["error"]["code"] != "target-not-allowed"

    held.away = held.base + "/file"
    assert eventually(is_permitted, "the redirect is permitted")


def test_transfers_that_the_daemon_cannot_carry_out_run_in_the_gateway(serve, background, held, folder):
    held.release()
    control = serve().control
    plain = make(control, f"{held.base}/file")
    assert "background" not in plain and reaches(control, plain["id"], "finished")
    asked = make(control, f"{held.base}/file", destination=str(folder / "process"), background=False)
    assert "background" not in asked
    for more, text in [
            ({}, "it needs a destination"), ({"text": "body"}, "a body must come from a file"),
            ({"streamed": True}, "not from a stream"), ({"destination": str(folder / "a"), "insecure": True}, "leave out insecure"),
            ({"destination": str(folder / "a"), "followRedirects": False}, "leave out followRedirects")]:
        problem = control.post("/v1/transfers", {"url": f"{held.base}/file", "background": True, **more}).problem(422, "invalid-value")
        assert text in str(problem), problem


def test_background_has_to_be_configured(sluice, tmp_path, held, folder):
    control = Configured(sluice, tmp_path, control={"transfers": {"directories": [str(folder)]}}).control
    body = {"url": f"{held.base}/file", "destination": str(folder / "a"), "background": True}
    assert "control.transfers.background" in str(control.post("/v1/transfers", body).problem(422, "invalid-value"))


def test_gateway_without_a_daemon_says_so_and_recovers(serve, background, held, folder):
    held.release()
    background.environment["SLUICE_TRANSFERD"] = "/nonexistent"
    gateway = serve()
    gateway.gateway.wait_log("background transfers: .*/nonexistent cannot be executed")
    name = make(gateway.control, f"{held.base}/file", destination=str(folder / "got"))["id"]
    error = reaches(gateway.control, name, "failed")["error"]
    assert error["code"] == "daemon-unavailable" and error["retryable"] and "/nonexistent" in error["detail"]
    del background.environment["SLUICE_TRANSFERD"]
    daemon = background.transferd(SLUICE_TRANSFERD_IDLE_TIME="30")
    eventually(lambda: listens(background.runtime / "sluice" / "transferd.socket"), "the daemon listens")
    verb(gateway.control, name, "restart", {"fromBeginning": True}).expect(200)
    reaches(gateway.control, name, "finished")
    assert (folder / "got").read_bytes() == held.content
    gateway.gateway.stop()
    daemon.kill()
    daemon.wait()
