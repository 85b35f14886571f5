import ByteKernels
import DequeModule

extension SocketConnection {
    package var queuedBytes: Int {
        self.waiting + (self.loop.writeBuffer.owner === self ? self.loop.writeBuffer.count : 0)
    }

    var acceptsOutput: Bool {
        self.machine.acceptsOutput
    }

    @discardableResult
    package func write(_ bytes: RawSpan) -> Int {
        self.write(LeadingBytes(0, count: 0), bytes)
    }

    @discardableResult
    package func write(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.loop.assertOnLoop()
        let count = head.count + bytes.byteCount
        guard self.acceptsOutput, count > 0 else { return self.queuedBytes }
        if count >= Self.largeWrite, self.canBypassWriteBuffer(count) { return self.sendDirectly(head, bytes) }
        // A head is stored as eight bytes, of which some may be nothing.
        guard self.claimWriteBuffer(count + 8) else {
            return self.queueFilled(count) { head.write(before: bytes, into: &$0) }
        }
        self.written &+= UInt64(self.loop.addToWriteBuffer(head, bytes))
        return self.loop.writeBuffer.count
    }

    /// From so many bytes on, a write is worth a call of its own rather than a copy.
    private static let largeWrite = 8 << 10

    /// Whether this write may skip the loop's write buffer: only the first of a turn, because one call for each write
    /// would be many calls. A write larger than the buffer waits in the queue for the end of the turn.
    private func canBypassWriteBuffer(_ count: Int) -> Bool {
        self.waiting == 0 && count <= self.loop.writeBuffer.capacity - 8 && !self.loop.writeBuffer.wasBypassed
            && self.loop.writeBuffer.owner !== self
    }

    private func sendDirectly(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.loop.writeBuffer.wasBypassed = true
        self.written &+= UInt64(head.count + bytes.byteCount)
        guard head.count > 0 else {
            self.sendOrQueue(bytes)
            return self.waiting
        }
        let taken = self.loop.send(self.descriptor, head, bytes)
        if taken >= 0 { self.countSent(taken) }
        guard taken < head.count + bytes.byteCount, taken >= 0 || self.mayRetry(taken) else { return self.waiting }
        let gone = max(0, taken)
        self.changeQueue { queue in
            if gone < head.count { queue.append((gone..<head.count).map { head[$0] }) }
            queue.append(bytes.extracting(max(0, gone - head.count)..<bytes.byteCount))
        }
        self.updateInterest()
        return self.waiting
    }

    @discardableResult
    package func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        self.loop.assertOnLoop()
        guard self.acceptsOutput, count > 0 else { return self.queuedBytes }
        guard self.claimWriteBuffer(count) else { return self.queueFilled(count, fill) }
        self.written &+= UInt64(self.loop.fillWriteBuffer(upTo: count, fill))
        return self.loop.writeBuffer.count
    }

    private func queueFilled(_ count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        var piece = [UInt8](repeating: 0, count: count)
        let used = piece.withMutableRawSpan { max(0, min(count, fill(&$0))) }
        piece.removeLast(count - used)
        self.written &+= UInt64(used)
        self.changeQueue { $0.append(piece) }
        self.endTurnLater()
        return self.waiting
    }

    /// Reserves `count` bytes of the loop's write buffer for this connection, unless earlier output of it is queued.
    private func claimWriteBuffer(_ count: Int) -> Bool {
        guard self.waiting == 0 else { return false }
        if let owner = self.loop.writeBuffer.owner, owner !== self { owner.flushWriteBuffer() }
        if self.loop.writeBuffer.room < count {
            self.flushWriteBuffer()
            guard self.waiting == 0, count <= self.loop.writeBuffer.capacity, self.acceptsOutput else { return false }
        }
        if self.loop.writeBuffer.owner == nil { self.loop.writeBuffer.owner = self }
        return true
    }

    @discardableResult
    package func writeThrough(_ bytes: RawSpan) -> Int {
        self.loop.assertOnLoop()
        guard self.acceptsOutput, bytes.byteCount > 0 else { return self.queuedBytes }
        if self.loop.writeBuffer.owner === self { self.flushWriteBuffer() }
        self.written &+= UInt64(bytes.byteCount)
        guard self.acceptsOutput else { return self.waiting }
        self.sendOrQueue(bytes)
        return self.waiting
    }

    /// Sends bytes of a file without their coming into the process, as many as the kernel takes now.
    /// - Returns: their number, 0 at the end of the file; `nil` where that cannot be done now: read them, and `write` them.
    package func sendFile(_ file: OpenFile, from offset: Int64, atMost count: Int) -> Int? {
        self.loop.assertOnLoop()
        if self.loop.writeBuffer.owner === self { self.flushWriteBuffer() }
        guard self.acceptsOutput, self.waiting == 0, count > 0 else { return nil }
        guard let sent = self.loop.system.sendFile(file, from: offset, atMost: count, to: self.descriptor) else {
            return nil
        }
        self.written &+= UInt64(sent)
        self.countSent(sent)
        return sent
    }

    private func sendOrQueue(_ bytes: RawSpan) {
        guard self.waiting == 0 else { return self.changeQueue { $0.append(bytes) } }
        let taken = self.loop.send(self.descriptor, bytes)
        if taken >= 0 { self.countSent(taken) }
        guard taken < bytes.byteCount else { return }
        if taken < 0, !self.mayRetry(taken) { return }
        self.changeQueue { $0.append(bytes.extracting(max(0, taken)..<bytes.byteCount)) }
        self.updateInterest()
    }

    /// Sends what this turn wrote to the loop's write buffer.
    func flushWriteBuffer() {
        guard self.loop.writeBuffer.owner === self else { return }
        self.loop.writeBuffer.owner = nil
        self.sendWriteBuffer()
    }

    /// As `flushWriteBuffer`, after the caller has already released the buffer's ownership.
    func sendWriteBuffer() {
        let count = self.loop.writeBuffer.count
        self.loop.writeBuffer.count = 0
        guard count > 0, self.isLive else { return }
        self.loop.writeBuffer.read(count) { self.sendOrQueue($0) }
    }

    package func awaitProgress() {
        self.loop.assertOnLoop()
        guard self.machine.isOpen else { return }
        self.endTurnLater()
        self.turnEndRequest = .requestedToReportProgress
    }

    func sendFromQueue() -> Int {
        self.changeQueue { queue in
            queue.drain { self.loop.system.send(self.descriptor, pieces: $0, skipping: $1) }
        }
    }

    func drainQueue() {
        guard self.waiting > 0 else { return }
        let taken = self.sendFromQueue()
        if taken < 0 {
            _ = self.mayRetry(taken)
            return
        }
        self.countSent(taken)
        if case .closing(let linger) = self.machine.phase { self.armCloseTimer(linger) }
        self.updateInterest()
        if self.machine.isOpen { self.currentConsumer?.outputProgressed() }
        self.endTurnLater()
    }

    /// - Returns: whether the send may be retried when the socket is writable. Otherwise output is broken; the end is
    ///   reported once the bytes received before it are read.
    func mayRetry(_ result: Int) -> Bool {
        let error = SystemError(Int32(truncatingIfNeeded: -result))
        let keepsInput = error == .brokenPipe && self.keepsUnreadInput
        switch self.machine.sendFailed(error, keepsInput: keepsInput) {
        case .retry: return true
        case .readOn:
            self.changeQueue { $0.removeAll() }
            self.endTurnLater()
        case .end(let end): self.end(end)
        }
        return false
    }

    package func shutdownOutput() {
        self.loop.assertOnLoop()
        if self.machine.shutdownOutput() { self.endTurnLater() }
    }
}

/// Bytes that wait for the kernel, in pieces. Owns no memory while empty.
struct WriteQueue {
    /// Small writes are joined into pieces of up to this size.
    private static let pieceSize = 64 << 10
    /// Pieces given to one sending call.
    private static let piecesPerCall = 16

    private var pieces: Deque<[UInt8]> = []
    /// Bytes of the first piece that were sent.
    private var sentOfFirst = 0
    private(set) var count = 0

    var isEmpty: Bool {
        self.count == 0
    }

    mutating func append(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        self.count += bytes.byteCount
        if let last = self.pieces.indices.last, self.pieces[last].count + bytes.byteCount <= Self.pieceSize {
            self.pieces[last].append(bytes)
        } else {
            self.pieces.append([UInt8](bytes))
        }
    }

    mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        // Many small ones would fill calls that take a few pieces each.
        guard piece.count > Self.pieceSize / 2 else { return piece.withRawSpan { self.append($0) } }
        self.count += piece.count
        self.pieces.append(piece)
    }

    /// Gives the waiting bytes to one sending call and drops what it took.
    /// - Parameter send: gives the bytes taken, or a negated error number.
    mutating func drain(_ send: (_ pieces: [[UInt8]], _ skipping: Int) -> Int) -> Int {
        let taken = send(Array(self.pieces.prefix(Self.piecesPerCall)), self.sentOfFirst)
        if taken > 0 { self.drop(taken) }
        return taken
    }

    private mutating func drop(_ taken: Int) {
        self.count -= taken
        var left = taken + self.sentOfFirst
        while let first = self.pieces.first, left >= first.count {
            left -= first.count
            self.pieces.removeFirst()
        }
        self.sentOfFirst = left
        if self.pieces.isEmpty { self.removeAll() }
    }

    mutating func removeAll() {
        self.pieces = []
        self.sentOfFirst = 0
        self.count = 0
    }
}

/// How long the kernel took nothing more of a connection's output, as its peer did not read. Most connections have
/// none.
package struct OutputStall: Sendable, Equatable {
    /// Since when bytes wait; `nil` while none do.
    package var since: MonotonicInstant?
    /// Of the times before.
    package var past = Duration.zero

    package init() {}

    /// In all, up to `now`.
    package func total(at now: MonotonicInstant) -> Duration {
        self.past + (self.since.map { max(.zero, $0.duration(to: now)) } ?? .zero)
    }

    mutating func begins(at now: MonotonicInstant) {
        self.since = self.since ?? now
    }

    mutating func ended(at now: MonotonicInstant) {
        self.past = self.total(at: now)
        self.since = nil
    }
}

/// Keeps a connection's `OutputStall` apart, so that one that never stalls pays eight bytes for it.
final class OutputStallBox {
    var value = OutputStall()
}
