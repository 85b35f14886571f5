import Synchronization

/// Bytes of all histories of a gateway. Rooms add what theirs grow, and the hub removes histories above the limit.
final class HistoryMemory: Sendable {
    private let used = Atomic<Int>(0)
    private let most: Atomic<Int>
    private let isBeingFreed = Atomic<Bool>(false)

    /// - Parameter limit: in bytes.
    init(limit: Int) {
        self.most = Atomic(limit)
    }

    /// In bytes.
    var bytes: Int { self.used.load(ordering: .relaxed) }

    /// In bytes.
    var limit: Int {
        get { self.most.load(ordering: .relaxed) }
        set { self.most.store(newValue, ordering: .relaxed) }
    }

    /// Bytes that are left when histories have been removed. It is lower than the limit, so that not every publication
    /// compares all rooms.
    var target: Int { self.limit - self.limit / 8 }

    func add(_ bytes: Int) { self.used.wrappingAdd(bytes, ordering: .relaxed) }

    /// Runs `body` if the limit is exceeded, on one loop at a time.
    func freeIfExceeded(_ body: () -> Void) {
        guard self.bytes > self.limit, !self.isBeingFreed.exchange(true, ordering: .acquiringAndReleasing) else {
            return
        }
        body()
        self.isBeingFreed.store(false, ordering: .releasing)
    }
}
