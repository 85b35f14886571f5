import COpenSSL

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
