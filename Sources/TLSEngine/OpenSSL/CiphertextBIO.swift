import COpenSSL

/// The BIO of one connection: OpenSSL reads directly from the bytes that the caller lends for one call, and writes to
/// the shared output buffer. It never signals end of input; `SecureConnection.transportClosed` interprets that.
@safe
struct CiphertextBIO {
    /// The lent bytes that OpenSSL has not read yet; empty between calls.
    var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// Hides `input` from OpenSSL.
    var isInputPaused = false
    var output: CiphertextBuffer

    /// The BIO method, created once. Its BIOs point to a `CiphertextBIO` that outlives them.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ciphertext channel") else {
            return nil
        }
        unsafe BIO_meth_set_read_ex(method, readChannel)
        unsafe BIO_meth_set_write_ex(method, writeChannel)
        unsafe BIO_meth_set_ctrl(method, controlChannel)
        return unsafe method
    }()

    static func makeBIO(for channel: UnsafeMutablePointer<CiphertextBIO>) -> OpaquePointer? {
        guard let method = unsafe Self.method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, channel)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }
}

private func channel(of bio: OpaquePointer?) -> UnsafeMutablePointer<CiphertextBIO>? {
    unsafe BIO_get_data(bio)?.assumingMemoryBound(to: CiphertextBIO.self)
}

private func readChannel(
    _ bio: OpaquePointer?, _ target: UnsafeMutablePointer<CChar>?, _ wanted: Int, _ read: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let target = unsafe target, let read = unsafe read else { return 0 }
    let input = unsafe channel.pointee.input
    let count = min(wanted, input.count)
    guard count > 0, unsafe !channel.pointee.isInputPaused, let source = input.baseAddress else {
        unsafe sluice_bio_set_retry_read(bio)
        unsafe read.pointee = 0
        return 0
    }
    unsafe sluice_bio_clear_retry(bio)
    unsafe UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: count)
    unsafe channel.pointee.input = UnsafeRawBufferPointer(start: source + count, count: input.count - count)
    unsafe read.pointee = count
    return 1
}

private func writeChannel(
    _ bio: OpaquePointer?, _ source: UnsafePointer<CChar>?, _ count: Int, _ written: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let source = unsafe source else { return 0 }
    unsafe sluice_bio_clear_retry(bio)
    unsafe channel.pointee.output.append(UnsafeRawPointer(source), count: count)
    unsafe written?.pointee = count
    return 1
}

/// OpenSSL flushes after each flight and requires success; other commands are not supported.
private func controlChannel(
    _ bio: OpaquePointer?, _ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?
) -> Int {
    command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0
}

/// Ciphertext to send. Connections of one thread may share a buffer if the owner takes the bytes of each before it
/// calls the next; an idle connection then owns no buffer.
///
/// Unbounded, but one call appends at most the records for its plaintext and the responses to its input.
@safe
public final class CiphertextBuffer {
    /// A larger buffer is freed after its bytes are taken.
    private static let keptCapacity = 256 * 1024
    private static let firstCapacity = 18 * 1024

    private var storage: UnsafeMutableRawPointer?
    private var capacity = 0
    public private(set) var count = 0

    public init() {}

    deinit {
        unsafe self.storage?.deallocate()
    }

    /// Calls `body` with all bytes, then discards them. Bytes appended meanwhile are kept for the next call.
    public func take<R>(_ body: (RawSpan) -> R) -> R {
        let lent = unsafe self.storage
        let lentCapacity = self.capacity
        let bytes = unsafe UnsafeRawBufferPointer(start: lent, count: self.count)
        unsafe self.storage = nil
        self.capacity = 0
        self.count = 0
        defer { unsafe self.giveBack(lent, capacity: lentCapacity) }
        return unsafe body(RawSpan(_unsafeBytes: bytes))
    }

    func append(_ bytes: UnsafeRawPointer, count: Int) {
        guard count > 0 else { return }
        unsafe self.reserve(count).copyMemory(from: bytes, byteCount: count)
        self.count += count
    }

    /// Appends `count` bytes that `write` writes, unless it returns `false`.
    func extend(by count: Int, _ write: (UnsafeMutableRawPointer) -> Bool) -> Bool {
        guard unsafe write(self.reserve(count)) else { return false }
        self.count += count
        return true
    }

    private func reserve(_ extra: Int) -> UnsafeMutableRawPointer {
        if let storage = unsafe self.storage, extra <= self.capacity - self.count { return unsafe storage + self.count }
        let capacity = max(self.count + extra, 2 * self.capacity, Self.firstCapacity)
        let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
        if let storage = unsafe self.storage {
            unsafe grown.copyMemory(from: storage, byteCount: self.count)
            unsafe storage.deallocate()
        }
        unsafe self.storage = grown
        self.capacity = capacity
        return unsafe grown + self.count
    }

    private func giveBack(_ lent: UnsafeMutableRawPointer?, capacity: Int) {
        if unsafe self.storage == nil, capacity <= Self.keptCapacity {
            unsafe self.storage = lent
            self.capacity = capacity
        } else {
            unsafe lent?.deallocate()
        }
    }
}

extension RawSpan {
    /// The byte at `offset`; traps outside `0..<byteCount`, as an array does.
    subscript(byte offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < self.byteCount)
        return unsafe self.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }
}
