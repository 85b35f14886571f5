import CLinux
import Synchronization

/// Keeps some descriptors of the process free for parts that cannot do without: libdispatch, for one, ends the process
/// when it cannot open a file under /proc.
///
/// Callable from any thread. Costs one system call per connection opened while below the reserve, none for open
/// connections.
package final class DescriptorReserve: Sendable {
    /// The reserve of this process.
    package static let process = DescriptorReserve { DescriptorReserve.systemLimit }
    /// Descriptors held open, closed at once if the limit sinks below the number in use.
    private static let spareCount = 8

    private let currentLimit: @Sendable () -> Int
    /// The reserve was reached; until a look shows that it no longer is, nothing is opened.
    private let reached = Atomic<Bool>(false)
    private let holdsSpares = Atomic<Bool>(false)
    private let reservedDescriptors = Mutex<[Int32]>([])

    /// - Parameter limit: descriptors that the system lets the process have; asked again and again, since it may change.
    package init(limit: @escaping @Sendable () -> Int) {
        self.currentLimit = limit
    }

    /// Budget at the current limit.
    package var budget: DescriptorBudget { DescriptorBudget(limit: self.currentLimit()) }

    /// Whether a descriptor for a connection or a file may be opened. Looks closer only where there was no room before.
    package var hasCapacity: Bool {
        !self.reached.load(ordering: .relaxed) || self.isAvailable()
    }

    /// Opens and closes a descriptor to see which number is the lowest free one.
    /// - Returns: whether it is below the reserve.
    @discardableResult
    package func isAvailable() -> Bool {
        let number = eventfd(0, Int32(EFD_CLOEXEC))
        guard number >= 0 else {
            self.exhausted()
            return false
        }
        _ = CLinux.close(number)
        guard self.admits(number) else { return false }
        if self.reached.exchange(false, ordering: .relaxed) { self.refillSpares() }
        return true
    }

    /// Whether a descriptor just opened for a connection or a file is below the reserve. If not, nothing more may be
    /// opened until others are closed.
    package func admits(_ number: Int32) -> Bool {
        guard number < self.budget.ceiling else {
            self.reached.store(true, ordering: .relaxed)
            return false
        }
        return true
    }

    /// As `admits`, for what the gateway cannot do without: listeners, splice pipes.
    package func admitsInner(_ number: Int32) -> Bool {
        number < self.budget.innerCeiling
    }

    /// Whether the system gives this many descriptors at the same time, those of the reserve among them. For code of
    /// others that ends the process where it gets none.
    package func canOpen(_ count: Int) -> Bool {
        var opened: [Int32] = []
        defer { for number in opened { _ = CLinux.close(number) } }
        while opened.count < count {
            let number = eventfd(0, Int32(EFD_CLOEXEC))
            guard number >= 0 else { return false }
            opened.append(number)
        }
        return true
    }

    /// The system refused a descriptor: the limit sank, or others used up the reserve. Gives the held ones back, and raises
    /// a soft limit that was lowered, as at the start.
    package func exhausted() {
        self.reached.store(true, ordering: .relaxed)
        guard self.holdsSpares.load(ordering: .relaxed) else { return }
        sluice_raise_descriptor_limit()
        self.reservedDescriptors.withLock { spares in
            for spare in spares { _ = CLinux.close(spare) }
            spares = []
        }
    }

    // MARK: The process's limit

    /// Lets the process have as many descriptors as the system permits (the hard limit), and begins to hold spare ones.
    /// Children would inherit the limit; a gateway starts none.
    /// - Returns: the limit before and now.
    package func raiseLimit() -> (before: Int, now: Int) {
        let before = Self.systemLimit
        sluice_raise_descriptor_limit()
        self.holdsSpares.store(true, ordering: .relaxed)
        self.refillSpares()
        return (before, Self.systemLimit)
    }

    private func refillSpares() {
        guard self.holdsSpares.load(ordering: .relaxed) else { return }
        self.reservedDescriptors.withLock { spares in
            while spares.count < Self.spareCount {
                let spare = eventfd(0, Int32(EFD_CLOEXEC))
                guard spare >= 0 else { return }
                spares.append(spare)
            }
        }
    }

    private static var systemLimit: Int { Int(sluice_descriptor_limit()) }
}

extension DescriptorReserve: CustomStringConvertible {
    /// How many descriptors are in use, counted as the numbers below the lowest free one.
    package var description: String {
        let budget = self.budget
        let lowest = eventfd(0, Int32(EFD_CLOEXEC))
        if lowest >= 0 { _ = CLinux.close(lowest) }
        let used = lowest >= 0 ? min(Int(lowest), budget.limit) : budget.limit
        return
            "no descriptors: \(used) of \(budget.limit) in use, \(budget.reserve) kept in reserve; raise LimitNOFILE"
    }
}

/// How the descriptors of a process are shared out under its limit (RLIMIT_NOFILE).
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors that a gateway has open before its first connection: standard streams, loops, listeners.
    package static let ownCount = 32

    /// Descriptors that the system lets the process have.
    package let limit: Int
    /// Descriptors that no connection and no file of a transfer may take: an eighth of the limit, 8 to 64.
    package let reserve: Int

    package init(limit: Int) {
        self.limit = max(0, limit)
        self.reserve = max(8, min(64, limit / 8))
    }

    /// The first number that only the process itself may use. The kernel gives the lowest free number (open(2)), so a
    /// connection that gets this one shows that every number below is in use, whatever for.
    package var ceiling: Int { self.limit - self.reserve }

    /// The first number that listeners and splice pipes may not use either: the rest is left to the runtime, name
    /// lookups and the files that a reload reads.
    package var innerCeiling: Int { self.limit - self.reserve / 2 }

    /// Connections to the control plane for which there are descriptors, at most 512.
    package var controlConnections: Int { max(8, min(512, self.ceiling / 8)) }

    /// Connections on all listeners for which there are descriptors.
    /// - Parameter each: descriptors that a connection takes, 2 where it leads to an upstream.
    package func connections(each: Int) -> Int {
        max(1, (self.ceiling - Self.ownCount - self.controlConnections) / max(1, each))
    }
}
