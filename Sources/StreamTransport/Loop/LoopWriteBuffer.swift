import ByteKernels

/// Collects the writes of one connection during a turn, so that they leave in one call. One per loop: a connection owns
/// output memory only while its peer does not keep up.
final class LoopWriteBuffer {
    private let buffer = SharedBuffer(capacity: 256 << 10)
    var count = 0
    var owner: SocketConnection?
    /// A large write was sent without the buffer in this turn.
    var wasBypassed = false

    var capacity: Int {
        self.buffer.capacity
    }

    var room: Int {
        self.buffer.capacity - self.count
    }

    /// Lends `count` bytes, which must be free, for filling.
    /// - Returns: number of bytes used.
    func add(upTo count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        let start = self.count
        let used = self.buffer.lend(start..<(start + count)) { max(0, min(count, fill(&$0))) }
        self.count = start + used
        return used
    }

    /// Adds `head` and `bytes`, for which there must be space, with eight bytes more.
    func add(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        let used = self.buffer.put(head, bytes, at: self.count)
        self.count += used
        return used
    }

    /// Moves the reference out, which saves a retain and release.
    func takeOwner() -> SocketConnection? {
        self.owner == nil ? nil : self.owner.take()
    }

    func read(_ count: Int, _ body: (RawSpan) -> Void) {
        self.buffer.read(0..<count, body)
    }
}
