import CommandLineText

/// Something that happened, as standard output or standard error may tell it.
enum ConnectEvent: Sendable {
    /// Before anything else.
    case connecting(String)
    case opened(ConnectionFacts)
    /// A text message, or with `--binary` unset nothing else to say of it.
    case text(String)
    /// A binary message.
    case data([UInt8])
    /// What a stream gave.
    case bytes([UInt8])
    /// A line of a stream, without its end.
    case line([UInt8])
    case pong(payload: String, roundTrip: Duration)
    /// The peer has finished sending on a stream.
    case ended
    case closed(ClosingFacts)
    case failed(ConnectFailure)
}
