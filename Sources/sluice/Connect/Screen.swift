import CommandLineText

/// A terminal with a line being written at its bottom, and what comes above it.
actor Screen {
    enum Ink: String {
        case plain = ""
        case sent = "36"
        case received = "32"
        case note = "2"
        case fault = "31"
    }

    private static let prompt = "> "
    private let streams: StandardStreams
    private let colors: Bool
    private var editor = LineEditor()
    private var decoder = KeyDecoder()
    private var streamed = StreamedText()
    /// Whether the row of the editor is shown.
    private var isShown = false

    init(streams: StandardStreams, colors: Bool) {
        self.streams = streams
        self.colors = colors
    }

    /// Shows the line being written.
    func begin() async {
        self.isShown = true
        await self.write(self.row)
    }

    /// Takes the line being written away.
    func end() async {
        guard self.isShown else { return }
        self.isShown = false
        await self.write("\r\u{1B}[K")
    }

    /// Prints text above the line being written; `mark` stands before its first row.
    /// - Parameter text: safe to print.
    func print(_ text: String, mark: String, _ ink: Ink) async {
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
        let lines = rows.enumerated().map { index, row in
            self.colored(index == 0 ? mark : String(repeating: " ", count: mark.count), ink) + row + "\n"
        }
        await self.write((self.isShown ? "\r\u{1B}[K" : "") + lines.joined() + (self.isShown ? self.row : ""))
    }

    /// Prints what a stream gave, as far as its characters are whole.
    func print(stream bytes: [UInt8], mark: String, _ ink: Ink) async {
        let text = self.streamed.text(bytes)
        guard !text.isEmpty else { return }
        // A CR is half of an end of line, or means to write over it: neither is shown. What else steers is spelled out.
        let lines = TerminalText.safe(String(text.unicodeScalars.filter { $0 != "\r" }))
        await self.print(lines.hasSuffix("\n") ? String(lines.dropLast()) : lines, mark: mark, ink)
    }

    /// - Returns: what the keys among these bytes came to, drawn already.
    func typed(_ bytes: [UInt8]) async -> [LineEditor.Event] {
        var events: [LineEditor.Event] = []
        var drawn = ""
        var isStale = false
        for key in self.decoder.keys(bytes) {
            let event = self.editor.pressed(key)
            switch event {
            case .submitted(let line):
                drawn += "\r\u{1B}[K" + self.colored(Self.prompt, .sent) + TerminalText.safe(line) + "\n"
                isStale = true
            case .refused: drawn += "\u{07}"
            case .cleared:
                drawn += "\u{1B}[H\u{1B}[2J"
                isStale = true
            case .changed: isStale = true
            case .interrupted, .endOfInput, .suspended: break
            }
            if event != .refused, event != .changed { events.append(event) }
        }
        // Once for all keys of a paste.
        await self.write(drawn + (isStale ? self.row : ""))
        return events
    }

    private var row: String {
        let row = EditorRow(
            self.editor.characters, cursor: self.editor.cursor, cells: Terminal.columns - Self.prompt.count)
        return row.drawn(prompt: self.colored(Self.prompt, .sent), promptCells: Self.prompt.count)
    }

    private func colored(_ text: String, _ ink: Ink) -> String {
        self.colors && ink != .plain ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// A terminal that is gone is told of by its input.
    private func write(_ text: String) async {
        try? await self.streams.write(Array(text.utf8))
    }
}
