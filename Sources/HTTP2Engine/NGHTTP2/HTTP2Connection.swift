import CNGHTTP2
import DequeModule

/// One HTTP/2 connection without sockets (RFC 9113), in either role, on libnghttp2: bytes in, events out.
///
/// Input: `nextEvent(in:from:)` until it returns `nil`. Output: whenever `wantsToWrite`, `write(_:)`, and then
/// `nextEvent` again, because frames that are written end streams. Not thread-safe.
/// A connection uses about 20 KiB, and the bytes that its streams have queued.
@safe
package final class HTTP2Connection {
    package let role: HTTP2Role
    package let settings: HTTP2Settings
    private let session: OpaquePointer
    private let state: SessionState

    /// The client's preface and both sides' SETTINGS are queued for `write` at once.
    /// - Throws: `.outOfMemory`.
    package init(_ role: HTTP2Role, settings: HTTP2Settings = HTTP2Settings()) throws(HTTP2Failure) {
        self.role = role
        self.settings = settings
        self.state = SessionState(role: role, settings: settings)
        guard let session = unsafe SessionCallbacks.makeSession(role: role, state: self.state) else {
            throw .outOfMemory
        }
        unsafe self.session = session
        guard self.announceSettings() else { throw .outOfMemory }
    }

    deinit {
        unsafe nghttp2_session_del(self.session)
    }

    private func announceSettings() -> Bool {
        let settings = self.settings
        var entries = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: UInt32(clamping: max(settings.streamWindow, 1))),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(clamping: settings.maximumHeaderListSize)),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1),
        ]
        switch self.role {
        case .client:
            entries.append(
                nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0))
        case .server:
            entries.append(
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                    value: settings.maximumConcurrentStreams))
        }
        let submitted = unsafe entries.withUnsafeBufferPointer {
            unsafe nghttp2_submit_settings(self.session, flags, $0.baseAddress, $0.count)
        }
        guard submitted == 0 else { return false }
        let window = max(settings.connectionWindow, 65_535)
        return unsafe nghttp2_session_set_local_window_size(self.session, flags, 0, window) == 0
    }

    // MARK: Input

    /// Reads `bytes` from `offset` on up to the next event and advances `offset` by the bytes that were used.
    ///
    /// The range of a `data` event is valid for these very bytes. Call until `nil`, with the same bytes; then all of them
    /// are used. With no bytes it returns events that output or verbs caused.
    package func nextEvent(in bytes: RawSpan, from offset: inout Int) -> HTTP2Event? {
        while true {
            if let event = self.state.events.popFirst() { return event }
            guard !self.state.hasFailed else {
                offset = bytes.byteCount
                return nil
            }
            // After a pause the library has to be called again, without bytes too: the frame's end may be there already.
            guard offset < bytes.byteCount || self.state.isPaused else { return nil }
            self.state.isPaused = false
            let used = unsafe bytes.withUnsafeBytes { buffer in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
                unsafe self.state.input = (rest.baseAddress, offset)
                defer { unsafe self.state.input = (nil, 0) }
                guard let start = rest.baseAddress else {
                    return unsafe withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { empty in
                        unsafe nghttp2_session_mem_recv(
                            self.session, empty.baseAddress?.assumingMemoryBound(to: UInt8.self), 0)
                    }
                }
                return unsafe nghttp2_session_mem_recv(
                    self.session, start.assumingMemoryBound(to: UInt8.self), rest.count)
            }
            if used < 0 {
                self.end(self.failure(of: Int32(used)))
            } else {
                offset += used
                if !self.state.bytesRead(used) { self.end(.flooded) }
            }
        }
    }

    /// So much time has passed since the bytes before. Without it the limits of `HTTP2Settings` on frames and bytes hold
    /// for the whole connection.
    package func timePassed(_ elapsed: Duration) {
        self.state.timePassed(elapsed)
    }

    /// Maps a fatal result of the library.
    private func failure(of result: Int32) -> HTTP2Failure {
        switch nghttp2_error(result) {
        case NGHTTP2_ERR_NOMEM: .outOfMemory
        case NGHTTP2_ERR_BAD_CLIENT_MAGIC: .noPreface
        case NGHTTP2_ERR_FLOODED, NGHTTP2_ERR_TOO_MANY_CONTINUATIONS, NGHTTP2_ERR_TOO_MANY_SETTINGS,
            NGHTTP2_ERR_CALLBACK_FAILURE:
            .flooded
        default: .violation(.protocolError, unsafe String(cString: nghttp2_strerror(result)))
        }
    }

    /// Ends the connection; the peer gets a GOAWAY with the failure's code.
    private func end(_ failure: HTTP2Failure) {
        let code: HTTP2ErrorCode =
            switch failure {
            case .flooded: .enhanceYourCalm
            case .outOfMemory: .internalError
            case .noPreface, .violation: .protocolError
            }
        unsafe _ = nghttp2_session_terminate_session(self.session, code.rawValue)
        self.state.fail(failure)
    }

    /// Gives `count` bytes of this stream's window back to the peer: they were delivered by `data` and are consumed now.
    package func consume(_ stream: HTTP2StreamID, _ count: Int) {
        unsafe _ = nghttp2_session_consume_stream(self.session, stream, count)
    }

    /// Changes the window of a stream whose request was written, to 1 to 2^31 - 1.
    package func setWindow(of stream: HTTP2StreamID, to size: Int32) {
        unsafe _ = nghttp2_session_set_local_window_size(self.session, flags, stream, max(size, 1))
    }

    /// Makes the window of all streams together larger; at most 2^31 - 1.
    package func setConnectionWindow(to size: Int32) {
        unsafe _ = nghttp2_session_set_local_window_size(self.session, flags, 0, max(size, 65_535))
    }

    // MARK: Output

    /// Whether there are frames for `write`.
    package var wantsToWrite: Bool { unsafe nghttp2_session_want_write(self.session) != 0 }
    /// Neither side sends anything more: the connection can be closed.
    package var isOver: Bool {
        unsafe nghttp2_session_want_read(self.session) == 0 && nghttp2_session_want_write(self.session) == 0
    }

    /// Passes the frames that can be sent now, one after the other, to `body`, which returns whether it takes more. Each
    /// piece is valid within the call only and at most a frame (16 KiB and its header, by default).
    package func write(_ body: (RawSpan) -> Bool) {
        while true {
            var start: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(self.session, &start)
            guard count >= 0 else {
                if count == Int(NGHTTP2_ERR_NOMEM.rawValue) { self.state.fail(.outOfMemory) }
                return
            }
            guard count > 0, let start = unsafe start else { return }
            let goesOn = body(unsafe RawSpan(_unsafeStart: start, byteCount: count))
            guard goesOn else { return }
        }
    }

    /// Sends a request (client). With `endsOutput` no body follows; otherwise `send` and `endOutput`.
    ///
    /// Beyond the peer's SETTINGS_MAX_CONCURRENT_STREAMS it waits in the library until another stream ends: ask
    /// `isAtLimit` before.
    package func request(_ fields: HTTP2FieldBlock, endsOutput: Bool) throws(HTTP2UsageError) -> HTTP2StreamID {
        guard !self.state.hasFailed, !self.state.didReceiveGoAway else { throw .closing }
        try self.checkSize(fields)
        let result = unsafe self.withFields(fields) { fields in
            guard !endsOutput else {
                return unsafe nghttp2_submit_request(self.session, nil, fields.baseAddress, fields.count, nil, nil)
            }
            var provider = unsafe SessionCallbacks.bodyProvider
            return unsafe nghttp2_submit_request(
                self.session, nil, fields.baseAddress, fields.count, &provider, nil)
        }
        guard result > 0 else { throw self.usageError(result) }
        self.state.streams[result] = StreamState(sendsBody: !endsOutput)
        return result
    }

    /// Sends a response (server), an informational one (status 100 to 199) as often as wanted before the final one.
    package func respond(
        _ stream: HTTP2StreamID, _ fields: HTTP2FieldBlock, endsOutput: Bool
    ) throws(HTTP2UsageError) {
        guard self.state.streams[stream]?.outputHasEnded == false else { throw .noSuchStream }
        try self.checkSize(fields)
        let isInformational = fields.status.map { $0 < 200 } ?? false
        let result = unsafe self.withFields(fields) { fields in
            if isInformational {
                return unsafe nghttp2_submit_headers(
                    self.session, flags, stream, nil, fields.baseAddress, fields.count, nil)
            }
            guard !endsOutput else {
                return unsafe nghttp2_submit_response(self.session, stream, fields.baseAddress, fields.count, nil)
            }
            var provider = unsafe SessionCallbacks.bodyProvider
            return unsafe nghttp2_submit_response(
                self.session, stream, fields.baseAddress, fields.count, &provider)
        }
        guard result >= 0 else { throw self.usageError(result) }
        guard !isInformational else { return }
        self.state.streams[stream]?.sendsBody = !endsOutput
        self.state.streams[stream]?.outputHasEnded = endsOutput
        self.state.streams[stream]?.isOutputFramed = endsOutput
    }

    /// Queues a copy of bytes of a body; the windows decide when they leave.
    /// - Returns: bytes of this stream that are queued now. Nothing is refused: compare it with a watermark, and continue
    ///   at `outputDrained`.
    @discardableResult
    package func send(_ stream: HTTP2StreamID, _ bytes: RawSpan) throws(HTTP2UsageError) -> Int {
        guard self.state.streams[stream]?.canSend == true else { throw .noSuchStream }
        let queued = self.state.enqueue(stream, bytes)
        unsafe _ = nghttp2_session_resume_data(self.session, stream)
        return queued
    }

    /// Ends this side of the stream after the bytes that are queued, with trailers if there are any.
    package func endOutput(_ stream: HTTP2StreamID, trailers: HTTP2FieldBlock? = nil) throws(HTTP2UsageError) {
        guard self.state.streams[stream]?.canSend == true else { throw .noSuchStream }
        if let trailers { try self.checkSize(trailers) }
        self.state.streams[stream]?.outputHasEnded = true
        self.state.streams[stream]?.trailers = trailers
        unsafe _ = nghttp2_session_resume_data(self.session, stream)
    }

    /// Ends a stream at once; its queued bytes are dropped.
    package func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        guard self.state.streams[stream] != nil else { return }
        self.state.streams[stream]?.outputHasEnded = true
        unsafe _ = nghttp2_submit_rst_stream(self.session, flags, stream, code.rawValue)
    }

    /// Tells the server how urgent a stream's response is: a `priority` field's value (RFC 9218 §7.1), from a client.
    package func updatePriority(of stream: HTTP2StreamID, to value: String) {
        guard self.role == .client, self.state.streams[stream] != nil else { return }
        var bytes = Array(value.utf8)
        unsafe bytes.withUnsafeMutableBufferPointer {
            unsafe _ = nghttp2_submit_priority_update(self.session, flags, stream, $0.baseAddress, $0.count)
        }
    }

    /// Asks for a `pong` with this number.
    package func ping(_ number: UInt64) {
        unsafe withUnsafeBytes(of: number.bigEndian) {
            unsafe _ = nghttp2_submit_ping(self.session, flags, $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// Opens and accepts no further streams; open ones continue to their end.
    package func goAway(_ code: HTTP2ErrorCode = .noError) {
        self.state.didSendGoAway = true
        let last = unsafe nghttp2_session_get_last_proc_stream_id(self.session)
        unsafe _ = nghttp2_submit_goaway(self.session, flags, last, code.rawValue, nil, 0)
    }

    // MARK: State

    /// Streams that are not over.
    package var openStreams: Int { self.state.streams.count }
    /// Streams that the peer lets this side have open at once; 100 before its settings came.
    package var maximumPeerStreams: Int {
        Int(unsafe nghttp2_session_get_remote_settings(self.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }
    /// Whether this side can open no stream until one is over, or the peer allows more.
    package var isAtLimit: Bool { self.openStreams >= self.maximumPeerStreams }
    /// Whether a request can be sent on this connection now or later.
    package var acceptsRequests: Bool {
        guard !self.state.hasFailed, !self.state.didReceiveGoAway, !self.state.didSendGoAway else { return false }
        return unsafe nghttp2_session_check_request_allowed(self.session) != 0
    }
    /// Bytes of the stream that were given to `send` and are not in frames yet.
    package func queuedBytes(of stream: HTTP2StreamID) -> Int { self.state.streams[stream]?.queued ?? 0 }
    /// Whether all output of the stream, its end too, is in frames. True for a stream that is over.
    package func isOutputFramed(of stream: HTTP2StreamID) -> Bool {
        self.state.streams[stream]?.isOutputFramed ?? true
    }

    private func checkSize(_ fields: HTTP2FieldBlock) throws(HTTP2UsageError) {
        guard fields.listSize <= self.settings.maximumSentHeaderListSize else { throw .headTooLarge }
    }

    private func usageError(_ result: Int32) -> HTTP2UsageError {
        switch nghttp2_error(result) {
        case NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE: .streamNumbersUsedUp
        case NGHTTP2_ERR_NOMEM: .outOfMemory
        case NGHTTP2_ERR_INVALID_ARGUMENT, NGHTTP2_ERR_HEADER_COMP: .headTooLarge
        default: .closing
        }
    }

    private func withFields(
        _ block: HTTP2FieldBlock, _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> Int32 {
        unsafe SessionCallbacks.withFields(block, body)
    }
}

/// Nearly every function takes flags, and there are none.
private let flags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
