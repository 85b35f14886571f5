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
