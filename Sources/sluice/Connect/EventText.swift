import CommandLineText

/// Events in words, for people.
enum EventText {
    /// Lines about the connection itself; none for what it carries. All of them are safe to print.
    static func notes(_ event: ConnectEvent) -> [String] {
        let lines: [String] =
            switch event {
            case .connecting(let url): ["connecting to \(url)"]
            case .opened(let facts): facts.lines
            case .pong(let payload, let time):
                ["pong\(payload.isEmpty ? "" : " \"\(payload)\"") after \(self.milliseconds(time)) ms"]
            case .ended: ["the peer has finished sending"]
            case .closed(let facts): [facts.line]
            case .failed(let failure): [failure.line]
            case .text, .data, .bytes, .line: []
            }
        return lines.map { TerminalText.line($0, limit: 1000) }
    }

    /// To a tenth.
    static func milliseconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        let tenths = seconds * 10_000 + attoseconds / 100_000_000_000_000
        return Double(tenths) / 10
    }
}
