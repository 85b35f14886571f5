/// What a connection gave.
enum Received: Sendable {
    case text(String)
    case data([UInt8])
    /// Of a stream.
    case bytes([UInt8])
    /// There is no more; how it ended is told by the connection's end.
    case end
}
