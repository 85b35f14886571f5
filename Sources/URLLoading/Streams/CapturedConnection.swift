import ByteKernels
import Foundation
import SessionTasks
import StreamTransport

/// A connection captured from its task. It is the transport's consumer on the loop; the two streams read and write it
/// from any thread, blocking.
final class CapturedConnection: @unchecked Sendable {  // Guarded by `condition`, or confined to the loop.
    /// Largest number of bytes buffered for sending.
    private static let limit = CapturedInput.limit

    private enum Action {
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

    // Guarded by the condition's lock.
    private var input: CapturedInput
    private var accepted: UInt64 = 0
    private var sent: UInt64 = 0
    private var isOutputClosed: Bool
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
        self.input = CapturedInput(captured.unread, hasEnded: captured.inputClosed)
        self.isOutputClosed = captured.outputClosed
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

    var hasBytes: Bool { self.condition.withLock { self.input.count > 0 } }

    /// Everything was read, and the input has ended.
    var isInputExhausted: Bool {
        self.condition.withLock { self.input.count == 0 && (self.input.hasEnded || self.ending != nil) }
    }

    /// Why the connection ended; `nil` after a clean end.
    var failure: TransportFailure? { self.condition.withLock { self.ending?.failure } }

    /// The failure of the input: `nil` if the input had ended cleanly before the connection failed.
    var inputFailure: TransportFailure? {
        self.condition.withLock { self.input.hasEnded ? nil : self.ending?.failure }
    }

    func openInput() {
        let action = self.condition.withLock { self.input.bytesWanted() }
        if action == .resumeReading { self.onLoop { $0.resumeReading() } }
    }

    /// Blocks until bytes are available, and copies up to `count` of them.
    /// - Returns: the number of bytes; 0 at the end, -1 after a failure or when closed.
    func read(into target: PointerBytes.Target, count: Int) -> Int {
        let (copied, action) = self.condition.withLock { () -> (Int, CapturedInput.FlowAction) in
            while self.input.count == 0, !self.input.hasEnded, self.ending == nil, !self.input.isClosed {
                self.condition.wait()
            }
            guard !self.input.isClosed else { return (-1, .ignore) }
            guard self.input.count > 0 else {
                return (self.input.hasEnded || self.ending?.failure == nil ? 0 : -1, .ignore)
            }
            let copied = self.input.take(into: target, count: count)
            return (copied, self.input.bytesWanted())
        }
        if action == .resumeReading { self.onLoop { $0.resumeReading() } }
        return copied
    }

    /// Discards further input; if the output is closed too, closes the connection.
    func closeInput() {
        let action = self.condition.withLock { () -> Action in
            guard self.input.close() else { return .nothing }
            self.condition.broadcast()
            return self.isOutputClosed ? .close : .resumeReading
        }
        self.perform(action)
    }

    // MARK: Output, from any thread

    var hasSpace: Bool {
        self.condition.withLock { self.space > 0 && self.ending == nil && !self.isOutputClosed }
    }

    var isEnded: Bool { self.condition.withLock { self.ending != nil } }

    private var space: Int { Self.limit - Int(clamping: self.accepted - self.sent) }

    /// Blocks until there is space, and accepts up to `count` bytes.
    /// - Returns: the number of bytes; -1 after a failure, the end, or when closed.
    func write(_ source: PointerBytes.Source, count: Int) -> Int {
        let taken = self.condition.withLock { () -> Int in
            while self.space <= 0, self.ending == nil, !self.isOutputClosed { self.condition.wait() }
            guard self.ending == nil, !self.isOutputClosed else { return -1 }
            let taken = min(max(0, count), self.space)
            self.accepted += UInt64(taken)
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

    /// Shuts the output down after everything written; if the input is closed too, closes the connection.
    func closeOutput() {
        let action = self.condition.withLock { () -> Action in
            guard !self.isOutputClosed else { return .nothing }
            self.isOutputClosed = true
            self.condition.broadcast()
            return self.input.isClosed ? .close : .finishOutput
        }
        self.perform(action)
    }

    private func perform(_ action: Action) {
        switch action {
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
        let (action, notify) = self.condition.withLock { () -> (CapturedInput.FlowAction, (() -> Void)?) in
            guard !self.input.isClosed else { return (.ignore, nil) }
            let action = self.input.bytesReceived(bytes.bytes)
            self.condition.broadcast()
            return (action, self.inputChanged)
        }
        if action == .pauseReading { self.transport?.pauseReading() }
        notify?()
        return count
    }

    func inputClosed() {
        let notify = self.condition.withLock {
            self.input.inputEnded()
            self.condition.broadcast()
            return self.inputChanged
        }
        notify?()
    }

    func outputProgressed() {
        let sent = (self.transport?.sentBytes ?? 0) - self.sentBefore
        let notify = self.condition.withLock { () -> (() -> Void)? in
            self.sent = min(sent, self.accepted)
            self.condition.broadcast()
            return self.space > 0 ? self.outputChanged : nil
        }
        notify?()
    }

    func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        let handlers = self.condition.withLock {
            let failure: TransportFailure? = if case .failed(let failure) = end { failure } else { nil }
            self.ending = Ending(failure: failure)
            self.condition.broadcast()
            defer { (self.inputChanged, self.outputChanged) = (nil, nil) }
            return [self.inputChanged, self.outputChanged]
        }
        for notify in handlers { notify?() }
    }
}

/// The two streams of a captured connection. Neither is open.
///
/// Closing the output shuts down that direction; when both are closed or released, the connection is closed.
package struct CapturedStreamPair: @unchecked Sendable {  // Its only owner hands both streams on.
    package let input: InputStream
    package let output: OutputStream

    /// On the loop of the connection, within the completion of `StreamTask.captureStreams`.
    package init(_ captured: CapturedStreams) {
        let connection = CapturedConnection(captured)
        self.input = CapturedInputStream(connection)
        self.output = CapturedOutputStream(connection)
    }
}

/// A stream's error as a POSIX error, as socket streams report it.
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
        case .nameResolution, .proxy: EHOSTUNREACH
        case .tls: EPROTO
        case .reset, .peerUnresponsive, .refused, .noSuchFile, .unreachable, .offline, .unusableEndpoint, .ownResources,
            .system:
            failure.systemError?.number ?? EIO
        }
    }
}
