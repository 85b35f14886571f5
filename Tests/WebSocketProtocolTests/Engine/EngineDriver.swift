import ByteKernels
import WebSocketProtocol

/// Feeds an engine like a transport: unconsumed bytes are offered again before the following ones, and nothing is offered
/// again if all were consumed.
final class EngineDriver {
    private var engine: WebSocketEngine
    private let share: DeflateContext
    /// Pulls whole messages first, as a task does.
    private let takesWholeMessages: Bool
    private var kept: [UInt8] = []
    private(set) var seen: [Observation] = []
    /// The payload length of each event.
    private(set) var sizes: [Int] = []
    /// The most unconsumed bytes.
    private(set) var mostKept = 0

    init(_ setting: EngineSetting, share: DeflateContext = DeflateContext(), takesWholeMessages: Bool = false) {
        self.takesWholeMessages = takesWholeMessages
        self.engine = WebSocketEngine(role: setting.role, maximumMessageSize: setting.maximumMessageSize)
        self.share = share
        if let deflate = setting.deflate {
            self.engine.startDeflate(deflate, policy: setting.policy, context: share)
        }
    }

    /// The observations of an engine for a whole stream.
    static func observe(
        _ bytes: [UInt8], by setting: EngineSetting, fed feeding: Feeding, takesWholeMessages: Bool = false
    ) -> [Observation] {
        let driver = EngineDriver(setting, takesWholeMessages: takesWholeMessages)
        for piece in feeding.pieces(of: bytes) { driver.feed(piece) }
        return driver.seen
    }

    func feed(_ piece: [UInt8]) {
        self.kept += piece
        self.offer(mostEvents: .max)
    }

    /// Pulls at most so many events, then stops like a full consumer.
    /// - Returns: whether bytes are left, to be offered when the consumer continues.
    @discardableResult
    func offer(mostEvents: Int) -> Bool {
        var position = 0
        var events = 0
        var bytes = self.kept
        bytes.withMutableRawSpan { span in
            while events < mostEvents, self.takeNext(&span, at: &position) { events += 1 }
        }
        // Bytes after a Close or a violation have no meaning: a transport discards them.
        self.kept = self.seen.last?.isEnd == true ? [] : Array(bytes[position...])
        self.mostKept = max(self.mostKept, self.kept.count)
        return !self.kept.isEmpty
    }

    private func takeNext(_ span: inout MutableRawSpan, at position: inout Int) -> Bool {
        if self.takesWholeMessages, let message = self.engine.nextWholeMessage(&span, at: &position) {
            self.sizes.append(message.payload.count)
            self.seen.see(
                .data(
                    message.kind, [UInt8](span.bytes.extracting(message.payload)), startsMessage: true,
                    endsFrame: true, endsMessage: true))
            return true
        }
        guard let event = self.engine.nextEvent(&span, at: &position) else { return false }
        self.see(event, span)
        return true
    }

    /// Feeds without pulling: `offer` pulls.
    func arrive(_ piece: [UInt8]) {
        self.kept += piece
    }

    private func see(_ event: WebSocketEvent, _ span: borrowing MutableRawSpan) {
        switch event {
        case .data(let chunk):
            let bytes: [UInt8]
            switch chunk.payload {
            case .received(let range): bytes = [UInt8](span.bytes.extracting(range))
            case .inflated(let count): bytes = self.share.withInflated(count) { [UInt8]($0) }
            }
            self.sizes.append(bytes.count)
            self.seen.see(
                .data(
                    chunk.kind, bytes, startsMessage: chunk.startsMessage, endsFrame: chunk.endsFrame,
                    endsMessage: chunk.endsMessage))
        case .ping(let payload): self.seen.see(.ping(payload))
        case .pong(let payload): self.seen.see(.pong(payload))
        case .close(let code, let reason): self.seen.see(.close(code?.rawValue, reason: reason))
        case .violation(let violation): self.seen.see(.violation(violation.rule))
        }
    }
}
