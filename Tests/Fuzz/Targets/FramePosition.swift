import WebSocketProtocol

/// An element of a stream of frames, without the payload of data.
enum FramePosition: Equatable {
    case data(MessageKind, count: Int, startsMessage: Bool, endsFrame: Bool, endsMessage: Bool)
    case ping([UInt8])
    case pong([UInt8])
    case close(CloseCode?, reason: [UInt8])
    case violation(PeerViolation)

    var isData: Bool {
        if case .data = self { true } else { false }
    }

    /// Whether everything after it is ignored.
    var isEnd: Bool {
        switch self {
        case .close, .violation: true
        case .data, .ping, .pong: false
        }
    }
}
