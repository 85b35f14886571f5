import DequeModule
import HeapModule
import StreamTransport

/// Clock and schedule of a simulation: entries due at the same instant run in the order in which they were scheduled.
struct Timeline {
    private struct Entry: Comparable {
        let due: MonotonicInstant
        let order: UInt64
        let action: () -> Void

        static func < (left: Entry, right: Entry) -> Bool {
            left.due != right.due ? left.due < right.due : left.order < right.order
        }

        static func == (left: Entry, right: Entry) -> Bool {
            left.order == right.order
        }
    }

    static let start = MonotonicInstant(nanoseconds: 1_000_000_000)

    var now = Self.start
    /// Bytes and answers in flight.
    private var traffic = Heap<Entry>()
    /// Kernel timeouts and scripted ends of stalls, which may still be pending when nothing else happens on the network.
    private var patience = Heap<Entry>()
    private var order: UInt64 = 0

    mutating func plan(at due: MonotonicInstant, patiently: Bool, _ action: @escaping () -> Void) {
        self.order += 1
        let entry = Entry(due: due, order: self.order, action: action)
        if patiently {
            self.patience.insert(entry)
        } else {
            self.traffic.insert(entry)
        }
    }

    var nextTraffic: MonotonicInstant? {
        self.traffic.min?.due
    }

    var next: MonotonicInstant? {
        switch (self.traffic.min?.due, self.patience.min?.due) {
        case (let traffic?, let patience?): min(traffic, patience)
        case (let only?, nil), (nil, let only?): only
        case (nil, nil): nil
        }
    }

    /// Takes the next entry that is due now.
    mutating func popDue() -> (() -> Void)? {
        guard let due = self.next, due <= self.now else { return nil }
        if let first = self.traffic.min, self.patience.min.map({ first < $0 }) ?? true {
            return self.traffic.popMin()?.action
        }
        return self.patience.popMin()?.action
    }
}

/// Kinds of steps in a simulation's trace.
enum SimulationStep: UInt8 {
    case turn
    case listening
    case connecting
    case connectRefused
    case connectFailed
    case connectHangs
    case established
    case accepted
    case queueFull
    case sent
    case arrived
    case received
    case windowClosed
    case finSent
    case finArrived
    case resetSent
    case resetArrived
    case inputShut
    case stalled
    case timedOut
    case closed
    case exhausted
    case lookedUp
    case lookupGivenUp
}

/// Record of a simulation: the last steps in words, and a fingerprint of all of them.
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
