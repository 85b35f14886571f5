/// A network that exists only in this process: sockets, names and a clock, all moved by one seed.
///
/// Nothing here happens by itself. Loops ask their `SimulatedSystem`, which answers at once; `run` lets virtual time
/// pass, delivers what is under way and gives turns to the loops that have something to do, in a drawn order, on the
/// calling thread. The same seed, faults and program give the same run to the byte, which `trace.fingerprint` proves.
///
/// The addresses form one flat space: whoever listens on an address is reached at it from everywhere, loopback
/// included.
package final class SimulatedNetwork {
    package let seed: UInt64
    /// May be changed at any time; connections keep the latency and buffers drawn for them.
    package var faults: FaultPlan
    package internal(set) var trace: SimulationTrace
    /// Calls on descriptors that are not open, double watches and the like: mistakes of the program under test. Empty
    /// in a sound run.
    package private(set) var misuses: [String] = []
    /// What attempts to connect to an address meet, instead of the fault plan's draw.
    package var connectScripts: [SocketAddress: ConnectScript] = [:]
    /// What lookups find. A name not listed is not found; numeric addresses need no entry.
    package var names: [String: NameScript] = [
        "localhost": .addresses([.ipv4(address: 0x7f00_0001, port: 0)], after: .microseconds(100))
    ]
    /// Most descriptors open in all processes together; one more is `ENFILE`.
    package var descriptorLimit = 1_000_000
    package internal(set) var openDescriptors = 0
    /// Most steps (turns, deliveries and leaps to the next instant) of all runs together. Turns that cost time can go
    /// round for ever without ever counting as spinning; a run that must end sets this.
    package var stepLimit = Int.max
    package internal(set) var stepsTaken = 0

    var timeline = Timeline()
    var chance: SimulatedChance
    var listeners = ListenerTable()
    var systems: [WeakSystem] = []
    private var lastNumber = 0
    private var processes: UInt32 = 0
    private var lastClientPort: UInt16 = 32_767
    private var lastListenPort: UInt16 = 9_999

    /// - Parameter traceLength: most steps that `trace` keeps in words.
    package init(seed: UInt64, faults: FaultPlan = .calm, traceLength: Int = 200) {
        self.seed = seed
        self.faults = faults
        self.chance = SimulatedChance(seed: seed)
        self.trace = SimulationTrace(seed: seed, capacity: traceLength)
    }

    package var now: MonotonicInstant {
        self.timeline.now
    }

    /// A new process with one loop's view of the system. Further loops of the same process:
    /// `SimulatedProcess.makeSystem`.
    package func makeSystem() -> SimulatedSystem {
        self.processes += 1
        return self.makeSystem(in: SimulatedProcess(on: self, address: 0x0a00_0000 | self.processes))
    }

    func makeSystem(in process: SimulatedProcess) -> SimulatedSystem {
        let system = SimulatedSystem(in: process)
        self.systems.removeAll { $0.system == nil }
        self.systems.append(WeakSystem(system: system))
        return system
    }

    /// Permission bits of the file of a Unix socket; `nil` when there is none.
    package func mode(ofSocketAt path: String) -> UInt32? {
        self.listeners.mode(ofFileAt: path)
    }

    func nextNumber() -> Int {
        self.lastNumber += 1
        return self.lastNumber
    }

    func nextClientPort() -> UInt16 {
        self.lastClientPort = self.lastClientPort >= 60_999 ? 32_768 : self.lastClientPort + 1
        return self.lastClientPort
    }

    /// - Returns: a port that nobody listens on; `nil` when all are taken.
    func nextListenPort() -> UInt16? {
        for _ in 0..<20_000 {
            self.lastListenPort = self.lastListenPort >= 29_999 ? 10_000 : self.lastListenPort + 1
            if self.listeners.isFree(self.lastListenPort) { return self.lastListenPort }
        }
        return nil
    }

    // MARK: Time and trace

    func plan(at due: MonotonicInstant, _ action: @escaping () -> Void) {
        self.timeline.plan(at: due, patiently: false, action)
    }

    func plan(after delay: Duration, _ action: @escaping () -> Void) {
        self.plan(at: self.now.advanced(by: delay), action)
    }

    /// For kernel timeouts, which a network at rest may have in store for much later.
    func planPatiently(at due: MonotonicInstant, _ action: @escaping () -> Void) {
        self.timeline.plan(at: due, patiently: true, action)
    }

    func note(_ step: SimulationStep, _ subject: Int, _ amount: Int) {
        self.trace.record(step, at: self.now, subject, amount)
    }

    func misuse(_ text: String) {
        self.misuses.append(text)
    }
}
