import DequeModule

/// What happened in a simulation, in order: the last steps in words, and a fingerprint of all of them.
package struct SimulationTrace {
    /// One step. `subject` is the number of the connection end, listener or loop that it is about.
    struct Entry {
        let time: MonotonicInstant
        let step: SimulationStep
        let subject: Int
        let amount: Int
    }

    package let seed: UInt64
    /// Most steps kept; older ones live on in the fingerprint alone.
    package let capacity: Int
    /// Equal for two runs exactly when (but for a chance of 2⁻⁶⁴) every step of both was the same.
    package private(set) var fingerprint: UInt64 = 0xcbf2_9ce4_8422_2325
    /// Steps since the beginning.
    package private(set) var count = 0
    private var entries: Deque<Entry> = []

    init(seed: UInt64, capacity: Int) {
        self.seed = seed
        self.capacity = max(0, capacity)
    }

    mutating func record(_ step: SimulationStep, at time: MonotonicInstant, _ subject: Int, _ amount: Int) {
        self.count += 1
        self.mix(UInt64(bitPattern: time.nanoseconds))
        self.mix(UInt64(step.rawValue) << 56 ^ UInt64(bitPattern: Int64(subject)))
        self.mix(UInt64(bitPattern: Int64(amount)))
        guard self.capacity > 0 else { return }
        if self.entries.count == self.capacity { self.entries.removeFirst() }
        self.entries.append(Entry(time: time, step: step, subject: subject, amount: amount))
    }

    private mutating func mix(_ value: UInt64) {
        self.fingerprint = (self.fingerprint ^ value) &* 0x9e37_79b9_7f4a_7c15
        self.fingerprint ^= self.fingerprint >> 29
    }
}

extension SimulationTrace: CustomStringConvertible {
    /// The seed, then one line for each step kept: time in microseconds, subject, step, amount.
    package var description: String {
        var lines = ["seed \(self.seed), \(self.count) steps, fingerprint \(String(self.fingerprint, radix: 16))"]
        for entry in self.entries {
            let time = Double(entry.time.nanoseconds) / 1000
            lines.append("\(time) µs  #\(entry.subject)  \(entry.step)  \(entry.amount)")
        }
        return lines.joined(separator: "\n")
    }
}
