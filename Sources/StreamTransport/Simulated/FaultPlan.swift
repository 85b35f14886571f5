/// What a simulated network does to those who use it, as probabilities (0 never, 1 always) and ranges that are drawn
/// from evenly.
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
    /// A read, write or accept that could go on answers `EAGAIN` instead; readiness is reported again.
    package var spuriousWouldBlock = 0.0
    /// Ready descriptors are reported in a drawn order instead of the order in which they became ready.
    package var shufflesReadiness = false

    /// Per TCP connection: something in between resets both ends, after this many bytes of one direction.
    package var reset = 0.0
    package var resetAfter: ClosedRange<Int> = 0...65_536
    /// Per segment: it, and all behind it, is held up for a while.
    package var stall = 0.0
    package var stallDuration: ClosedRange<Duration> = .milliseconds(10) ... .seconds(2)

    /// Per TCP connection attempt; at most one of the three happens.
    package var refusedConnect = 0.0
    package var hangingConnect = 0.0
    package var unreachableConnect = 0.0

    /// Per descriptor asked for: its process has none left (`EMFILE`) for a while.
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
