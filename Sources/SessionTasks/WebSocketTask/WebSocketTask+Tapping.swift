import WebSocketProtocol

extension WebSocketTask {
    /// From now on `tap` sees what is carried. On the loop.
    package func add(_ tap: TaskTap) {
        guard self.phase != .ended else { return }
        self.tally.add(tap, to: self.record)
        self.isTapped = true
    }

    package func remove(_ tap: TaskTap) {
        self.isTapped = self.tally.remove(tap, from: self.record)
    }

    func show(
        _ way: TapPiece.Way, _ kind: MessageKind, _ bytes: RawSpan, startsMessage: Bool, endsMessage: Bool
    ) {
        self.tally.passed(
            self.record, way, kind == .text ? .text : .binary, bytes, startsMessage: startsMessage,
            endsMessage: endsMessage)
    }
}
