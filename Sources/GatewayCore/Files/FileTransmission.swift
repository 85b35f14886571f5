import ByteKernels
import StreamTransport

/// Sends the parts of a file, as much in each turn as the connection's share allows and the client takes.
final class FileTransmission: HTTPBodySource {
    /// Most bytes given to the kernel in one call: between two calls the share of the turn is checked.
    private static let piece = 256 << 10

    private let plan: FilePlan
    /// Released at the end.
    private var exchange: PlainExchange?
    private var index = 0
    /// Bytes of the current part that were written.
    private var offset: Int64 = 0
    private var isScheduled = false

    init(_ plan: FilePlan, _ exchange: PlainExchange) {
        self.plan = plan
        self.exchange = exchange
    }

    func outputProgressed(_ exchange: PlainExchange) { self.advance() }

    func exchangeEnded() { self.exchange = nil }

    /// Writes until the client is behind, the share of the turn is used up, or everything is written.
    func advance() {
        guard !self.isScheduled else { return }
        while let exchange = self.exchange {
            guard self.index < self.plan.parts.count else { return exchange.finish() }
            guard !self.isBehind(exchange) else { return exchange.awaitProgress() }
            guard !exchange.loop.budgetIsSpent else {
                self.isScheduled = true
                return exchange.loop.inNextTurn(self)
            }
            guard self.writePiece(exchange) else { return }
        }
    }

    /// Where the kernel sends files directly, the next piece waits until the piece before has been sent, but not for the
    /// few bytes of a response's head.
    private func isBehind(_ exchange: PlainExchange) -> Bool {
        exchange.sendsFilesDirectly ? exchange.queuedBytes > Self.smallRest : exchange.isBehind
    }

    private static let smallRest = 4 << 10

    /// - Returns: whether to continue.
    private func writePiece(_ exchange: PlainExchange) -> Bool {
        switch self.plan.parts[self.index] {
        case .text(let bytes):
            bytes.withRawSpan { _ = exchange.write($0) }
            self.index += 1
        case .bytes(let range):
            let left = Int64(range.count) - self.offset
            guard left > 0 else {
                (self.index, self.offset) = (self.index + 1, 0)
                return true
            }
            let count = exchange.writeFile(
                self.plan.file, from: range.lowerBound + self.offset, atMost: Int(min(left, Int64(Self.piece))))
            guard count > 0 else { return self.failed(count, exchange) }
            self.offset += Int64(count)
        }
        return true
    }

    private func failed(_ result: Int, _ exchange: PlainExchange) -> Bool {
        let error = SystemError(Int32(truncatingIfNeeded: -result))
        // A broken connection reports its end itself.
        if error == .brokenPipe { return false }
        exchange.abort(
            result == 0 ? "the file became shorter while it was sent" : "the file cannot be read: \(error)")
        return false
    }
}

extension FileTransmission: TurnEndTarget {
    func turnEnded() {}

    func nextTurnBegan() {
        self.isScheduled = false
        self.advance()
    }
}
