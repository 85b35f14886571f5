"""Budgets of a connection and of a message that are counted, so that every machine gives the same result. `deploy/bench`
measures times and states their targets."""

import os
import sys
from pathlib import Path

import pytest

from support import gateway, websocket
from support.deadlines import eventually

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Benchmarks"))

import peers  # noqa: E402
import rows  # noqa: E402
import steering  # noqa: E402

# KiB for each idle connection: the measured value plus a third or more, because the allocator keeps more on a busy machine,
# where more handshakes overlap; with OpenSSL's records the budget.
MEMORY = {
    "memory, idle ws echo": 1.9, "memory, idle tunnel ws→tcp": 3.1, "memory, idle wss echo": 18.0,
    "memory, idle wss echo, compact records": 7.5,
}


@pytest.fixture(scope="module")
def bench():
    peers.raise_descriptor_limit()
    peers.build(["floor", "wsload", "countmalloc.so"])
    peers.Sluice.binary = str(gateway.BINARY)
    return rows.Bench(rows.QUICK)


# Not at the same time as the other scenario with thousands of connections.
@pytest.mark.xdist_group("test_faults")
def test_an_idle_connection_stays_within_its_memory_budget(bench):
    for result in bench.memory():
        assert result.value <= MEMORY[result.name], result


@pytest.mark.alone
def test_relaying_a_message_allocates_nothing(bench):
    for result in bench.allocations():
        assert result.reached, result


@pytest.mark.alone
def test_listing_a_connection_allocates_nothing(bench):
    for result in steering.Steering(bench.size).list_allocations():
        assert result.reached, result


@pytest.mark.alone
def test_a_message_takes_one_read_and_one_write(bench):
    for result in bench.system_calls():
        assert result.reached, result


@pytest.mark.alone
def test_a_bridge_with_one_loop_has_one_thread(bench):
    """System calls cost less when no other thread shares the descriptors."""
    with peers.Floor("tcp-echo") as raw, bench.tunnel("tcp", "tcp", raw.port) as ours:
        load = rows.wsload("tcp-echo", ours.port, "-c", 4, "-s", 512, "-t", 0.2, "-w", 0)
        assert load["msgs"] > 0
        # The thread that writes the log ends when it has written everything.
        eventually(lambda: len(os.listdir(f"/proc/{ours.pid}/task")) == 1, "one thread", within=30)


def test_the_memory_of_large_messages_is_returned_to_the_system(sluice):
    service = sluice("bridge", "ws://127.0.0.1:0/", "echo", "--max-message-size", "16MiB")
    body = os.urandom(1 << 20) * 15

    quiet, descriptors = service.memory(), service.descriptors()
    clients = [websocket.connect(service.address()) for _ in range(8)]
    for client in clients:
        client.binary(body)
        client.expect_binary(body)
    # And eight unfinished messages, all in memory at once.
    for client in clients:
        client.write(websocket.BINARY, body, fin=False)
    eventually(lambda: service.memory() > quiet + (64 << 20), "messages in memory")
    for client in clients:
        client.reset()
    service.settle(descriptors)
    eventually(lambda: service.memory() < quiet + (24 << 20), f"memory near the {quiet >> 20} MiB of before")
