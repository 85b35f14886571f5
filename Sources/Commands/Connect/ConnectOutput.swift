import CommandLineText

/// How `connect` shows what happens.
protocol ConnectOutput: Sendable {
    /// Returns when the events are written, so that a slow reader slows the peer.
    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure)
    /// A line that is no event: an answer to a command, a warning. Safe to print.
    func note(_ text: String) async
}

extension ConnectOutput {
    func tell(_ event: ConnectEvent) async throws(ConnectFailure) {
        try await self.tell([event])
    }
}

/// For a person at a terminal: received data behind `<`, events of the connection behind `*`.
struct TerminalOutput: ConnectOutput {
    let screen: Screen
    let voice: ConnectPlan.Voice

    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        for event in events { await self.show(event) }
    }

    private func show(_ event: ConnectEvent) async {
        switch event {
        case .text(let text): await self.received(text)
        case .data(let bytes):
            let more = bytes.count > 256 ? " …" : ""
            await self.received("(\(bytes.count) bytes) \(HexText.text(bytes.prefix(256)))\(more)")
        case .bytes(let bytes): await self.screen.print(stream: bytes, mark: "< ", .received)
        case .line(let line): await self.received(String(decoding: line, as: UTF8.self))
        case .failed(let failure): await self.screen.print("sluice: \(failure.line)", mark: "", .fault)
        case .opened(let facts):
            if self.voice == .verbose { return await self.notes(event) }
            guard self.voice == .normal else { return }
            let subprotocol = facts.subprotocol.map { ", subprotocol \(TerminalText.line($0))" } ?? ""
            await self.note("connected to \(facts.peerAddress ?? facts.url)\(subprotocol); /help lists the commands")
        case .connecting: if self.voice == .verbose { await self.notes(event) }
        case .pong, .ended, .closed: if self.voice != .quiet { await self.notes(event) }
        }
    }

    func note(_ text: String) async {
        await self.screen.print(text, mark: "* ", .note)
    }

    private func notes(_ event: ConnectEvent) async {
        for line in EventText.notes(event) { await self.note(line) }
    }

    private func received(_ text: String) async {
        await self.screen.print(TerminalText.safe(text), mark: "< ", .received)
    }
}

/// Messages and bytes on standard output, everything else on standard error.
struct PipeOutput: ConnectOutput {
    let streams: StandardStreams
    /// Whether a line end follows each message.
    let endsMessages: Bool
    /// The end of a line of a stream.
    let lineEnd: [UInt8]
    let voice: ConnectPlan.Voice
    /// Standard output is a terminal, which must not be steered by the peer.
    let guardsTerminal: Bool

    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        var output: [UInt8] = []
        for event in events {
            switch event {
            case .text(let text): output += self.safe(Array(text.utf8)) + (self.endsMessages ? [0x0A] : [])
            case .data(let bytes): output += self.safe(bytes) + (self.endsMessages ? [0x0A] : [])
            case .bytes(let bytes): output += self.safe(bytes)
            case .line(let line): output += self.safe(line) + self.lineEnd
            case .failed(let failure): Ending.say("sluice: \(failure.line)")
            case .connecting, .opened, .pong, .ended, .closed:
                guard self.voice == .verbose else { continue }
                for line in EventText.notes(event) { Ending.say("* \(line)") }
            }
        }
        if !output.isEmpty { try await self.streams.write(output) }
    }

    func note(_ text: String) async {
        if self.voice != .quiet { Ending.say("sluice: \(text)") }
    }

    private func safe(_ bytes: [UInt8]) -> [UInt8] {
        guard self.guardsTerminal else { return bytes }
        return Array(TerminalText.safe(String(decoding: bytes, as: UTF8.self)).utf8)
    }
}

/// Every event as a line of JSON on standard output; failures on standard error too.
struct JSONOutput: ConnectOutput {
    let streams: StandardStreams
    let voice: ConnectPlan.Voice

    func tell(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        var lines: [UInt8] = []
        for event in events {
            if case .failed(let failure) = event { Ending.say("sluice: \(failure.line)") }
            if case .connecting = event { continue }
            do {
                lines += try EventRecord(event).encoded()
            } catch {
                throw ConnectFailure(.inputOrOutput, "an event has no JSON: \(error)")
            }
        }
        try await self.streams.write(lines)
    }

    func note(_ text: String) async {
        if self.voice != .quiet { Ending.say("sluice: \(text)") }
    }
}
