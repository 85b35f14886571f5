import WebSocketProtocol

/// Everything seen in a stream of frames, however it was cut: pieces of a frame are taken together.
struct FrameLog: Equatable {
    private(set) var marks: [FramePosition] = []
    /// The concatenated payload of all data.
    private(set) var payload: [UInt8] = []

    var hasEnded: Bool { self.marks.last?.isEnd == true }
    /// The control frames, which a relay must see like the receiver.
    var marksOfControl: [FramePosition] { self.marks.filter { !$0.isData } }

    mutating func add(_ chunk: DataChunk, _ bytes: [UInt8]) {
        self.payload += bytes
        var count = bytes.count
        var starts = chunk.startsMessage
        if !starts, case .data(_, let before, let began, endsFrame: false, _)? = self.marks.last {
            self.marks.removeLast()
            count += before
            starts = began
        }
        self.marks.append(
            .data(
                chunk.kind, count: count, startsMessage: starts, endsFrame: chunk.endsFrame,
                endsMessage: chunk.endsMessage))
    }

    mutating func add(_ mark: FramePosition) {
        self.marks.append(mark)
    }
}
