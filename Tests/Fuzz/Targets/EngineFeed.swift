import ByteKernels
import WebSocketProtocol

/// Feeds an engine like a transport: unconsumed bytes are offered again before the following ones.
final class EngineFeed {
    private var engine: WebSocketEngine
    private let share = DeflateContext()
    private var kept: [UInt8] = []
    private(set) var log = FrameLog()
    /// The most unconsumed bytes.
    private(set) var mostKept = 0
    /// Most bytes that one event inflated.
    private(set) var mostInflated = 0

    init(_ setting: FrameSetting) {
        self.engine = WebSocketEngine(role: setting.receiver, maximumMessageSize: setting.limit)
        if let deflate = setting.deflate {
            self.engine.startDeflate(deflate, policy: DeflatePolicy(), context: self.share)
        }
    }

    func feed(_ piece: [UInt8]) {
        var bytes = self.kept + piece
        var position = 0
        bytes.withMutableRawSpan { span in
            while let event = self.engine.nextEvent(&span, at: &position) { self.see(event, span) }
        }
        self.kept = self.log.hasEnded ? [] : Array(bytes[position...])
        self.mostKept = max(self.mostKept, self.kept.count)
    }

    private func see(_ event: WebSocketEvent, _ span: borrowing MutableRawSpan) {
        switch event {
        case .data(let chunk):
            switch chunk.payload {
            case .received(let range): self.log.add(chunk, [UInt8](span.bytes.extracting(range)))
            case .inflated(let count):
                self.mostInflated = max(self.mostInflated, count)
                self.log.add(chunk, self.share.withInflated(count) { [UInt8]($0) })
            }
        case .ping(let payload): self.log.add(.ping(payload))
        case .pong(let payload): self.log.add(.pong(payload))
        case .close(let code, let reason): self.log.add(.close(code, reason: reason))
        case .violation(let violation): self.log.add(.violation(violation))
        }
    }
}
