import itertools
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from support import examples, gateway  # noqa: E402
from support.certificates import Authority  # noqa: E402
from support.redis import Redis  # noqa: E402
from support.subjects import ClientSubject, ServerSubject  # noqa: E402
from support.task_client import TaskClient  # noqa: E402
from support.web import Apache, Nginx, Origin  # noqa: E402
from support.websocket import Listener  # noqa: E402


# Programs take proxies from their environment, and would not reach the servers of the tests through those of this machine.
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]


def pytest_sessionstart(session):
    # Background processes of a shell without job control ignore Ctrl-C, and so would every process that the tests start.
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if not gateway.BINARY.exists():
        pytest.exit(f"there is no binary at {gateway.BINARY}: build it, or set SLUICE_BINARY", returncode=2)


# The files that take longest run first, so that no worker starts one of them last.
LONGEST = ["test_control_document", "test_lost_networks", "test_descriptors", "test_faults", "test_control_access"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests of a file run on one worker, because they share servers, unless a test has its own `xdist_group`."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture
def sluice():
    """Starts gateways; at the end of the test none of them may have trapped."""
    started = []

    def start(*arguments, **more):
        one = gateway.Gateway(*arguments, **more)
        started.append(one)
        return one

    yield start
    trapped = [(one.arguments, one.trapped()) for one in started if one.trapped()]
    for one in started:
        one.kill()
    assert not trapped, f"a gateway trapped: {trapped}"


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory):
    """One server for all tests of a worker, whose keys have prefixes of their own."""
    with Redis(tmp_path_factory.mktemp("redis")) as one:
        yield one


@pytest.fixture
def redis(tmp_path):
    """A server of the test."""
    with Redis(tmp_path) as one:
        yield one


PREFIXES = itertools.count(1)


@pytest.fixture(scope="module", params=["alone", "redis"])
def broker(request):
    """Returns the keys of a configuration that say who keeps the rooms: each gateway alone, or Redis. Clients see no difference."""
    if request.param == "alone":
        return dict
    redis = request.getfixturevalue("shared_redis")
    return lambda: {"cluster": {"redis": redis.url, "prefix": f"test-{next(PREFIXES)}"}}


@pytest.fixture
def bridge(sluice):
    """Starts `sluice bridge LISTEN TARGET ...`."""
    return lambda listen, target, *options, **more: sluice("bridge", listen, target, *options, **more)


@pytest.fixture
def listener():
    """A listening socket of the test."""
    with Listener() as one:
        yield one


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_certificate(authority):
    """(certificate, key) for localhost and 127.0.0.1."""
    return authority.issue("localhost")


@pytest.fixture
def example(sluice, authority, tmp_path):
    """`sluice serve` with one of deploy/examples; the system trusts only the authority of the tests."""
    return lambda name, changes: sluice(
        "serve", "--config", examples.moved(tmp_path, name, changes), environment=examples.trusting(authority))


@pytest.fixture(scope="session")
def echo():
    """One gateway for all conformance tests: a violation on one connection must not affect the next."""
    one = gateway.Gateway(
        "bridge", "ws://127.0.0.1:0/echo", "echo", "--compress", "--max-message-size", "16MiB", "--ping-interval", "1h")
    yield one
    trapped = one.trapped() or not one.running()
    one.kill()
    assert not trapped, f"the echo gateway did not run to the end: {one.log.all()[-20:]}"


@pytest.fixture(params=["server", "client"])
def subject(request):
    """The subject of a conformance test, in each role."""
    one = ServerSubject(request.getfixturevalue("echo")) if request.param == "server" else ClientSubject()
    yield one
    one.close()


@pytest.fixture
def peer(subject):
    """Our end of a connection to the subject, without compression."""
    return subject.connect()


@pytest.fixture
def task_client():
    """Starts clients of the library; none of them may crash."""
    started = []

    def start(*arguments, **more):
        one = TaskClient(*arguments, **more)
        started.append(one)
        return one

    yield start
    try:
        for one in started:
            one.report()
    finally:
        for one in started:
            one.kill()


@pytest.fixture(scope="session")
def nginx(tmp_path_factory):
    one = Nginx(tmp_path_factory.mktemp("nginx"))
    yield one
    one.end()


@pytest.fixture(scope="session")
def secure_nginx(tmp_path_factory, server_certificate):
    one = Nginx(tmp_path_factory.mktemp("nginx"), server_certificate)
    yield one
    one.end()


@pytest.fixture(scope="session")
def apache(nginx):
    one = Apache(nginx.content)
    yield one
    one.end()


@pytest.fixture
def origin():
    one = Origin()
    yield one
    one.end()
