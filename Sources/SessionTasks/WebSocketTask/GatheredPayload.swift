/// Payload is gathered to messages, for whoever receives them.
struct GatheredPayload: PayloadTaker {
    @inline(__always)
    func take(_ mark: FrameMark, _ payload: RawSpan, by task: WebSocketTask) {
        task.gather(mark, payload)
    }
}
