/// Where what one connection writes in a turn is gathered, so that it leaves in one call. One per loop: a connection owns output memory
/// only while its peer does not keep up.
@safe
struct OutputScratch {
    static let capacity = 256 << 10

    let bytes: UnsafeMutableRawBufferPointer
    var count = 0
    var owner: SocketConnection?

    init() {
        unsafe self.bytes = .allocate(byteCount: Self.capacity, alignment: 64)
    }

    var room: Int {
        Self.capacity - self.count
    }
}
