import CommandLineText

/// Turns standard input into what is sent.
struct OutgoingPieces {
    private let plan: ConnectPlan
    private var splitter: LineSplitter
    /// All of the input, where it is one message.
    private var whole: [UInt8] = []

    init(plan: ConnectPlan) {
        self.plan = plan
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    private var isOneMessage: Bool { self.plan.speaksWebSocket && self.plan.terms.wantsOneAnswer }

    mutating func pieces(_ bytes: [UInt8]) throws(ConnectFailure) -> [Outgoing] {
        guard !self.isOneMessage else {
            self.whole += bytes
            // An end of line at the very end does not count.
            guard self.whole.count <= self.plan.messageLimit + 2 else { throw self.overflow("standard input") }
            return []
        }
        guard self.plan.carriage != .bytes else { return [.data(bytes)] }
        var pieces: [Outgoing] = []
        for line in try self.cut({ splitter throws(LineSplitter.Overflow) in try splitter.lines(bytes) }) {
            pieces.append(try self.piece(line))
        }
        return pieces
    }

    /// At the end of the input.
    mutating func lastPieces() throws(ConnectFailure) -> [Outgoing] {
        if self.isOneMessage {
            var bytes = self.whole
            if self.plan.carriage != .bytes, bytes.last == 0x0A {
                bytes.removeLast()
                if bytes.last == 0x0D { bytes.removeLast() }
            }
            guard bytes.count <= self.plan.messageLimit else { throw self.overflow("standard input") }
            return [try self.piece(bytes)]
        }
        let rest = try self.cut { splitter throws(LineSplitter.Overflow) in try splitter.finish() }
        guard let rest else { return [] }
        // What has no end of line is sent without one.
        if case .streamLines = self.plan.carriage { return [.data(rest)] }
        return [try self.piece(rest)]
    }

    private mutating func cut<Value>(
        _ work: (inout LineSplitter) throws(LineSplitter.Overflow) -> Value
    ) throws(ConnectFailure) -> Value {
        do throws(LineSplitter.Overflow) {
            return try work(&self.splitter)
        } catch {
            throw self.overflow("a line of standard input")
        }
    }

    private func piece(_ line: [UInt8]) throws(ConnectFailure) -> Outgoing {
        switch self.plan.carriage {
        case .textLines:
            guard let text = String(validating: line, as: UTF8.self) else {
                throw ConnectFailure(
                    .unsendableInput, "standard input is not UTF-8, as a text message has to be",
                    remedy: "send it with --binary")
            }
            return .text(text)
        case .binaryLines, .bytes: return .data(line)
        case .streamLines(let end): return .data(line + Array(end.utf8))
        }
    }

    private func overflow(_ what: String) -> ConnectFailure {
        ConnectFailure(
            .unsendableInput, "\(what) is longer than \(self.plan.messageLimit) bytes",
            remedy: "raise --max-message-size, or send pieces with --binary")
    }
}
