import CommandLineText

/// Output of `connect`: received data and events of the connection.
protocol ConnectOutput: Sendable {
    /// Returns when the events are written, so that a slow reader applies backpressure to the peer.
    func write(_ events: [ConnectEvent]) async throws(ConnectFailure)
    /// Prints a line that is not an event: the response to a command, or a warning. Must be sanitized.
    func note(_ text: String) async
}

extension ConnectOutput {
    func write(_ event: ConnectEvent) async throws(ConnectFailure) {
        try await self.write([event])
    }
}

/// Output to an interactive terminal: received data after `<`, events of the connection after `*`.
struct TerminalOutput: ConnectOutput {
    let screen: Screen
    let verbosity: ConnectPlan.Verbosity

    func write(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        for event in events { await self.show(event) }
    }

    private func show(_ event: ConnectEvent) async {
        switch event {
        case .text(let text): await self.received(text)
        case .data(let bytes):
            let more = bytes.count > 256 ? " …" : ""
            await self.received("(\(bytes.count) bytes) \(HexText.text(bytes.prefix(256)))\(more)")
        case .bytes(let bytes): await self.screen.print(stream: bytes, mark: "< ", .green)
        case .line(let line): await self.received(String(decoding: line, as: UTF8.self))
        case .failed(let failure): await self.screen.print("sluice: \(failure.line)", mark: "", .red)
        case .opened(let metadata):
            if self.verbosity == .verbose { return await self.notes(event) }
            guard self.verbosity == .normal else { return }
            let subprotocol = metadata.subprotocol.map { ", subprotocol \(TerminalText.singleLine($0))" } ?? ""
            await self.note(
                "connected to \(metadata.peerAddress ?? metadata.url)\(subprotocol); /help lists the commands")
        case .connecting: if self.verbosity == .verbose { await self.notes(event) }
        case .pong, .ended, .closed: if self.verbosity != .quiet { await self.notes(event) }
        }
    }

    func note(_ text: String) async {
        await self.screen.print(text, mark: "* ", .faint)
    }

    private func notes(_ event: ConnectEvent) async {
        for line in EventText.notes(event) { await self.note(line) }
    }

    private func received(_ text: String) async {
        await self.screen.print(TerminalText.sanitized(text), mark: "< ", .green)
    }
}

/// Output to a pipe: messages and bytes on standard output, everything else on standard error.
struct PipeOutput: ConnectOutput {
    let streams: StandardStreams
    /// Whether a newline is written after each message.
    let endsMessages: Bool
    /// Line terminator written after each line of a stream.
    let lineEnd: [UInt8]
    let verbosity: ConnectPlan.Verbosity
    /// Standard output is a terminal: escape sequences from the peer must not reach it.
    let guardsTerminal: Bool

    func write(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        var output: [UInt8] = []
        for event in events {
            switch event {
            case .text(let text): output += self.safe(Array(text.utf8)) + (self.endsMessages ? [0x0A] : [])
            case .data(let bytes): output += self.safe(bytes) + (self.endsMessages ? [0x0A] : [])
            case .bytes(let bytes): output += self.safe(bytes)
            case .line(let line): output += self.safe(line) + self.lineEnd
            case .failed(let failure): ErrorReporter.print("sluice: \(failure.line)")
            case .connecting, .opened, .pong, .ended, .closed:
                guard self.verbosity == .verbose else { continue }
                for line in EventText.notes(event) { ErrorReporter.print("* \(line)") }
            }
        }
        if !output.isEmpty { try await self.streams.write(output) }
    }

    func note(_ text: String) async {
        if self.verbosity != .quiet { ErrorReporter.print("sluice: \(text)") }
    }

    private func safe(_ bytes: [UInt8]) -> [UInt8] {
        guard self.guardsTerminal else { return bytes }
        return Array(TerminalText.sanitized(String(decoding: bytes, as: UTF8.self)).utf8)
    }
}

/// Writes each event as a line of JSON on standard output, and failures on standard error too.
struct JSONOutput: ConnectOutput {
    let streams: StandardStreams
    let verbosity: ConnectPlan.Verbosity

    func write(_ events: [ConnectEvent]) async throws(ConnectFailure) {
        var lines: [UInt8] = []
        for event in events {
            if case .failed(let failure) = event { ErrorReporter.print("sluice: \(failure.line)") }
            if case .connecting = event { continue }
            do {
                lines += try EventRecord(event).encoded()
            } catch {
                throw ConnectFailure(.inputOrOutput, "cannot encode an event as JSON: \(error)")
            }
        }
        try await self.streams.write(lines)
    }

    func note(_ text: String) async {
        if self.verbosity != .quiet { ErrorReporter.print("sluice: \(text)") }
    }
}
