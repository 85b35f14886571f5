import StreamTransport

/// Payload goes on as it comes.
struct RelayedPayload: PayloadTaker {
    let relay: any WebSocketRelay
    let transport: any Transport

    @inline(__always)
    func take(_ mark: FrameMark, _ payload: RawSpan, by task: WebSocketTask) {
        self.relay.received(mark, payload, by: task, over: self.transport)
    }
}
