import WebSocketProtocol

/// What was seen in a stream of frames, but for the payload of data.
enum FramePosition: Equatable {
    case data(MessageKind, count: Int, startsMessage: Bool, endsFrame: Bool, endsMessage: Bool)
    case ping([UInt8])
    case pong([UInt8])
    case close(CloseCode?, reason: [UInt8])
    case violation(PeerViolation)

    var isData: Bool {
        if case .data = self { true } else { false }
    }

    /// Nothing means anything behind it.
    var isEnd: Bool {
        switch self {
        case .close, .violation: true
        case .data, .ping, .pong: false
        }
    }
}
