import CommandLineText

/// For a person at a terminal: what comes behind `<`, what is told of the connection behind `*`.
struct TerminalFace: ConnectFace {
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
