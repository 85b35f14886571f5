import ByteKernels

/// The input of a captured connection: the bytes that the program has not read yet, and whether the transport is read.
package enum CapturedInput {
    /// The transport is paused: before the stream is opened, and while the buffer is full.
    case paused(ReceivedBytes)
    case reading(ReceivedBytes)
    /// The peer has finished sending; what it sent can still be read.
    case ended(ReceivedBytes)
    /// The reader is gone: what still comes is discarded.
    /// - Parameter hasEnded: whether the peer had finished sending before.
    case closed(hasEnded: Bool)

    /// Number of bytes received from which on the transport is paused; it is resumed below half of it.
    package static let limit = 256 << 10

    /// - Parameter hasEnded: whether the peer has finished sending.
    package init(_ unread: [UInt8], hasEnded: Bool) {
        let bytes = ReceivedBytes(unread)
        self = hasEnded ? .ended(bytes) : .paused(bytes)
    }

    package var count: Int {
        switch self {
        case .paused(let bytes), .reading(let bytes), .ended(let bytes): bytes.count
        case .closed: 0
        }
    }

    /// Whether the peer has finished sending.
    package var hasEnded: Bool {
        switch self {
        case .ended, .closed(hasEnded: true): true
        case .paused, .reading, .closed(hasEnded: false): false
        }
    }

    package var isClosed: Bool {
        if case .closed = self { true } else { false }
    }

    package enum FlowAction: Equatable {
        case resumeReading
        case pauseReading
        case ignore
    }

    /// The stream is opened, or bytes were taken.
    package mutating func bytesWanted() -> FlowAction {
        guard case .paused(let bytes) = self, bytes.count <= Self.limit / 2 else { return .ignore }
        self = .reading(bytes)
        return .resumeReading
    }

    package mutating func bytesReceived(_ received: RawSpan) -> FlowAction {
        switch self {
        case .paused(var bytes):
            self = .closed(hasEnded: false)  // The buffer has one owner, and is not copied.
            bytes.append(received)
            self = .paused(bytes)
            return .ignore
        case .reading(var bytes):
            self = .closed(hasEnded: false)
            bytes.append(received)
            let isFull = bytes.count >= Self.limit
            self = isFull ? .paused(bytes) : .reading(bytes)
            return isFull ? .pauseReading : .ignore
        case .ended, .closed: return .ignore
        }
    }

    package mutating func inputEnded() {
        switch self {
        case .paused(let bytes), .reading(let bytes): self = .ended(bytes)
        case .ended: break
        case .closed: self = .closed(hasEnded: true)
        }
    }

    /// Copies the next bytes, `count` at most.
    package mutating func take(into target: PointerBytes.Target, count: Int) -> Int {
        switch self {
        case .paused(var bytes):
            self = .closed(hasEnded: false)
            defer { self = .paused(bytes) }
            return bytes.take(into: target, count: count)
        case .reading(var bytes):
            self = .closed(hasEnded: false)
            defer { self = .reading(bytes) }
            return bytes.take(into: target, count: count)
        case .ended(var bytes):
            self = .closed(hasEnded: true)
            defer { self = .ended(bytes) }
            return bytes.take(into: target, count: count)
        case .closed: return 0
        }
    }

    /// - Returns: `false` if it was closed before.
    package mutating func close() -> Bool {
        guard !self.isClosed else { return false }
        self = .closed(hasEnded: self.hasEnded)
        return true
    }
}

/// Bytes that are taken from the front.
package struct ReceivedBytes {
    private var bytes: [UInt8]
    private var taken = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var count: Int { self.bytes.count - self.taken }

    mutating func append(_ received: RawSpan) {
        if self.taken > CapturedInput.limit {
            self.bytes.removeFirst(self.taken)
            self.taken = 0
        }
        self.bytes.append(received)
    }

    mutating func take(into target: PointerBytes.Target, count: Int) -> Int {
        let count = min(max(0, count), self.count)
        let range = self.taken..<(self.taken + count)
        self.bytes.withRawSpan { $0.extracting(range).copy(to: target) }
        self.taken += count
        if self.taken == self.bytes.count {
            self.bytes.removeAll(keepingCapacity: true)
            self.taken = 0
        }
        return count
    }
}
