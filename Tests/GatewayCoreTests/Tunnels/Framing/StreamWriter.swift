import ByteKernels
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// Plays the transport that follows `MessagesToStream`: splits messages into chunks and performs the actions.
struct StreamWriter {
    private var machine: MessagesToStream
    private let kind: MessageKind
    private(set) var stream: [UInt8] = []
    private(set) var violation: FramingViolation?

    init(_ framing: Framing, messageLimit: Int = .max, kind: MessageKind? = nil) {
        self.machine = MessagesToStream(framing, messageLimit: messageLimit)
        self.kind = kind ?? framing.messageKind
    }

    mutating func send(_ message: [UInt8], inChunksOf size: Int) {
        var start = 0
        repeat {
            let end = min(start + size, message.count)
            let mark = ChunkPosition(self.kind, startsMessage: start == 0, endsMessage: end == message.count)
            self.send(Array(message[start..<end]), mark)
            start = end
        } while start < message.count
    }

    private mutating func send(_ chunk: [UInt8], _ mark: ChunkPosition) {
        var made: [UInt8] = []
        switch chunk.withRawSpan({ self.machine.take($0, mark, into: &made) }) {
        case .unchanged: self.stream += chunk + made
        case .rewritten: self.stream += made
        case .violation(let violation): self.violation = violation
        }
    }
}
