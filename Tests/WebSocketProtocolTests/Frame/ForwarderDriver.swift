import ByteKernels
import WebSocketProtocol

/// Feeds a forwarder like a transport, and records its output for the other WebSocket.
final class ForwarderDriver {
    /// A control frame or an end, and how many bytes had been forwarded before it.
    struct Event: Equatable {
        let observation: Observation
        let place: Int
    }

    private var forwarder: FrameForwarder
    /// Pulls whole messages first, as a task does.
    private let takesWholeMessages: Bool
    private var kept: [UInt8] = []
    private(set) var forwarded: [UInt8] = []
    private(set) var events: [Event] = []
    private(set) var runs: [FrameRun] = []
    /// The number of forwarded bytes each time a run ended with a complete frame.
    private(set) var boundaries: [Int] = []
    private(set) var mostKept = 0

    /// Keys of a client's frames are 1, 2, 3….
    init(from sender: Role, limit: Int? = nil, takesWholeMessages: Bool = false) {
        self.takesWholeMessages = takesWholeMessages
        var last: UInt32 = 0
        let keys = MaskingKeys {
            last += 1
            return (last, [])
        }
        self.forwarder = FrameForwarder(from: sender, maximumMessageSize: limit, keys: keys)
    }

    static func observe(
        _ bytes: [UInt8], from sender: Role, limit: Int? = nil, fed feeding: Feeding, takesWholeMessages: Bool = false
    ) -> ForwarderDriver {
        let driver = ForwarderDriver(from: sender, limit: limit, takesWholeMessages: takesWholeMessages)
        for piece in feeding.pieces(of: bytes) { driver.feed(piece) }
        return driver
    }

    func feed(_ piece: [UInt8], mostEvents: Int = .max) {
        self.kept += piece
        var position = 0
        var taken = 0
        var bytes = self.kept
        bytes.withMutableRawSpan { span in
            while taken < mostEvents, let event = self.next(&span, at: &position) {
                taken += 1
                self.see(event, span)
            }
        }
        self.kept = self.events.last?.observation.isEnd == true ? [] : Array(bytes[position...])
        self.mostKept = max(self.mostKept, self.kept.count)
    }

    private func next(_ span: inout MutableRawSpan, at position: inout Int) -> ForwardingEvent? {
        if self.takesWholeMessages, let run = self.forwarder.nextWholeMessage(&span, at: &position) {
            return .frames(run)
        }
        return self.forwarder.next(&span, at: &position)
    }

    private func see(_ event: ForwardingEvent, _ span: borrowing MutableRawSpan) {
        switch event {
        case .frames(let run):
            self.forwarded += [UInt8](span.bytes.extracting(run.range))
            self.runs.append(run)
            if run.endsFrame { self.boundaries.append(self.forwarded.count) }
        case .ping(let payload): self.see(.ping(payload))
        case .pong(let payload): self.see(.pong(payload))
        case .close(let code, let reason): self.see(.close(code?.rawValue, reason: reason))
        case .violation(let violation): self.see(.violation(violation.rule))
        }
    }

    private func see(_ observation: Observation) {
        self.events.append(Event(observation: observation, place: self.forwarded.count))
    }
}
