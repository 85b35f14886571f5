import Rooms
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

/// A history of a room whose size is part of the gateway's.
struct CountedHistory {
    var history: RoomHistory? {
        didSet {
            let bytes = self.history?.cost ?? 0
            guard bytes != self.bytes else { return }
            self.memory.add(bytes - self.bytes)
            self.bytes = bytes
        }
    }
    private let memory: HistoryMemory
    private let epochs: RoomEpochs
    /// Those that are counted.
    private(set) var bytes = 0

    /// - Parameters:
    ///   - memory: of the histories of all rooms.
    ///   - epochs: of all rooms.
    init(memory: HistoryMemory, epochs: RoomEpochs) {
        self.memory = memory
        self.epochs = epochs
    }

    /// Begins a history unless there is one.
    mutating func begin() {
        if self.history == nil { self.history = RoomHistory(epoch: self.epochs.current) }
    }

    /// Removes the history; the next one has another epoch, unless nothing was published in this one.
    mutating func end() {
        if let position = self.history?.position, position.offset > 0 { self.epochs.end(position.epoch) }
        self.history = nil
    }
}
