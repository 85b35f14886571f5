import CommandLineText
import ControlAPI
import ControlClient
import Foundation

/// `sluice ls --watch`: the list, drawn anew again and again.
struct ConnectionWatch {
    let desk: ControlDesk
    let listing: ConnectionListing
    let interval: Duration

    private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    /// On a terminal in place; elsewhere one list below the other.
    private var drawsInPlace: Bool { Terminal.showsOutput && !self.desk.printsJSON }

    func untilInterrupted() async throws {
        // The end takes only as long as the terminal takes what is left.
        let signals = try ProcessSignals(patience: .seconds(3))
        let watching = Task { try await self.watch() }
        let listening = Task {
            for await _ in signals.wishes { watching.cancel() }
        }
        if self.drawsInPlace { try await self.desk.write(Array(Self.enter.utf8)) }
        let result = await watching.result
        listening.cancel()
        if self.drawsInPlace { try? await self.desk.write(Array(Self.leave.utf8)) }
        do {
            try result.get()
        } catch is CancellationError {
            // The end that was asked for.
        } catch let failure as ControlFailure where failure.kind == .cancelled {
        }
    }

    private func watch() async throws {
        var lines: [String] = []
        var isFirst = true
        while true {
            do throws(ControlFailure) {
                lines = try await self.round()
            } catch {
                // Once it was there, it may come back.
                guard !isFirst, self.drawsInPlace, [.noConnection, .later].contains(error.kind) else { throw error }
                try await self.draw(lines, status: error.text)
                try await Task.sleep(for: self.interval)
                continue
            }
            isFirst = false
            if self.drawsInPlace {
                try await self.draw(lines, status: nil)
            } else if !lines.isEmpty {
                try await self.desk.print(lines + [""])
            }
            try await Task.sleep(for: self.interval)
        }
    }

    /// - Returns: the lines of one list; none where it was written as JSON.
    private func round() async throws(ControlFailure) -> [String] {
        var listing = self.listing
        if self.drawsInPlace {
            let rows = max(1, Terminal.rows - 3)
            listing.limit = min(listing.limit ?? rows, rows)
        }
        var pages = listing.pages(of: self.desk.session)
        var lines: [String] = []
        while let (answer, page) = try await pages.next() {
            guard !self.desk.printsJSON else {
                do {
                    try await self.desk.print(json: answer.body)
                } catch {
                    throw ControlFailure(.cancelled, "\(error)")
                }
                continue
            }
            let table = ConnectionTable(page.items).table
            let all = table.lines(cells: self.desk.cells, colors: self.desk.colors)
            lines += lines.isEmpty ? all : Array(all.dropFirst())
        }
        return lines
    }

    private func draw(_ lines: [String], status: String?) async throws {
        let cells = Terminal.columns
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: false).timeZone(separator: .omitted))
        let head = status ?? "\(self.desk.session.address), \(max(0, lines.count - 1)) shown at \(time), Ctrl-C ends"
        let shown = CellText.cut(TerminalText.line(head, limit: 400), cells: cells)
        let ink: Ink = status == nil ? .faint : .red
        let rows = [self.desk.colors ? ink.drawn(shown) : shown, ""] + lines
        let text = rows.prefix(Terminal.rows).map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        try await self.desk.write(Array(("\u{1B}[H" + text + "\u{1B}[J").utf8))
    }
}
