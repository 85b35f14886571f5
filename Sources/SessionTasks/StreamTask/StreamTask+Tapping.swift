import StreamTransport

extension StreamTask {
    /// From now on `tap` sees what is carried. On the loop.
    package func add(_ tap: TaskTap) {
        guard !self.ended else { return }
        LoopTally.shared(on: self.loop).add(tap, to: self.record)
        self.isTapped = true
    }

    package func remove(_ tap: TaskTap) {
        self.isTapped = LoopTally.shared(on: self.loop).remove(tap, from: self.record)
    }

    /// Whether nobody looks on, or who does has no room for more: what goes by then is counted as left out.
    var mayPassUnseen: Bool {
        !self.isTapped || LoopTally.shared(on: self.loop).areTapsFull(at: self.record)
    }

    func wentUnseen() {
        if self.isTapped { LoopTally.shared(on: self.loop).passedUnseen(self.record) }
    }

    func show(_ way: TapPiece.Way, _ bytes: RawSpan) {
        LoopTally.shared(on: self.loop).passed(self.record, way, .stream, bytes)
    }
}
