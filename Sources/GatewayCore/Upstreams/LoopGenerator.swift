import StreamTransport

/// Chance for one decision, from the loop's system: the kernel's generator, or a simulation's seed.
struct LoopGenerator: RandomNumberGenerator {
    private let system: any System

    init(_ loop: Loop) {
        self.system = loop.system
    }

    mutating func next() -> UInt64 {
        self.system.randomWords(1).first ?? 0
    }
}
