import CommandLineText
import ControlAPI
import ControlClient

/// Follows a drain to its end; a signal cancels it.
struct DrainWatch {
    private static let interval = Duration.milliseconds(200)

    let desk: ControlDesk
    let id: String

    private var path: String { "/v1/drains/\(ControlRequest.segment(self.id))" }

    func untilEnd(_ interruption: Interruption) async throws {
        try await interruption.guarding {
            try await self.follow()
        } cancelled: {
            _ = try await self.desk.session.send(ControlRequest(.delete, self.path))
            throw ControlFailure(.cancelled, "the drain \(self.id) is cancelled; what was told to end, ends")
        }
    }

    private func follow() async throws {
        while true {
            let answer = try await self.desk.session.send(ControlRequest(.get, self.path))
            let drain = try answer.decoded(Drain.self)
            let isOver = drain.endedAt != nil
            if isOver || self.desk.printsJSON {
                try await self.finish(drain, answer, isOver: isOver)
            } else if Terminal.showsOutput {
                let line = CellText.cut(Self.text(drain), cells: Terminal.columns)
                try await self.desk.write(Array("\r\(line)\u{1B}[K".utf8))
            }
            if isOver { return }
            try await Task.sleep(for: Self.interval)
        }
    }

    private func finish(_ drain: Drain, _ answer: ControlAnswer, isOver: Bool) async throws {
        if self.desk.printsJSON { return try await self.desk.print(json: answer.body) }
        try await self.desk.print((Terminal.showsOutput ? "\r\u{1B}[K" : "") + Self.text(drain))
    }

    /// What is going to happen.
    static func plan(_ drain: Drain) -> String {
        let end = drain.lastToldAt.map { ", the last is told at \($0)" } ?? ""
        let deadline = drain.deadlineAt.map { ", what is left is reset at \($0)" } ?? ""
        return TerminalText.line("drain \(drain.id): \(drain.total) connections\(end)\(deadline)")
    }

    private static func text(_ drain: Drain) -> String {
        TerminalText.line(
            "drain \(drain.id) \(drain.state): \(drain.told) of \(drain.total) told, \(drain.remaining) remain, \(drain.cut) reset"
        )
    }
}
