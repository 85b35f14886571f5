import CommandLineText

/// Messages and bytes on standard output, everything else on standard error.
struct PipeFace: ConnectFace {
    let streams: StandardStreams
    /// Whether an end of line stands behind each message.
    let endsMessages: Bool
    /// The end of a line of a stream.
    let lineEnd: [UInt8]
    let voice: ConnectPlan.Voice
    /// Standard output is a terminal, which must not be steered by the peer.
    let guardsTerminal: Bool

    func tell(_ event: ConnectEvent) async throws(ConnectFailure) {
        switch event {
        case .text(let text): try await self.write(Array(text.utf8), end: self.endsMessages ? [0x0A] : [])
        case .data(let bytes): try await self.write(bytes, end: self.endsMessages ? [0x0A] : [])
        case .bytes(let bytes): try await self.write(bytes, end: [])
        case .line(let line): try await self.write(line, end: self.lineEnd)
        case .failed(let failure): Ending.say("sluice: \(failure.line)")
        case .connecting, .opened, .pong, .ended, .closed:
            guard self.voice == .verbose else { return }
            for line in EventText.notes(event) { Ending.say("* \(line)") }
        }
    }

    func note(_ text: String) async {
        if self.voice != .quiet { Ending.say("sluice: \(text)") }
    }

    private func write(_ bytes: [UInt8], end: [UInt8]) async throws(ConnectFailure) {
        let safe = self.guardsTerminal ? Array(TerminalText.safe(String(decoding: bytes, as: UTF8.self)).utf8) : bytes
        try await self.streams.write(safe + end)
    }
}
