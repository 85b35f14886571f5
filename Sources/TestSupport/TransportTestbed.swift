import SimulatedNetwork
import StreamTransport

/// The environment of a transport test: real sockets on loopback, or the simulated network. The same test runs on both.
///
/// Loops and scripted hosts run on the test's thread, only inside `run`. Call `close` at the end of a test for the
/// misuses that the simulated network detected.
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
    /// Keeps loops and hosts alive; their systems reference them weakly.
    private var holders: [AnyObject] = []

    /// - Parameters:
    ///   - seed: of the simulated network.
    ///   - faults: injected by the simulated network; ignored on real sockets.
    package init(_ kind: Kind, seed: UInt64 = 1, faults: FaultPlan = .calm) {
        self.kind = kind
        self.network = kind == .simulation ? SimulatedNetwork(seed: seed, faults: faults) : nil
    }

    /// Creates a system, in a new process if simulated. The caller must drive it.
    package func makeSystem() throws(SystemError) -> any System {
        if let network = self.network { return network.makeSystem() }
        return try LinuxSystem()
    }

    /// Creates a loop that `run` drives. All loops share one simulated process, as those of a gateway do.
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

    /// Runs `body` in a turn of `loop`, as its connections and timers require, and waits for it.
    package func perform(on loop: Loop, _ body: @escaping () -> Void) {
        var done = false
        loop.inNextTurn(
            LoopCall {
                body()
                done = true
            })
        _ = self.run(until: { done })
    }

    /// Creates a host for scripted peers, in a new process if simulated.
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

    /// Runs all loops and hosts until `condition` is true.
    /// - Parameter limit: virtual time on the simulated network; real time on sockets, where it is 120 s at least, because
    ///   machines that run other tests meanwhile are slow.
    /// - Returns: `false` after the limit.
    package func run(until condition: () -> Bool, atMost limit: Duration = .seconds(10)) -> Bool {
        if let network = self.network { return network.run(until: condition, atMost: limit) == .conditionMet }
        let end = ContinuousClock.now.advanced(by: max(limit, .seconds(120)))
        while !condition() {
            guard ContinuousClock.now < end else { return false }
            self.turnAll()
        }
        return true
    }

    /// Runs until nothing is in flight: exactly on the simulated network, for `rounds` of turns on real sockets. For
    /// tests that something does not happen, which real sockets can only make likely.
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

    /// Stops all loops and hosts.
    /// - Returns: misuses that the simulated kernel detected, such as a call on a closed descriptor.
    package func close() -> [String] {
        self.turns = []
        self.holders = []
        return self.network?.misuses ?? []
    }

    /// The seed and the last steps, for failure messages.
    package var report: String {
        self.network.map { "\($0.trace)" } ?? "on real sockets"
    }
}
