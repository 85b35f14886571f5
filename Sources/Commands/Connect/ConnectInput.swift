import CommandLineText
import SessionTasks

/// Source of the data to send.
protocol ConnectInput: Sendable {
    /// Sends until the input ends or the connection accepts no more data; then notifies the session.
    func feed() async
}

/// Input from an interactive terminal: messages and slash commands.
struct TerminalInput: ConnectInput {
    /// A queued action. Closing waits for the messages before it.
    private enum Entry: Sendable {
        case send(OutgoingItem)
        case close(code: UInt16?, reason: String)
    }

    /// Maximum number of lines queued while the peer does not read; more are rejected.
    private static let queueLimit = 64

    let session: ConnectSession
    let streams: StandardStreams
    let screen: Screen

    func feed() async {
        Terminal.enterRawMode()
        await self.screen.show()
        let (lines, sender) = AsyncStream.makeStream(
            of: Entry.self, bufferingPolicy: .bufferingOldest(Self.queueLimit))
        Task { await self.send(lines) }
        while case .bytes(let bytes) = await self.streams.read() {
            for event in await self.screen.handleInput(bytes) {
                switch event {
                case .submitted(let line): await self.submit(line, sender)
                case .interrupted: self.session.post(.interrupted)
                case .endOfInput:
                    // Queued input is sent first; keys are still read, for Ctrl-C.
                    sender.finish()
                case .suspended:
                    await self.screen.hide()
                    Terminal.suspend()
                    await self.screen.show()
                case .changed, .cleared, .refused: break
                }
            }
        }
        sender.finish()
    }

    /// Runs concurrently with reading keys, which must work while the peer does not read.
    private func send(_ entries: AsyncStream<Entry>) async {
        do throws(TaskFailure) {
            for await entry in entries {
                switch entry {
                case .send(let outgoing): try await self.session.link.send([outgoing])
                case .close(let code, let reason): return self.session.close(code: code, reason: reason)
                }
            }
        } catch {}
        self.session.post(.inputEnded)
    }

    private func submit(_ line: String, _ sender: AsyncStream<Entry>.Continuation) async {
        do throws(CommandError) {
            switch try TypedLine(line) {
            case .message(let text): await self.queue(.send(self.outgoing(text)), sender)
            case .command(.binary(let bytes)): await self.queue(.send(.data(bytes)), sender)
            case .command(.close(let code, let reason)): await self.queue(.close(code: code, reason: reason), sender)
            case .command(.ping(let payload)): self.ping(payload)
            case .command(.status): await self.status()
            case .command(.help):
                for (form, effect) in SlashCommand.summary {
                    await self.session.output.note(
                        form + String(repeating: " ", count: max(1, 24 - form.count)) + effect)
                }
            }
        } catch {
            await self.session.output.note(TerminalText.singleLine(error.description))
        }
    }

    private func outgoing(_ text: String) -> OutgoingItem {
        switch self.session.plan.framing {
        case .textLines: .text(text)
        case .binaryLines: .data(Array(text.utf8))
        case .bytes: .data(Array((self.session.plan.speaksWebSocket ? text : text + "\n").utf8))
        case .streamLines(let end): .data(Array((text + end).utf8))
        }
    }

    private func queue(_ entry: Entry, _ sender: AsyncStream<Entry>.Continuation) async {
        switch sender.yield(entry) {
        case .dropped:
            await self.session.output.note(
                "not sent: \(Self.queueLimit) lines are queued already because the peer does not read")
        case .terminated: await self.session.output.note("not sent: the input was ended with Ctrl-D")
        case .enqueued: break
        @unknown default: break
        }
    }

    private func ping(_ payload: String) {
        Task {
            do throws(TaskFailure) {
                let time = try await self.session.link.ping(payload)
                try? await self.session.output.write(.pong(payload: payload, roundTrip: time))
            } catch {
                await self.session.output.note("no pong: \(error)")
            }
        }
    }

    private func status() async {
        for line in self.session.link.metadata.lines { await self.session.output.note(TerminalText.singleLine(line)) }
        let counted = self.session.link.closingMetadata(by: .us)
        await self.session.output.note("\(counted.bytesReceived) bytes received, \(counted.bytesSent) sent")
    }
}

/// Standard input that is not a terminal. Each piece is sent before the next is read.
struct PipeInput: ConnectInput {
    let session: ConnectSession
    let streams: StandardStreams

    func feed() async {
        var pieces = InputSplitter(plan: self.session.plan)
        do {
            while true {
                switch await self.streams.read() {
                case .bytes(let bytes): try await self.session.link.send(try pieces.pieces(bytes))
                case .end:
                    try await self.session.link.send(try pieces.lastPieces())
                    return self.session.post(.inputEnded)
                case .failed(let reason):
                    throw ConnectFailure(.inputOrOutput, "standard input: \(reason)")
                }
            }
        } catch let failure as ConnectFailure {
            self.session.fail(failure)
        } catch {
            // The connection accepts no more input and reports the reason itself.
            self.session.post(.inputEnded)
        }
    }
}

/// Splits standard input into messages or writes.
private struct InputSplitter {
    private let plan: ConnectPlan
    private var splitter: LineSplitter
    /// The whole input, if it is one message.
    private var whole: [UInt8] = []

    init(plan: ConnectPlan) {
        self.plan = plan
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    private var isOneMessage: Bool { self.plan.speaksWebSocket && self.plan.settings.expectsSingleReply }

    mutating func pieces(_ bytes: [UInt8]) throws(ConnectFailure) -> [OutgoingItem] {
        guard !self.isOneMessage else {
            self.whole += bytes
            // A trailing CRLF does not count.
            guard self.whole.count <= self.plan.messageLimit + 2 else { throw self.overflow("standard input") }
            return []
        }
        guard self.plan.framing != .bytes else { return [.data(bytes)] }
        var pieces: [OutgoingItem] = []
        for line in try self.cut({ splitter throws(LineSplitter.Overflow) in try splitter.lines(bytes) }) {
            pieces.append(try self.piece(line))
        }
        return pieces
    }

    /// At the end of the input.
    mutating func lastPieces() throws(ConnectFailure) -> [OutgoingItem] {
        if self.isOneMessage {
            var bytes = self.whole
            if self.plan.framing != .bytes, bytes.last == 0x0A {
                bytes.removeLast()
                if bytes.last == 0x0D { bytes.removeLast() }
            }
            guard bytes.count <= self.plan.messageLimit else { throw self.overflow("standard input") }
            return [try self.piece(bytes)]
        }
        let rest = try self.cut { splitter throws(LineSplitter.Overflow) in try splitter.finish() }
        guard let rest else { return [] }
        // A last line without an end is sent without one.
        if case .streamLines = self.plan.framing { return [.data(rest)] }
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

    private func piece(_ line: [UInt8]) throws(ConnectFailure) -> OutgoingItem {
        switch self.plan.framing {
        case .textLines:
            guard let text = String(validating: line, as: UTF8.self) else {
                throw ConnectFailure(
                    .unsendableInput, "standard input is not valid UTF-8, which a text message requires",
                    remedy: "use --binary")
            }
            return .text(text)
        case .binaryLines, .bytes: return .data(line)
        case .streamLines(let end): return .data(line + Array(end.utf8))
        }
    }

    private func overflow(_ what: String) -> ConnectFailure {
        let isText = if case .textLines = self.plan.framing { true } else { false }
        return ConnectFailure(
            .unsendableInput, "\(what) is longer than \(self.plan.messageLimit) bytes",
            remedy: isText ? "raise --max-message-size, or use --binary" : "raise --max-message-size")
    }
}
