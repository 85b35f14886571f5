import CNGHTTP2

/// The library's callbacks. Their last parameter points to the connection's `SessionState`.
enum SessionCallbacks {
    /// Built once; the library copies it.
    nonisolated(unsafe) private static let callbacks: OpaquePointer? = {
        var callbacks: OpaquePointer?
        guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks = unsafe callbacks else {
            return nil
        }
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, header, state in
            guard let header = unsafe header, let state = unsafe SessionCallbacks.state(state) else { return 0 }
            return unsafe state.frameBegins(header.pointee) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, state in
            guard let frame = unsafe frame else { return 0 }
            // The library resets the promised stream.
            guard unsafe frame.pointee.hd.type != UInt8(NGHTTP2_PUSH_PROMISE.rawValue) else {
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
            }
            unsafe SessionCallbacks.state(state)?.headBegins(frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, flags, state in
            guard let frame = unsafe frame, let state = unsafe SessionCallbacks.state(state) else { return 0 }
            let isWithinLimit = unsafe state.field(
                of: frame.pointee.hd.stream_id, name: UnsafeBufferPointer(start: name, count: nameCount),
                value: UnsafeBufferPointer(start: value, count: valueCount),
                isSensitive: flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0)
            return isWithinLimit ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            session, _, stream, data, count, state in
            guard let data = unsafe data, let state = unsafe SessionCallbacks.state(state) else { return 0 }
            // The connection's window is for all: one stream that is not consumed must not stop the others.
            unsafe _ = nghttp2_session_consume_connection(session, count)
            unsafe state.data(stream, at: data, count: count)
            return NGHTTP2_ERR_PAUSE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, state in
            guard let frame = unsafe frame, let state = unsafe SessionCallbacks.state(state) else { return 0 }
            unsafe SessionCallbacks.received(frame.pointee, state)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, state in
            guard let frame = unsafe frame, let state = unsafe SessionCallbacks.state(state) else { return 0 }
            unsafe SessionCallbacks.sent(frame.pointee, state)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, error, state in
            guard let frame = unsafe frame, unsafe frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue),
                unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
            else { return 0 }
            // A request that waited when GOAWAY came or went is unprocessed; one that cannot be encoded is not.
            let isUnprocessed = nghttp2_error(error) != NGHTTP2_ERR_FRAME_SIZE_ERROR
            let code = isUnprocessed ? HTTP2ErrorCode.refusedStream : .internalError
            unsafe SessionCallbacks.state(state)?.closed(frame.pointee.hd.stream_id, code.rawValue)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, state in
            unsafe SessionCallbacks.state(state)?.closed(stream, code)
            return 0
        }
        return unsafe callbacks
    }()

    /// Asks a stream's queue for the next bytes of its body.
    static var bodyProvider: nghttp2_data_provider {
        var provider = unsafe nghttp2_data_provider()
        unsafe provider.read_callback = { session, stream, room, size, flags, _, state in
            guard let state = unsafe SessionCallbacks.state(state), let flags = unsafe flags else {
                return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
            }
            let room = unsafe UnsafeMutableRawBufferPointer(start: room, count: size)
            return unsafe SessionCallbacks.body(of: stream, session, state, into: room, flags)
        }
        return unsafe provider
    }

    static func makeSession(role: HTTP2Role, state: SessionState) -> OpaquePointer? {
        var options: OpaquePointer?
        guard let callbacks = unsafe self.callbacks, unsafe nghttp2_option_new(&options) == 0 else { return nil }
        defer { unsafe nghttp2_option_del(options) }
        unsafe nghttp2_option_set_no_auto_window_update(options, 1)
        // The library counts at most 12 bytes for each field and 12 more, so that `HTTP2Connection` refuses first.
        let blockLimit = state.settings.maximumSentHeaderListSize + 12
        unsafe nghttp2_option_set_max_send_header_block_length(options, blockLimit)
        // A peer may fill frames of the default size up to the announced limit. By default the library reads 8 CONTINUATIONs.
        let frames = state.settings.maximumHeaderListSize / 16_384 + 8
        unsafe nghttp2_option_set_max_continuations(options, frames)
        // Closed streams are kept for priorities that are not used.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        // The connection owns the state and ends the session first.
        let pointer = unsafe Unmanaged.passUnretained(state).toOpaque()
        var session: OpaquePointer?
        let result =
            switch role {
            case .client: unsafe nghttp2_session_client_new2(&session, callbacks, pointer, options)
            case .server: unsafe nghttp2_session_server_new2(&session, callbacks, pointer, options)
            }
        return result == 0 ? unsafe session : nil
    }

    /// Calls `body` with the fields in the library's form, which it copies.
    static func withFields(
        _ block: HTTP2FieldBlock, _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Int32
    ) -> Int32 {
        var bytes = block.bytes
        return unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: max(block.count, 1)) { fields in
                for index in 0..<block.count {
                    let name = block.name(at: index)
                    let value = block.value(at: index)
                    let sensitive = block.isSensitive(at: index) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
                    unsafe fields.initializeElement(
                        at: index,
                        to: nghttp2_nv(
                            name: buffer.baseAddress.map { unsafe $0 + name.startIndex },
                            value: buffer.baseAddress.map { unsafe $0 + value.startIndex },
                            namelen: name.count, valuelen: value.count, flags: UInt8(sensitive.rawValue)))
                }
                return unsafe body(UnsafeMutableBufferPointer(rebasing: fields[..<block.count]))
            }
        }
    }

    private static func state(_ pointer: UnsafeMutableRawPointer?) -> SessionState? {
        guard let pointer = unsafe pointer else { return nil }
        return unsafe Unmanaged<SessionState>.fromOpaque(pointer).takeUnretainedValue()
    }

    private static func received(_ frame: nghttp2_frame, _ state: SessionState) {
        let header = unsafe frame.hd
        let endsStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        let isAnswer = header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch nghttp2_frame_type(UInt32(header.type)) {
        case NGHTTP2_HEADERS: state.headEnds(header.stream_id, isLast: endsStream)
        case NGHTTP2_DATA: if endsStream { state.events.append(.inputEnded(header.stream_id)) }
        case NGHTTP2_SETTINGS: if !isAnswer { state.events.append(.settings) }
        case NGHTTP2_PING:
            guard isAnswer else { return }
            let number = unsafe withUnsafeBytes(of: frame.ping.opaque_data) { unsafe $0.loadUnaligned(as: UInt64.self) }
            state.events.append(.pong(UInt64(bigEndian: number)))
        case NGHTTP2_GOAWAY:
            state.didReceiveGoAway = true
            let goAway = unsafe frame.goaway
            state.events.append(
                .goAway(
                    lastStream: unsafe goAway.last_stream_id, HTTP2ErrorCode(rawValue: unsafe goAway.error_code)))
        default: break
        }
    }

    private static func sent(_ frame: nghttp2_frame, _ state: SessionState) {
        let header = unsafe frame.hd
        switch nghttp2_frame_type(UInt32(header.type)) {
        case NGHTTP2_DATA: state.contentProgressed(header.length)
        case NGHTTP2_HEADERS: state.headProgressed()
        case NGHTTP2_RST_STREAM:
            // The library's own; `HTTP2Connection.reset` is asked for other codes.
            let isForMessage = unsafe frame.rst_stream.error_code == HTTP2ErrorCode.protocolError.rawValue
            if isForMessage, state.role == .client, state.streams[header.stream_id] != nil {
                state.events.append(.malformed(header.stream_id))
            }
        case NGHTTP2_GOAWAY:
            let goAway = unsafe frame.goaway
            let text = unsafe UnsafeBufferPointer(start: goAway.opaque_data, count: min(goAway.opaque_data_len, 300))
            unsafe state.goAwaySent(goAway.error_code, String(decoding: text, as: UTF8.self))
        default: break
        }
    }

    private static func body(
        of stream: HTTP2StreamID, _ session: OpaquePointer?, _ state: SessionState,
        into room: UnsafeMutableRawBufferPointer, _ flags: UnsafeMutablePointer<UInt32>
    ) -> Int {
        guard let queued = state.streams[stream]?.queued else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let hasEnded = state.streams[stream]?.outputHasEnded ?? true
        if queued == 0, !hasEnded { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
        let count = unsafe state.streams[stream]?.take(into: room) ?? 0
        guard count == queued else { return count }
        if count > 0 { state.events.append(.outputDrained(stream)) }
        guard hasEnded else { return count }
        state.streams[stream]?.isOutputFramed = true
        unsafe flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
        if let trailers = state.streams[stream]?.trailers {
            unsafe flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue)
            let result = unsafe self.withFields(trailers) {
                unsafe nghttp2_submit_trailer(session, stream, $0.baseAddress, $0.count)
            }
            guard result == 0 else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        }
        return count
    }
}
