/// Who takes the payload of the frames of a read: settled once for all of them, and known where the frames are read, so
/// that it costs nothing for each.
protocol PayloadTaker {
    func take(_ mark: FrameMark, _ payload: RawSpan, by task: WebSocketTask)
}
