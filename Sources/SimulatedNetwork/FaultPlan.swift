import StreamTransport

/// Faults that a simulated network injects, as probabilities (0 never, 1 always) and ranges with uniform distribution.
///
/// Everything is drawn from the network's one generator: the same seed, plan and program give the same run.
package struct FaultPlan: Hashable, Sendable {
    /// One way through the network, drawn for each connection: connections overtake each other.
    package var latency: ClosedRange<Duration> = .microseconds(50) ... .microseconds(50)
    /// Added to the latency of each segment; the order within a connection stays.
    package var jitter: ClosedRange<Duration> = .zero ... .zero
    /// Most bytes that travel together, drawn for each segment. At least 1.
    package var segmentSize: ClosedRange<Int> = 65_536...65_536
    /// Kernel buffers of each end of a connection, in bytes. At least 1.
    package var sendBuffer: ClosedRange<Int> = 262_144...262_144
    package var receiveBuffer: ClosedRange<Int> = 131_072...131_072

    /// A read gives fewer bytes than wait, at least one.
    package var shortRead = 0.0
    /// A write takes fewer bytes than fit, at least one.
    package var shortWrite = 0.0
    /// A read, write or accept that could succeed returns `EAGAIN` instead; readiness is reported again.
    package var spuriousWouldBlock = 0.0
    /// Ready descriptors are reported in a drawn order instead of the order in which they became ready.
    package var shufflesReadiness = false

    /// Per TCP connection: something in between resets both ends, after this many bytes of one direction.
    package var reset = 0.0
    package var resetAfter: ClosedRange<Int> = 0...65_536
    /// Per segment: it and all later ones are delayed.
    package var stall = 0.0
    package var stallDuration: ClosedRange<Duration> = .milliseconds(10) ... .seconds(2)

    /// Per TCP connection attempt; at most one of the three happens.
    package var refusedConnect = 0.0
    package var hangingConnect = 0.0
    package var unreachableConnect = 0.0

    /// Per opened descriptor: its process has no more descriptors (`EMFILE`) for a while.
    package var exhaustion = 0.0
    package var exhaustionDuration: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(200)

    /// Per lookup of a name: the name service asks to try again.
    package var lookupFailure = 0.0
    package var lookupDelay: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(1)

    /// Time that one turn of a loop takes. Zero keeps deadlines exact.
    package var turnCost: ClosedRange<Duration> = .zero ... .zero

    package init() {}

    /// No faults; every byte arrives 50 µs after it was sent.
    package static let calm = FaultPlan()

    /// Every fault now and then, with small buffers: what a long test of a whole gateway uses.
    package static var rough: FaultPlan {
        var plan = FaultPlan()
        plan.latency = .microseconds(20) ... .milliseconds(40)
        plan.jitter = .zero ... .milliseconds(5)
        plan.segmentSize = 1...8192
        plan.sendBuffer = 512...65_536
        plan.receiveBuffer = 512...65_536
        plan.shortRead = 0.2
        plan.shortWrite = 0.2
        plan.spuriousWouldBlock = 0.05
        plan.shufflesReadiness = true
        plan.reset = 0.05
        plan.stall = 0.002
        plan.refusedConnect = 0.03
        plan.hangingConnect = 0.02
        plan.unreachableConnect = 0.02
        plan.exhaustion = 0.01
        plan.lookupFailure = 0.02
        plan.lookupDelay = .zero ... .milliseconds(50)
        plan.turnCost = .microseconds(1) ... .microseconds(30)
        return plan
    }
}

/// The one source of chance in a simulation: SplitMix64, whose whole state is its seed, so that a seed replays a run
/// exactly.
package struct SimulatedChance: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        self.state = seed
    }

    package mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// True with `probability` (0 never, 1 always). Draws only when the answer is open, so that an unused fault costs
    /// no chance.
    mutating func happens(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        guard probability < 1 else { return true }
        return Double(self.next() >> 11) * 0x1p-53 < probability
    }

    mutating func count(in range: ClosedRange<Int>) -> Int {
        range.lowerBound == range.upperBound ? range.lowerBound : Int.random(in: range, using: &self)
    }

    /// In whole nanoseconds.
    mutating func duration(in range: ClosedRange<Duration>) -> Duration {
        let low = range.lowerBound.clampedNanoseconds
        let high = range.upperBound.clampedNanoseconds
        return low == high ? range.lowerBound : .nanoseconds(Int64.random(in: low...high, using: &self))
    }
}
