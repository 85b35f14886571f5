/// One of the two connections that a tunnel joins.
package enum TunnelSide: String, CaseIterable, Sendable {
    /// The client's.
    case downstream
    /// The target's.
    case upstream

    package var other: TunnelSide {
        switch self {
        case .downstream: .upstream
        case .upstream: .downstream
        }
    }
}

/// A value for each side of a tunnel.
struct TunnelSides<Value> {
    var downstream: Value
    var upstream: Value

    subscript(side: TunnelSide) -> Value {
        get {
            switch side {
            case .downstream: self.downstream
            case .upstream: self.upstream
            }
        }
        set {
            switch side {
            case .downstream: self.downstream = newValue
            case .upstream: self.upstream = newValue
            }
        }
    }
}

extension TunnelSides: Equatable where Value: Equatable {}
extension TunnelSides: Hashable where Value: Hashable {}
extension TunnelSides: Sendable where Value: Sendable {}

/// Protocol of one side of a tunnel.
package enum SideKind: CaseIterable, Sendable {
    /// Bytes: TCP, TLS or a Unix socket. Either end can finish alone.
    case stream
    /// Messages (RFC 6455). Its Close frame ends both directions.
    case webSocket
}

/// Action on one side of a tunnel. Earlier output is sent first, except with `fail` and `reset`.
package enum SideAction: Hashable, Sendable {
    /// Stream: FIN or close_notify after all queued bytes; keep reading.
    case finishOutput
    /// WebSocket: an empty binary message after all queued ones; keep reading.
    case sendEndMark
    /// WebSocket: begin the closing handshake after all queued messages; keep reading until the peer's Close.
    case sendClose(CloseSignal)
    /// `sendEndMark`, then `sendClose`.
    case sendEndMarkThenClose(CloseSignal)
    /// WebSocket: answer its Close after all queued messages, then end the connection (RFC 6455 §7.1.1).
    case answerClose(CloseSignal)
    /// Send all queued bytes, then end the connection cleanly; nothing more is read. On a WebSocket both Close frames
    /// were exchanged.
    case close
    /// WebSocket: fail the connection (RFC 6455 §7.1.7). Drop queued messages, send this Close at the next frame
    /// boundary, end.
    case fail(CloseSignal)
    /// End at once so that the peer cannot take it for a clean end: RST, no close_notify, no Close.
    case reset
}

/// One direction of a tunnel, named after the side its bytes come from.
package enum TunnelDirection: Sendable {
    case open
    /// Ended by its source, or refused by its sink: complete.
    case finished
    /// It ended before its source did: bytes may be missing.
    case failed
}

/// Code and reason of a Close frame (RFC 6455 §5.5.1).
package struct CloseSignal: Hashable, Sendable {
    /// `nil` where the frame is empty (1005 to a reader; never on the wire).
    package var code: UInt16?
    /// UTF-8, at most 123 bytes; empty without a code.
    package var reason: [UInt8]

    package init(code: UInt16?, reason: [UInt8] = []) {
        self.code = code
        self.reason = reason
    }

    package static let normal = CloseSignal(code: 1000)
    package static let goingAway = CloseSignal(code: 1001)
    static let idleTimeout = CloseSignal(code: 1001, reason: Array("idle timeout".utf8))
    static let maximumAge = CloseSignal(code: 1001, reason: Array("maximum age".utf8))
    static let tokenExpired = CloseSignal(code: 1008, reason: Array("token expired".utf8))
    /// The other side of the tunnel ended abnormally.
    package static let otherSideFailed = CloseSignal(code: 1011)

    /// Whether the sender means a regular end. Normal, going away and no code are; so are the applications' own codes
    /// (3000 to 4999), whose meaning we cannot know. All others report an error: 1002, 1003, 1007 to 1014.
    package var isRegular: Bool {
        switch self.code {
        case nil, 1000, 1001, .some(3000...4999): true
        default: false
        }
    }
}

/// How a connection of a tunnel was lost: never a clean end.
package enum ConnectionFailure: CaseIterable, Sendable {
    /// The peer reset it, or refused what we wrote.
    case reset
    /// TLS without close_notify, or a WebSocket without its Close frame: bytes may be missing.
    case truncated
    /// No pong, keep-alive answer or acknowledgement within its time.
    case unresponsive
    /// TLS failed in mid-stream.
    case tls
    /// Any other error of the system.
    case system
}
