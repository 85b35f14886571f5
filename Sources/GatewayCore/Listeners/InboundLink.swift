import StreamTransport

/// What was accepted, ready for its endpoint.
enum InboundLink {
    /// Bytes from now on.
    case stream(any Transport)
    /// An opening request that waits for its answer.
    case webSocket(any Transport, AskedRoute)
}
