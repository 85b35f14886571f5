import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("The driver of a simulated network")
struct SimulatedDriverTests {
    private static let server = SocketAddress.ipv4(address: 0x0a01_0101, port: 80)

    @Test func driverWakesLoopsAtTheirDeadlines() {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        let start = network.now
        var due = [Duration.milliseconds(5), .seconds(1), .seconds(90)].map { start.advanced(by: $0) }
        var fired: [Duration] = []
        system.drive {
            var events = ReadyEvents()
            system.wait(&events, until: due.first)
            while let first = due.first, first <= system.now() {
                fired.append(start.duration(to: system.now()))
                due.removeFirst()
            }
        }
        #expect(network.settle() == .idle)
        #expect(fired.isEmpty)
        #expect(network.run(for: .seconds(2)) == .timeOver)
        #expect(fired == [.milliseconds(5), .seconds(1)])
        #expect(network.runUntilIdle() == .idle)
        #expect(fired.last == .seconds(90))
    }

    @Test func waitingLoopIsWoken() {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        var turns = 0
        system.drive {
            var events = ReadyEvents()
            turns += 1
            system.wait(&events, until: nil)
        }
        network.runUntilIdle()
        let before = turns
        network.runUntilIdle()
        #expect(turns == before + 1)
        system.wake()
        network.runUntilIdle()
        #expect(turns == before + 3)
    }

    @Test func spinningLoopIsDetected() throws {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        let client = network.makeSystem()
        let listener = try system.listen(Self.server, options: ListenOptions()).get()
        #expect(system.watch(listener, for: .readable, token: 1) == nil)
        system.drive {
            var events = ReadyEvents()
            system.wait(&events, until: nil)
        }
        _ = try client.connect(Self.server).get()
        #expect(network.run(for: .seconds(1)) == .spinning)
    }

    /// Time passes in every turn, so that no instant has too many of them.
    @Test func slowSpinningLoopIsDetected() throws {
        var faults = FaultPlan.calm
        faults.turnCost = .microseconds(1) ... .microseconds(3)
        let network = SimulatedNetwork(seed: 1, faults: faults)
        network.stepLimit = 5000
        let system = network.makeSystem()
        let client = network.makeSystem()
        let listener = try system.listen(Self.server, options: ListenOptions()).get()
        #expect(system.watch(listener, for: .readable, token: 1) == nil)
        system.drive {
            var events = ReadyEvents()
            system.wait(&events, until: nil)
        }
        _ = try client.connect(Self.server).get()
        #expect(network.run(for: .seconds(3600)) == .stepsUsedUp)
        #expect(network.runUntilIdle() == .stepsUsedUp)
        #expect(network.stepsTaken == 5000)
    }

    @Test func misusedDescriptorsAreRecorded() throws {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        let listener = try system.listen(Self.server, options: ListenOptions()).get()
        #expect(system.watch(listener, for: .readable, token: 1) == nil)
        #expect(network.misuses.isEmpty)
        #expect(system.watch(listener, for: .readable, token: 2) == .fileExists)
        system.close(listener)
        system.close(listener)
        system.unwatch(listener)
        #expect(system.receive(listener, atMost: 1) == .failed(.badDescriptor))
        #expect(network.misuses.count == 4)
    }
}
