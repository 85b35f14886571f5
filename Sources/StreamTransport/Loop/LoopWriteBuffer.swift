import ByteKernels

/// Where what one connection writes in a turn is gathered, so that it leaves in one call. One per loop: a connection
/// owns output memory only while its peer does not keep up.
final class LoopWriteBuffer {
    private let buffer = SharedBuffer(capacity: 256 << 10)
    var count = 0
    var owner: SocketConnection?
    /// Something large was sent past it in this turn.
    var wasPassed = false

    var capacity: Int {
        self.buffer.capacity
    }

    var room: Int {
        self.buffer.capacity - self.count
    }

    /// Lends `count` bytes, which must have room, to be filled behind what is there.
    /// - Returns: how many of them were used.
    func add(upTo count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        let start = self.count
        let used = self.buffer.lend(start..<(start + count)) { max(0, min(count, fill(&$0))) }
        self.count = start + used
        return used
    }

    /// Adds `head` and `bytes`, which must have room with eight bytes more.
    func add(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        let used = self.buffer.put(head, bytes, at: self.count)
        self.count += used
        return used
    }

    /// Moved out, so that nobody holds it twice.
    func takeOwner() -> SocketConnection? {
        self.owner == nil ? nil : self.owner.take()
    }

    func read(_ count: Int, _ body: (RawSpan) -> Void) {
        self.buffer.read(0..<count, body)
    }
}
