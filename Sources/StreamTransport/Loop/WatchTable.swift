/// Who watches what: tokens carry a slot and its generation, so an event that was found before its descriptor was
/// closed and reused meets an older generation and is dropped.
struct WatchTable {
    private struct Slot {
        var generation: UInt32 = 0
        var watcher: (any Watchable)?
    }

    private var slots: [Slot] = []
    private var free: [UInt32] = []

    var count: Int {
        self.slots.count - self.free.count
    }

    mutating func add(_ watcher: any Watchable) -> UInt64 {
        let index = self.free.popLast() ?? self.grow()
        self.slots[Int(index)].watcher = watcher
        return UInt64(self.slots[Int(index)].generation) << 32 | UInt64(index)
    }

    private mutating func grow() -> UInt32 {
        self.slots.append(Slot())
        return UInt32(truncatingIfNeeded: self.slots.count - 1)
    }

    mutating func remove(_ token: UInt64) {
        let index = Int(token & 0xffff_ffff)
        guard index < self.slots.count, self.slots[index].generation == UInt32(token >> 32) else { return }
        self.slots[index].watcher = nil
        self.slots[index].generation &+= 1
        self.free.append(UInt32(truncatingIfNeeded: index))
    }

    func watcher(_ token: UInt64) -> (any Watchable)? {
        let index = Int(token & 0xffff_ffff)
        guard index < self.slots.count, self.slots[index].generation == UInt32(truncatingIfNeeded: token >> 32) else {
            return nil
        }
        return self.slots[index].watcher
    }
}
