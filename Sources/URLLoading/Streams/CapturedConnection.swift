import ByteKernels
import Foundation
import SessionTasks
import StreamTransport

/// A connection taken out of its task, between its loop, where it is the transport's consumer, and the threads that read
/// and write the two streams made of it, waiting where they have to.
final class CapturedConnection: @unchecked Sendable {
    /// Bytes that are received ahead of the reader, and given to the transport ahead of the peer.
    static let limit = 256 << 10

    private enum Order {
        case nothing
        case resumeReading
        case finishOutput
        case close
    }

    private let condition = NSCondition()
    private let loop: Loop
    /// Confined to the loop, until the end.
    private var transport: (any Transport)?
    private let sentBefore: UInt64

    // Under the condition's lock, as all below.
    private var received: [UInt8]
    private var taken = 0
    private var isInputEnded: Bool
    private var isInputOpen = false
    private var isInputClosed = false
    private var isReadingPaused = true
    private var given: UInt64 = 0
    private var sent: UInt64 = 0
    private var isOutputClosed = false
    private var ending: Ending?
    private var inputChanged: (() -> Void)?
    private var outputChanged: (() -> Void)?

    private struct Ending {
        let failure: TransportFailure?
    }

    /// On the loop of the transport.
    init(_ captured: CapturedStreams) {
        self.loop = captured.transport.loop
        self.transport = captured.transport
        self.sentBefore = captured.transport.sentBytes
        self.received = captured.unread
        self.isInputEnded = captured.inputClosed
        captured.transport.consumer = self
    }

    func observe(input: @escaping () -> Void) {
        self.condition.withLock { self.inputChanged = input }
    }

    func observe(output: @escaping () -> Void) {
        self.condition.withLock { self.outputChanged = output }
    }

    private func onLoop(_ work: @escaping @Sendable (any Transport) -> Void) {
        self.loop.execute { if let transport = self.transport { work(transport) } }
    }

    // MARK: Input, from any thread

    var hasBytes: Bool { self.condition.withLock { self.taken < self.received.count } }

    /// All was read, and nothing will come.
    var isInputExhausted: Bool {
        self.condition.withLock { self.taken == self.received.count && (self.isInputEnded || self.ending != nil) }
    }

    /// Why the connection ended, unless it did so cleanly.
    var failure: TransportFailure? { self.condition.withLock { self.ending?.failure } }

    /// The same for the input: behind an end in order a reset takes nothing back.
    var inputFailure: TransportFailure? {
        self.condition.withLock { self.isInputEnded ? nil : self.ending?.failure }
    }

    func openInput() {
        let resumes = self.condition.withLock {
            defer { self.isInputOpen = true }
            return !self.isInputOpen && !self.isInputClosed && self.resumesReading()
        }
        if resumes { self.onLoop { $0.resumeReading() } }
    }

    /// Under the lock.
    private func resumesReading() -> Bool {
        guard self.isReadingPaused, self.received.count - self.taken <= Self.limit / 2 else { return false }
        self.isReadingPaused = false
        return true
    }

    /// Waits until something is there, and copies up to `count` bytes of it.
    /// - Returns: how many; 0 at the end, -1 after a failure or when closed.
    func read(into target: PointerBytes.Target, count: Int) -> Int {
        let (given, resumes) = self.condition.withLock { () -> (Int, Bool) in
            while self.taken == self.received.count, !self.isInputEnded, self.ending == nil, !self.isInputClosed {
                self.condition.wait()
            }
            guard !self.isInputClosed else { return (-1, false) }
            let given = min(max(0, count), self.received.count - self.taken)
            if self.taken == self.received.count {
                return (self.isInputEnded || self.ending?.failure == nil ? 0 : -1, false)
            }
            self.received.withRawSpan { $0.extracting(self.taken..<(self.taken + given)).copy(to: target) }
            self.taken += given
            if self.taken == self.received.count {
                self.received.removeAll(keepingCapacity: true)
                self.taken = 0
            }
            return (given, self.resumesReading())
        }
        if resumes { self.onLoop { $0.resumeReading() } }
        return given
    }

    /// What still comes is thrown away; when the output is closed too, the connection ends.
    func closeInput() {
        let order = self.condition.withLock { () -> Order in
            guard !self.isInputClosed else { return .nothing }
            self.isInputClosed = true
            self.received = []
            self.taken = 0
            self.condition.broadcast()
            return self.isOutputClosed ? .close : .resumeReading
        }
        self.perform(order)
    }

    // MARK: Output, from any thread

    var hasSpace: Bool {
        self.condition.withLock { self.room > 0 && self.ending == nil && !self.isOutputClosed }
    }

    var isEnded: Bool { self.condition.withLock { self.ending != nil } }

    private var room: Int { Self.limit - Int(clamping: self.given - self.sent) }

    /// Waits until there is room, and takes up to `count` bytes.
    /// - Returns: how many; -1 after a failure, the end, or when closed.
    func write(_ source: PointerBytes.Source, count: Int) -> Int {
        let taken = self.condition.withLock { () -> Int in
            while self.room <= 0, self.ending == nil, !self.isOutputClosed { self.condition.wait() }
            guard self.ending == nil, !self.isOutputClosed else { return -1 }
            let taken = min(max(0, count), self.room)
            self.given += UInt64(taken)
            return taken
        }
        guard taken > 0 else { return taken }
        let bytes = [UInt8](copying: source, count: taken)
        self.onLoop { transport in
            bytes.withRawSpan { transport.write($0) }
            transport.awaitProgress()
        }
        return taken
    }

    /// Tells the peer that this was all, behind what was written; when the input is closed too, the connection ends.
    func closeOutput() {
        let order = self.condition.withLock { () -> Order in
            guard !self.isOutputClosed else { return .nothing }
            self.isOutputClosed = true
            self.condition.broadcast()
            return self.isInputClosed ? .close : .finishOutput
        }
        self.perform(order)
    }

    private func perform(_ order: Order) {
        switch order {
        case .nothing: break
        case .resumeReading: self.onLoop { $0.resumeReading() }
        case .finishOutput: self.onLoop { $0.shutdownOutput() }
        case .close: self.onLoop { $0.close(linger: .seconds(5)) }
        }
    }
}

extension CapturedConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let count = bytes.byteCount
        let (isFull, tell) = self.condition.withLock { () -> (Bool, (() -> Void)?) in
            guard !self.isInputClosed else { return (false, nil) }
            if self.taken > Self.limit {
                self.received.removeFirst(self.taken)
                self.taken = 0
            }
            self.received.append(bytes.bytes)
            self.isReadingPaused = self.received.count - self.taken >= Self.limit
            self.condition.broadcast()
            return (self.isReadingPaused, self.inputChanged)
        }
        if isFull { self.transport?.pauseReading() }
        tell?()
        return count
    }

    func inputClosed() {
        let tell = self.condition.withLock {
            self.isInputEnded = true
            self.condition.broadcast()
            return self.inputChanged
        }
        tell?()
    }

    func outputProgressed() {
        let sent = (self.transport?.sentBytes ?? 0) - self.sentBefore
        let tell = self.condition.withLock { () -> (() -> Void)? in
            self.sent = min(sent, self.given)
            self.condition.broadcast()
            return self.room > 0 ? self.outputChanged : nil
        }
        tell?()
    }

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        let tells = self.condition.withLock {
            let failure: TransportFailure? = if case .failed(let failure) = end { failure } else { nil }
            self.ending = Ending(failure: failure)
            self.condition.broadcast()
            defer { (self.inputChanged, self.outputChanged) = (nil, nil) }
            return [self.inputChanged, self.outputChanged]
        }
        for tell in tells { tell?() }
    }
}

/// The two streams that a connection becomes when it is taken out of its task. Neither is open.
///
/// Closing the output tells the peer that this was all; when both are closed, or gone, the connection ends.
package struct CapturedStreamPair: @unchecked Sendable {
    package let input: InputStream
    package let output: OutputStream

    /// On the loop of the connection, within the completion of `StreamTask.captureStreams`.
    package init(_ captured: CapturedStreams) {
        let connection = CapturedConnection(captured)
        self.input = CapturedInputStream(connection)
        self.output = CapturedOutputStream(connection)
    }
}

/// What a stream says went wrong with its connection, in the terms of the system, as streams of sockets do.
enum StreamFailure {
    static func error(_ failure: TransportFailure) -> NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(self.number(failure)),
            userInfo: [NSLocalizedDescriptionKey: failure.description])
    }

    private static func number(_ failure: TransportFailure) -> Int32 {
        switch failure {
        case .truncated: ECONNRESET
        case .deadlinePassed: ETIMEDOUT
        case .notPermitted: EACCES
        case .nameResolution: EHOSTUNREACH
        case .tls: EPROTO
        case .reset, .peerUnresponsive, .refused, .noSuchFile, .unreachable, .unusableEndpoint, .ownResources, .system:
            failure.systemError?.number ?? EIO
        }
    }
}
