import ByteKernels

/// Bytes in the order in which they came, as a kernel buffer holds them.
struct ByteQueue {
    private var storage: [UInt8] = []
    private var head = 0

    var count: Int {
        self.storage.count - self.head
    }

    var isEmpty: Bool {
        self.count == 0
    }

    mutating func append(_ bytes: RawSpan) {
        self.storage.append(bytes)
    }

    /// Moves the first `count` bytes to the end of `other`.
    mutating func move(_ count: Int, to other: inout ByteQueue) {
        other.storage.append(contentsOf: self.storage[self.head..<(self.head + count)])
        self.drop(count)
    }

    /// Takes the first `count` bytes off, into the front of `buffer`.
    mutating func take(_ count: Int, into buffer: inout MutableRawSpan) {
        self.storage.withRawSpan { buffer.copy($0.extracting(self.head..<(self.head + count)), at: 0) }
        self.drop(count)
    }

    mutating func removeAll() {
        self.storage = []
        self.head = 0
    }

    private mutating func drop(_ count: Int) {
        self.head += count
        if self.head == self.storage.count {
            self.removeAll()
        } else if self.head > 65_536, self.head > self.storage.count / 2 {
            self.storage.removeFirst(self.head)
            self.head = 0
        }
    }
}
