import ByteKernels
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// Plays the transport that feeds `StreamToMessages`: keeps unconsumed bytes and offers them again; assembles messages.
struct StreamReader {
    private var machine: StreamToMessages
    private var kept: [UInt8] = []
    private var current: [UInt8]?
    private(set) var messages: [[UInt8]] = []
    private(set) var kinds: [MessageKind] = []
    private(set) var violation: FramingViolation?
    private(set) var mostHeldBack = 0
    /// Bytes taken in by the last `feed`.
    private(set) var lastFed = 0

    init(_ framing: Framing, messageLimit: Int = .max) {
        self.machine = StreamToMessages(framing, messageLimit: messageLimit)
    }

    var isBetweenMessages: Bool { self.current == nil }

    mutating func feed(_ bytes: [UInt8], inPiecesOf size: Int) {
        for start in stride(from: 0, to: bytes.count, by: size) {
            self.feed(Array(bytes[start..<min(start + size, bytes.count)]))
        }
    }

    mutating func feed(_ bytes: [UInt8]) {
        self.lastFed = bytes.count
        let input = self.kept + bytes
        var offset = 0
        while self.violation == nil {
            let step = input.withRawSpan { self.machine.next($0, at: &offset) }
            guard step != .exhausted else { break }
            self.take(step, input)
        }
        self.kept = Array(input[offset...])
        if self.violation == nil { self.mostHeldBack = max(self.mostHeldBack, self.kept.count) }
    }

    mutating func finish() {
        guard self.violation == nil, let step = self.machine.finish() else { return }
        self.take(step, [])
    }

    private mutating func take(_ step: FramingStep, _ input: [UInt8]) {
        switch step {
        case .exhausted: break
        case .chunk(let range, let mark): self.append(Array(input[range]), mark)
        case .replacement(let bytes, let mark): self.append(bytes, mark)
        case .violation(let violation): self.violation = violation
        }
    }

    private mutating func append(_ bytes: [UInt8], _ mark: ChunkPosition) {
        // A chunk that begins a message inside another, or continues none, would be lost on the wire: recorded as a
        // message of 0xEE.
        if mark.startsMessage != (self.current == nil) { self.messages.append([0xEE]) }
        let message = (self.current ?? []) + bytes
        self.current = mark.endsMessage ? nil : message
        guard mark.endsMessage else { return }
        self.messages.append(message)
        self.kinds.append(mark.kind)
    }
}
