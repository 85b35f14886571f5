import CommandLineText
import SessionTasks

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
            await self.session.output.note("not sent: \(Self.queueLimit) lines are queued already because the peer does not read")
        case .terminated: await self.session.output.note("not sent: the input was ended with Ctrl-D")
        case .enqueued: break
        @unknown default: break
        }
    }

    private func ping(_ payload: String) {
        Task {
            do throws(TaskFailure) {
                let time = try await self.session.link.ping(payload)
                try? await self.session.output.tell(.pong(payload: payload, roundTrip: time))
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

/// Turns received data into events, splitting a stream into lines if requested.
struct ReceivedFormatter {
    private let wantsLines: Bool
    private let limit: Int
    private var splitter: LineSplitter

    init(plan: ConnectPlan) {
        self.wantsLines = !plan.speaksWebSocket && (plan.writesLines || plan.settings.expectsSingleReply)
        self.limit = plan.messageLimit
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    mutating func events(_ received: ReceivedItem) throws(ConnectFailure) -> [ConnectEvent] {
        do throws(LineSplitter.Overflow) {
            switch received {
            case .text(let text): return [.text(text)]
            case .data(let bytes): return [.data(bytes)]
            case .bytes(let bytes):
                return self.wantsLines ? try self.splitter.lines(bytes).map { .line($0) } : [.bytes(bytes)]
            case .end: return try self.splitter.finish().map { [.line($0)] } ?? []
            }
        } catch {
            throw ConnectFailure(
                .outOfOrder, "the peer sent a line longer than \(self.limit) bytes",
                remedy: "remove --lines to write bytes as they arrive")
        }
    }

    func isReply(_ event: ConnectEvent) -> Bool {
        switch event {
        case .text, .data, .line: true
        default: false
        }
    }
}
