import WebSocketProtocol

/// A relay between two WebSockets that takes data frames as they are, head and payload, once the task was told to
/// forward them. Everything else it is told as any relay.
package protocol FrameRelay: WebSocketRelay {
    /// Frames to be written to the other WebSocket as they stand. `bytes` are those of the run, valid only during the
    /// call.
    func received(_ run: FrameRun, _ bytes: RawSpan)
}
