import COpenSSL

/// One connection's two ends towards OpenSSL: it reads straight from bytes that are lent for one call, and writes to
/// the shared output buffer. It never says end of input; only the owner knows what the transport's end means.
@safe
struct CiphertextBIO {
    /// The part of the lent bytes that OpenSSL has not read yet; empty between calls.
    var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// While closed, OpenSSL sees no input, whatever is there.
    var isInputPaused = false
    var output: CiphertextBuffer

    /// The BIO method of all channels, made once; its BIOs carry a pointer to a channel that outlives them.
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

/// OpenSSL flushes after each flight and fails if that fails; everything else is a question that we have no answer to.
private func controlChannel(
    _ bio: OpaquePointer?, _ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?
) -> Int {
    command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0
}

/// Where connections put what is to be sent. Several connections of one thread may share one, provided that the owner
/// takes the bytes of each before it calls the next; so a connection that is idle owns no buffer.
///
/// Grows without refusal: one call adds at most what its own plaintext and the answers to its own input need.
@safe
public final class CiphertextBuffer {
    /// A burst's memory beyond this is given back once it was taken.
    private static let keptCapacity = 256 * 1024
    private static let firstCapacity = 18 * 1024

    private var storage: UnsafeMutableRawPointer?
    private var capacity = 0
    /// Bytes that wait to be taken.
    public private(set) var count = 0

    public init() {}

    deinit {
        unsafe self.storage?.deallocate()
    }

    /// Lends all waiting bytes, then drops them. What is added meanwhile waits for the next time.
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

    /// Adds a copy of `count` bytes.
    func append(_ bytes: UnsafeRawPointer, count: Int) {
        guard count > 0 else { return }
        unsafe self.reserve(count).copyMemory(from: bytes, byteCount: count)
        self.count += count
    }

    /// Adds `count` bytes that `write` puts where they belong, unless it answers that it could not.
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
