import HeapModule

/// The clock of a simulation and what is to happen by it: things due at the same instant happen in the order in which
/// they were planned.
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

    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    /// Bytes and answers under way.
    private var traffic = Heap<Entry>()
    /// Kernel timeouts and scripted ends of stalls: things that a network at rest may have in store for much later.
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

    /// Takes the next thing that is due now.
    mutating func popDue() -> (() -> Void)? {
        guard let due = self.next, due <= self.now else { return nil }
        if let first = self.traffic.min, self.patience.min.map({ first < $0 }) ?? true {
            return self.traffic.popMin()?.action
        }
        return self.patience.popMin()?.action
    }
}
