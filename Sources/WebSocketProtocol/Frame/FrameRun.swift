/// Data frames that stand side by side in the bytes given, ready to be written to the other WebSocket: the rest of a
/// frame that had begun before, whole frames, and the beginning of one that goes on.
package struct FrameRun: Equatable, Sendable {
    /// Where they stand, headers included.
    package private(set) var range: Range<Int>
    /// Bytes of payload among them.
    package private(set) var payloadCount = 0
    /// Messages that end here.
    package private(set) var messageCount = 0
    /// Frames that end here.
    package private(set) var frameCount = 0
    /// Whether the last message is whole, so that a frame of another one may follow.
    package private(set) var endsMessage = true
    /// Whether the last frame is whole, so that a frame of another kind may follow.
    package private(set) var endsFrame = true
    /// What belongs to the frame that had begun before, at the front.
    private var restCount = 0
    private var restEndsMessage = false

    package init(at position: Int) {
        self.range = position..<position
    }

    /// One frame, which is a whole message.
    init(of frame: PlainFrame, from position: Int) {
        self.range = position..<frame.payload.upperBound
        self.payloadCount = frame.payload.count
        self.messageCount = 1
        self.frameCount = 1
    }

    package mutating func append(_ piece: FramePiece) {
        if !piece.startsFrame {
            self.restCount = piece.range.count
            self.restEndsMessage = piece.endsMessage
        }
        self.range = self.range.lowerBound..<piece.range.upperBound
        self.payloadCount += piece.payloadRange.count
        self.messageCount += piece.endsMessage ? 1 : 0
        self.frameCount += piece.endsFrame ? 1 : 0
        self.endsFrame = piece.endsFrame
        self.endsMessage = piece.endsMessage
    }

    /// The rest of the frame that had begun before, alone; `nil` where there is none.
    package var rest: FrameRun? {
        guard self.restCount > 0 else { return nil }
        var rest = self
        rest.range = self.range.lowerBound..<(self.range.lowerBound + self.restCount)
        rest.payloadCount = self.restCount
        rest.messageCount = self.restEndsMessage ? 1 : 0
        rest.endsMessage = self.restEndsMessage
        rest.endsFrame = self.endsFrame || self.restCount < self.range.count
        rest.frameCount = rest.endsFrame ? 1 : 0
        return rest
    }
}
