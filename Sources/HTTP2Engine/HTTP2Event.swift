/// Number of a stream; odd for those that the client opened (RFC 9113 §5.1.1).
package typealias HTTP2StreamID = Int32

package enum HTTP2Role: Sendable {
    case client, server
}

/// An event of a connection. Events of one stream are in order.
package enum HTTP2Event: Equatable, Sendable {
    /// A request (server) or a response with its final status (client). `isLast`: no body and no trailers follow.
    case head(HTTP2StreamID, HTTP2FieldBlock, isLast: Bool)
    /// A response with a status of 100 to 199, to the client; the final one is still to come.
    case informational(HTTP2StreamID, HTTP2FieldBlock)
    /// Bytes of a body: the range of the input just given. They count against the stream's window until `consume`.
    case data(HTTP2StreamID, Range<Int>)
    /// Fields after the body; no further input of this stream follows.
    case trailers(HTTP2StreamID, HTTP2FieldBlock)
    /// The peer has sent everything of this stream; follows a head or data that was not the last.
    case inputEnded(HTTP2StreamID)
    /// The stream is over: both sides ended it (`.noError`), one reset it, or the peer's GOAWAY says that it never looked
    /// at it (`.refusedStream`).
    case closed(HTTP2StreamID, HTTP2ErrorCode)
    /// The peer sent more fields than `HTTP2Settings.maximumHeaderListSize`; `closed` follows.
    case headTooLarge(HTTP2StreamID)
    /// The server's response breaks a rule of HTTP (RFC 9113 §8.1.1), and the stream was reset for it; `closed` follows.
    case malformed(HTTP2StreamID)
    /// Everything that was given to `send` for this stream is in frames.
    case outputDrained(HTTP2StreamID)
    /// The peer's settings came or changed.
    case settings
    /// The peer opens and accepts no further streams. Streams above `lastStream` come as `closed` with `.refusedStream`.
    case goAway(lastStream: HTTP2StreamID, HTTP2ErrorCode)
    /// Answer to `ping` with the same number.
    case pong(UInt64)
    /// The connection is over because the peer broke a rule; what remains to be written says so to the peer.
    case failed(HTTP2Failure)
}

/// Reason for the end of a stream or connection (RFC 9113 §7). Unknown codes of a peer are kept.
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = Self(rawValue: 0x0)
    package static let protocolError = Self(rawValue: 0x1)
    package static let internalError = Self(rawValue: 0x2)
    package static let flowControlError = Self(rawValue: 0x3)
    package static let settingsTimeout = Self(rawValue: 0x4)
    package static let streamClosed = Self(rawValue: 0x5)
    package static let frameSizeError = Self(rawValue: 0x6)
    package static let refusedStream = Self(rawValue: 0x7)
    package static let cancel = Self(rawValue: 0x8)
    package static let compressionError = Self(rawValue: 0x9)
    package static let connectError = Self(rawValue: 0xA)
    package static let enhanceYourCalm = Self(rawValue: 0xB)
    package static let inadequateSecurity = Self(rawValue: 0xC)
    package static let http11Required = Self(rawValue: 0xD)
}

extension HTTP2ErrorCode: CustomStringConvertible {
    /// The name in RFC 9113 §7, or the number.
    package var description: String {
        switch self {
        case .noError: "NO_ERROR"
        case .protocolError: "PROTOCOL_ERROR"
        case .internalError: "INTERNAL_ERROR"
        case .flowControlError: "FLOW_CONTROL_ERROR"
        case .settingsTimeout: "SETTINGS_TIMEOUT"
        case .streamClosed: "STREAM_CLOSED"
        case .frameSizeError: "FRAME_SIZE_ERROR"
        case .refusedStream: "REFUSED_STREAM"
        case .cancel: "CANCEL"
        case .compressionError: "COMPRESSION_ERROR"
        case .connectError: "CONNECT_ERROR"
        case .enhanceYourCalm: "ENHANCE_YOUR_CALM"
        case .inadequateSecurity: "INADEQUATE_SECURITY"
        case .http11Required: "HTTP_1_1_REQUIRED"
        default: "error \(self.rawValue)"
        }
    }
}

/// Why a connection failed.
package enum HTTP2Failure: Error, Equatable, Sendable {
    /// The peer broke a rule of RFC 9113; the text is libnghttp2's.
    case violation(HTTP2ErrorCode, String)
    /// The peer sent more control frames, continuations or settings in a row than the limit.
    case flooded
    /// The first bytes of a client are no connection preface (RFC 9113 §3.4).
    case noPreface
    case outOfMemory
}

/// Why something cannot be sent.
package enum HTTP2UsageError: Error, Equatable, Sendable {
    /// The peer said GOAWAY, or this side did, or the connection failed.
    case closing
    /// All stream numbers of the connection are used (2^30 requests).
    case streamNumbersUsedUp
    /// There is no such stream, or its output has ended.
    case noSuchStream
    /// The fields are larger than `HTTP2Settings.maximumSentHeaderListSize`.
    case headTooLarge
    case outOfMemory
}
