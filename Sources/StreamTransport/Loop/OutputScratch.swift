/// Where what one connection writes in a turn is gathered, so that it leaves in one call. One per loop: a connection
/// owns output memory only while its peer does not keep up.
struct OutputScratch {
    let buffer = SharedBuffer(capacity: 256 << 10)
    var count = 0
    var owner: SocketConnection?

    var room: Int {
        self.buffer.capacity - self.count
    }
}
