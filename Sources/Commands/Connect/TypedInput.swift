import CommandLineText
import SessionTasks

/// Lines from a keyboard.
struct TypedInput: ConnectInput {
    /// Input entries in order.
    private enum Entry: Sendable {
        case send(Outgoing)
        case close(code: UInt16?, reason: String)
    }

    /// Lines that wait because the peer does not read; more are refused.
    private static let waitingLimit = 64

    let session: ConnectSession
    let streams: StandardStreams
    let screen: Screen

    func feed() async {
        Terminal.takeKeys()
        await self.screen.begin()
        let (lines, sender) = AsyncStream.makeStream(
            of: Entry.self, bufferingPolicy: .bufferingOldest(Self.waitingLimit))
        Task { await self.send(lines) }
        while case .bytes(let bytes) = await self.streams.read() {
            for event in await self.screen.typed(bytes) {
                switch event {
                case .submitted(let line): await self.entered(line, sender)
                case .interrupted: self.session.happened(.interrupted)
                case .endOfInput:
                    // Pending input is sent first; keys are still read, for Ctrl-C.
                    sender.finish()
                case .suspended:
                    await self.screen.end()
                    Terminal.suspend()
                    await self.screen.begin()
                case .changed, .cleared, .refused: break
                }
            }
        }
        sender.finish()
    }

    /// Apart from the keys, which have to be heard while a peer does not read.
    private func send(_ entries: AsyncStream<Entry>) async {
        do throws(TaskFailure) {
            for await entry in entries {
                switch entry {
                case .send(let outgoing): try await self.session.link.send([outgoing])
                case .close(let code, let reason): return self.session.close(code: code, reason: reason)
                }
            }
        } catch {}
        self.session.happened(.inputEnded)
    }

    private func entered(_ line: String, _ sender: AsyncStream<Entry>.Continuation) async {
        do throws(CommandError) {
            switch try TypedLine(line) {
            case .message(let text): await self.queue(.send(self.outgoing(text)), sender)
            case .command(.binary(let bytes)): await self.queue(.send(.data(bytes)), sender)
            case .command(.close(let code, let reason)): await self.queue(.close(code: code, reason: reason), sender)
            case .command(.ping(let payload)): self.ping(payload)
            case .command(.status): await self.status()
            case .command(.help):
                for (form, effect) in SlashCommand.summary {
                    await self.session.face.note(
                        form + String(repeating: " ", count: max(1, 24 - form.count)) + effect)
                }
            }
        } catch {
            await self.session.face.note(TerminalText.line(error.description))
        }
    }

    private func outgoing(_ text: String) -> Outgoing {
        switch self.session.plan.carriage {
        case .textLines: .text(text)
        case .binaryLines: .data(Array(text.utf8))
        case .bytes: .data(Array((self.session.plan.speaksWebSocket ? text : text + "\n").utf8))
        case .streamLines(let end): .data(Array((text + end).utf8))
        }
    }

    private func queue(_ entry: Entry, _ sender: AsyncStream<Entry>.Continuation) async {
        switch sender.yield(entry) {
        case .dropped:
            await self.session.face.note("not sent: \(Self.waitingLimit) lines wait already, the peer does not read")
        case .terminated: await self.session.face.note("not sent: the input was ended with Ctrl-D")
        case .enqueued: break
        @unknown default: break
        }
    }

    private func ping(_ payload: String) {
        Task {
            do throws(TaskFailure) {
                let time = try await self.session.link.ping(payload)
                try? await self.session.face.tell(.pong(payload: payload, roundTrip: time))
            } catch {
                await self.session.face.note("no pong: \(error)")
            }
        }
    }

    private func status() async {
        for line in self.session.link.facts.lines { await self.session.face.note(TerminalText.line(line)) }
        let counted = self.session.link.closingFacts(by: .us)
        await self.session.face.note("\(counted.bytesReceived) bytes received, \(counted.bytesSent) sent")
    }
}

/// Standard input that is not a terminal. Each piece is sent before the next is read.
struct PipedInput: ConnectInput {
    let session: ConnectSession
    let streams: StandardStreams

    func feed() async {
        var pieces = OutgoingPieces(plan: self.session.plan)
        do {
            while true {
                switch await self.streams.read() {
                case .bytes(let bytes): try await self.session.link.send(try pieces.pieces(bytes))
                case .end:
                    try await self.session.link.send(try pieces.lastPieces())
                    return self.session.happened(.inputEnded)
                case .failed(let reason):
                    throw ConnectFailure(.inputOrOutput, "standard input: \(reason)")
                }
            }
        } catch let failure as ConnectFailure {
            self.session.fail(failure)
        } catch {
            // The connection accepts no more input; its own end says why.
            self.session.happened(.inputEnded)
        }
    }
}

/// Formats received data: a stream in lines if requested.
struct ReceivedLines {
    private let wantsLines: Bool
    private let limit: Int
    private var splitter: LineSplitter

    init(plan: ConnectPlan) {
        self.wantsLines = !plan.speaksWebSocket && (plan.writesLines || plan.terms.wantsOneAnswer)
        self.limit = plan.messageLimit
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    mutating func events(_ received: Received) throws(ConnectFailure) -> [ConnectEvent] {
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
                .outOfOrder, "a line of the peer is longer than \(self.limit) bytes",
                remedy: "leave --lines out to take its bytes as they come")
        }
    }

    func isAnswer(_ event: ConnectEvent) -> Bool {
        switch event {
        case .text, .data, .line: true
        default: false
        }
    }
}
