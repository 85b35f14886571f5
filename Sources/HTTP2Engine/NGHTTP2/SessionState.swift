import CNGHTTP2
import DequeModule

/// The output of one stream.
struct StreamState {
    /// A body follows the head: the library asks for it.
    var sendsBody: Bool
    var outputHasEnded = false
    /// The end of the output is in a frame, and all of it before.
    var isOutputFramed: Bool
    var trailers: HTTP2FieldBlock?
    private var buffer: [UInt8] = []
    private var used = 0

    init(sendsBody: Bool) {
        self.sendsBody = sendsBody
        self.outputHasEnded = !sendsBody
        self.isOutputFramed = !sendsBody
    }

    var canSend: Bool { self.sendsBody && !self.outputHasEnded }
    var queued: Int { self.buffer.count - self.used }

    mutating func append(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe self.buffer.append(contentsOf: $0) }
    }

    /// Moves as many queued bytes as fit.
    mutating func take(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, self.queued)
        unsafe self.buffer.withUnsafeBytes {
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[self.used..<self.used + count]))
        }
        self.used += count
        if self.used == self.buffer.count {
            self.buffer.removeAll(keepingCapacity: true)
            self.used = 0
        } else if self.used >= 1 << 16, self.used > self.buffer.count / 2 {
            self.buffer.removeFirst(self.used)
            self.used = 0
        }
        return count
    }
}

/// State of a connection that the library's callbacks read and change.
@safe
final class SessionState {
    let role: HTTP2Role
    let settings: HTTP2Settings
    var events: Deque<HTTP2Event> = []
    var streams: [HTTP2StreamID: StreamState] = [:]
    /// Start of the bytes that are being read, and their offset in the caller's input.
    var input: (start: UnsafeRawPointer?, offset: Int) = (nil, 0)
    /// A `data` event was given out within a frame, or at its end.
    var isPaused = false
    private(set) var hasFailed = false
    var didReceiveGoAway = false
    var didSendGoAway = false
    private var block = HTTP2FieldBlock()
    /// Frames and bytes received in excess of heads and content; time reduces them. Negative after time without input, of
    /// which up to ten seconds count: a process that was stopped reads at once what came meanwhile.
    private var idleFrames = 0.0
    private var idleBytes = 0.0

    init(role: HTTP2Role, settings: HTTP2Settings) {
        self.role = role
        self.settings = settings
    }

    func enqueue(_ stream: HTTP2StreamID, _ bytes: RawSpan) -> Int {
        self.streams[stream]?.append(bytes)
        return self.streams[stream]?.queued ?? 0
    }

    func fail(_ failure: HTTP2Failure) {
        guard !self.hasFailed else { return }
        self.hasFailed = true
        self.events.append(.failed(failure))
    }

    /// The library has read `count` bytes. It ignores frames of unknown types, and DATA of streams that are over,
    /// without a callback.
    /// - Returns: whether the connection may go on.
    func bytesRead(_ count: Int) -> Bool {
        self.idleBytes += Double(count)
        return self.idleBytes <= Double(self.settings.maximumIdleBytes)
    }

    func timePassed(_ elapsed: Duration) {
        let frames = Double(self.settings.maximumIdleFrames)
        let bytes = Double(self.settings.maximumIdleBytes) / 60
        let seconds = elapsed / .seconds(1)
        self.idleFrames = max(-10 * frames, self.idleFrames - seconds * frames)
        self.idleBytes = max(-10 * bytes, self.idleBytes - seconds * bytes)
    }

    // MARK: Callbacks

    /// - Returns: whether the connection may go on.
    func frameBegins(_ header: nghttp2_frame_hd) -> Bool {
        self.idleFrames += 1
        return self.idleFrames <= Double(self.settings.maximumIdleFrames)
    }

    /// Content was received or sent. Each byte makes up for itself and another; five, as the prefix of a gRPC message has,
    /// make up for a frame.
    func contentProgressed(_ count: Int) {
        self.idleFrames = max(min(0, self.idleFrames), self.idleFrames - Double(count) / 5)
        self.idleBytes = max(min(0, self.idleBytes), self.idleBytes - Double(count) * 2)
    }

    /// A head was received or sent.
    func headProgressed() {
        self.idleFrames = min(0, self.idleFrames)
        self.idleBytes = min(0, self.idleBytes)
    }

    func headBegins(_ stream: HTTP2StreamID) {
        self.block = HTTP2FieldBlock()
        if self.role == .server, self.streams[stream] == nil {
            self.streams[stream] = StreamState(sendsBody: false)
            self.streams[stream]?.outputHasEnded = false
            self.streams[stream]?.isOutputFramed = false
        }
    }

    /// - Returns: whether the section is still within its limit.
    func field(
        of stream: HTTP2StreamID, name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, isSensitive: Bool
    ) -> Bool {
        let isWithinLimit = self.block.append(
            name: unsafe name.span, value: unsafe value.span, isSensitive: isSensitive,
            limit: self.settings.maximumHeaderListSize)
        guard isWithinLimit else {
            self.block = HTTP2FieldBlock()
            self.events.append(.headTooLarge(stream))
            return false
        }
        return true
    }

    func headEnds(_ stream: HTTP2StreamID, isLast: Bool) {
        let block = self.block
        self.block = HTTP2FieldBlock()
        self.headProgressed()
        if let status = block.status, status < 200 {
            self.events.append(.informational(stream, block))
        } else if block.status != nil || block.first(":method") != nil {
            self.events.append(.head(stream, block, isLast: isLast))
        } else {
            self.events.append(.trailers(stream, block))
        }
    }

    func data(_ stream: HTTP2StreamID, at start: UnsafePointer<UInt8>, count: Int) {
        guard let base = unsafe self.input.start else { return }
        let offset = unsafe UnsafeRawPointer(start) - base + self.input.offset
        self.contentProgressed(count)
        self.isPaused = true
        self.events.append(.data(stream, offset..<offset + count))
    }

    func closed(_ stream: HTTP2StreamID, _ code: UInt32) {
        guard self.streams.removeValue(forKey: stream) != nil else { return }
        self.events.append(.closed(stream, HTTP2ErrorCode(rawValue: code)))
    }

    /// GOAWAY was written: by `goAway`, or because the peer broke a rule that `text` names.
    func goAwaySent(_ code: UInt32, _ text: String) {
        guard !self.didSendGoAway else { return }
        let code = HTTP2ErrorCode(rawValue: code)
        self.fail(.violation(code, text.isEmpty ? "\(code)" : text))
    }
}

extension [UInt8] {
    /// In one piece, unlike `append(contentsOf:)` of a collection.
    mutating func append(copying bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
    }
}
