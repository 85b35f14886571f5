import SimulatedNetwork
import StreamTransport

/// What a transport test stands on: real sockets on loopback, or the simulated network. The same test runs on both.
///
/// Loops and scripted hosts made here take their turns on the test's thread, inside `run`; nothing happens in between.
/// Close the ground with `close` at the end of a test, to have the simulated program's mistakes counted.
package final class TransportTestbed {
    package enum Kind: Hashable, Sendable, CaseIterable {
        case sockets
        case simulation
    }

    package let kind: Kind
    /// `nil` on real sockets.
    package let network: SimulatedNetwork?
    private var process: SimulatedProcess?
    private var turns: [(system: any System, turn: () -> Void)] = []
    /// Loops and hosts: what takes turns is held here and not by its own system, which it holds.
    private var holders: [AnyObject] = []

    /// - Parameters:
    ///   - seed: of the simulated network.
    ///   - faults: what the simulated network does; real sockets have none.
    package init(_ kind: Kind, seed: UInt64 = 1, faults: FaultPlan = .calm) {
        self.kind = kind
        self.network = kind == .simulation ? SimulatedNetwork(seed: seed, faults: faults) : nil
    }

    /// A system of its own, in a process of its own where simulated. Nobody takes its turns.
    package func makeSystem() throws(SystemError) -> any System {
        if let network = self.network { return network.makeSystem() }
        return try LinuxSystem()
    }

    /// A loop that takes turns in `run`. Loops share one simulated process, as those of a gateway do.
    package func makeLoop() throws(SystemError) -> Loop {
        let loop = Loop(system: try self.makeLoopSystem())
        self.holders.append(loop)
        self.add(loop.system) { [weak loop] in loop?.turn() }
        return loop
    }

    private func makeLoopSystem() throws(SystemError) -> any System {
        guard let network = self.network else { return try LinuxSystem() }
        if let process = self.process { return process.makeSystem() }
        let system = network.makeSystem()
        self.process = system.process
        return system
    }

    /// Runs `body` in a turn of `loop`, where calls on its connections and timers belong, and returns when it has run.
    package func perform(on loop: Loop, _ body: @escaping () -> Void) {
        var done = false
        loop.inNextTurn(
            LoopCall {
                body()
                done = true
            })
        _ = self.run(until: { done })
    }

    /// A program of scripted peers, in a process of its own where simulated.
    package func makeHost() throws(SystemError) -> ScriptedHost {
        let host = ScriptedHost(on: try self.makeSystem())
        self.holders.append(host)
        self.add(host.system) { [weak host] in host?.turn() }
        return host
    }

    private func add(_ system: any System, turn: @escaping () -> Void) {
        if let simulated = system as? SimulatedSystem { return simulated.drive(by: turn) }
        self.turns.append((system, turn))
    }

    /// Gives turns to all until `condition` holds.
    /// - Parameter limit: virtual time on the simulated network, real time on sockets.
    /// - Returns: whether it came to hold.
    package func run(until condition: () -> Bool, atMost limit: Duration = .seconds(10)) -> Bool {
        if let network = self.network { return network.run(until: condition, atMost: limit) == .conditionMet }
        let end = ContinuousClock.now.advanced(by: limit)
        while !condition() {
            guard ContinuousClock.now < end else { return false }
            self.turnAll()
        }
        return true
    }

    /// Lets everything that is under way arrive and be acted on: on the simulated network exactly, on loopback sockets
    /// by `rounds` of turns each. For showing that something does not happen, which real sockets can only make likely.
    package func settle(rounds: Int = 50) {
        if let network = self.network {
            network.settle()
        } else {
            for _ in 0..<rounds { self.turnAll() }
        }
    }

    private func turnAll() {
        for (system, turn) in self.turns {
            // A woken loop does not wait.
            system.wake()
            turn()
        }
    }

    /// Stops giving turns.
    /// - Returns: mistakes that the simulated kernel noticed, such as a call on a closed descriptor.
    package func close() -> [String] {
        self.turns = []
        self.holders = []
        return self.network?.misuses ?? []
    }

    /// The seed and the last steps, for the message of an expectation.
    package var report: String {
        self.network.map { "\($0.trace)" } ?? "on real sockets"
    }
}
