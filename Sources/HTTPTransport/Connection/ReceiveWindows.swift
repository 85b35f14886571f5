import HTTP2Engine

/// The flow-control windows of one connection and of its streams (RFC 9113 §5.2). A window doubles when as many bytes as
/// it allows have been consumed: a small one would hold a distant server back, and a large one for each stream would cost
/// memory.
///
/// The connection's window is given back as bytes are received, so that a consumer that takes nothing stops its own stream
/// only. What such consumers make the connection hold is bounded by the windows of the streams: each may always hold its
/// initial window, and all together `growthLimit` more.
package struct ReceiveWindows: Equatable {
    /// 256 KiB to 4 MiB.
    package static let initialStreamWindow = 256 << 10
    package static let largestStreamWindow = 4 << 20
    /// 1 to 16 MiB.
    package static let initialConnectionWindow = 1 << 20
    package static let largestConnectionWindow = 16 << 20
    /// Bytes by which the windows of all streams together may exceed their initial size.
    package static let growthLimit = 32 << 20

    private struct Window: Equatable {
        var size: Int
        /// Bytes consumed since the window last became larger.
        var consumedBytes = 0

        /// - Returns: whether it became larger.
        mutating func consumed(_ count: Int, largest: Int) -> Bool {
            self.consumedBytes += count
            guard self.consumedBytes >= self.size, self.size < largest else { return false }
            self.consumedBytes = 0
            self.size = min(self.size * 2, largest)
            return true
        }
    }

    private var connection = Window(size: Self.initialConnectionWindow)
    /// Of streams of which bytes were consumed.
    private var streams: [HTTP2StreamID: Window] = [:]
    /// By how much the streams' windows exceed their initial size.
    private var growth = 0

    package init() {}

    /// Sizes of the windows that have become larger.
    package struct ConsumedAction: Equatable {
        package var streamWindow: Int?
        package var connectionWindow: Int?

        package init(streamWindow: Int? = nil, connectionWindow: Int? = nil) {
            self.streamWindow = streamWindow
            self.connectionWindow = connectionWindow
        }
    }

    package mutating func consumed(_ count: Int, of stream: HTTP2StreamID) -> ConsumedAction {
        var action = ConsumedAction()
        if self.connection.consumed(count, largest: Self.largestConnectionWindow) {
            action.connectionWindow = self.connection.size
        }
        let spare = Self.growthLimit - self.growth
        var window = self.streams[stream] ?? Window(size: Self.initialStreamWindow)
        let size = window.size
        if window.consumed(count, largest: min(Self.largestStreamWindow, size + spare)) {
            self.growth += window.size - size
            action.streamWindow = window.size
        }
        self.streams[stream] = window
        return action
    }

    /// The stream has ended, and holds nothing any more.
    package mutating func closed(_ stream: HTTP2StreamID) {
        guard let window = self.streams.removeValue(forKey: stream) else { return }
        self.growth -= window.size - Self.initialStreamWindow
    }
}
