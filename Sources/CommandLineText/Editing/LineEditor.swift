/// State machine of a line editor: takes keys, returns events. Drawn by `EditorRow`.
package struct LineEditor: Sendable {
    package enum Event: Sendable, Equatable {
        /// Text or cursor changed: redraw the row.
        case changed
        case submitted(String)
        /// Ctrl-C on an empty line; otherwise Ctrl-C clears the line.
        case interrupted
        /// Ctrl-D on an empty line.
        case endOfInput
        /// Ctrl-Z.
        case suspended
        /// Ctrl-L.
        case cleared
        /// The key has no effect here.
        case refused
    }

    /// Maximum length of a line in characters; more are rejected.
    package static let limit = 16384

    package private(set) var characters: [Character] = []
    /// Characters before the cursor.
    package private(set) var cursor = 0
    private var history: InputHistory
    /// Text removed last by Ctrl-K, Ctrl-U or Ctrl-W; Ctrl-Y inserts it.
    private var killBuffer: [Character] = []

    package init(history: InputHistory = InputHistory()) {
        self.history = history
    }

    package var text: String { String(self.characters) }

    package mutating func handle(_ key: Key) -> Event {
        switch key {
        case .character(let scalar): self.insert(scalar)
        case .enter: self.submit()
        case .backspace: self.remove(from: self.cursor - 1, to: self.cursor)
        case .delete: self.remove(from: self.cursor, to: self.cursor + 1)
        case .left: self.move(to: self.cursor - 1)
        case .right: self.move(to: self.cursor + 1)
        case .wordLeft: self.move(to: self.wordStart)
        case .wordRight: self.move(to: self.wordEnd)
        case .home: self.move(to: 0)
        case .end: self.move(to: self.characters.count)
        case .up: self.replace(by: self.history.older(than: self.text))
        case .down: self.replace(by: self.history.newer())
        case .control(let letter): self.control(letter)
        case .tab, .unknown: .refused
        }
    }

    private mutating func control(_ letter: Character) -> Event {
        switch letter {
        case "a": self.move(to: 0)
        case "b": self.move(to: self.cursor - 1)
        case "c": self.interrupt()
        case "d": self.characters.isEmpty ? .endOfInput : self.remove(from: self.cursor, to: self.cursor + 1)
        case "e": self.move(to: self.characters.count)
        case "f": self.move(to: self.cursor + 1)
        case "k": self.kill(from: self.cursor, to: self.characters.count)
        case "l": .cleared
        case "n": self.replace(by: self.history.newer())
        case "p": self.replace(by: self.history.older(than: self.text))
        case "u": self.kill(from: 0, to: self.cursor)
        case "w": self.kill(from: self.wordStart, to: self.cursor)
        case "y": self.insert(self.killBuffer)
        case "z": .suspended
        default: .refused
        }
    }

    private mutating func submit() -> Event {
        let line = self.text
        self.characters = []
        self.cursor = 0
        self.history.add(line)
        return .submitted(line)
    }

    private mutating func interrupt() -> Event {
        guard !self.characters.isEmpty else { return .interrupted }
        self.characters = []
        self.cursor = 0
        return .changed
    }

    private mutating func insert(_ scalar: Unicode.Scalar) -> Event {
        // A combining mark joins the character before the cursor.
        if self.cursor > 0 {
            var joined = String(self.characters[self.cursor - 1])
            joined.unicodeScalars.append(scalar)
            // Bounds the combining marks of one character.
            if joined.count == 1, joined.unicodeScalars.count <= 32 {
                self.characters[self.cursor - 1] = Character(joined)
                return .changed
            }
        }
        return self.insert([Character(scalar)])
    }

    private mutating func insert(_ new: [Character]) -> Event {
        guard !new.isEmpty, self.characters.count + new.count <= Self.limit else { return .refused }
        self.characters.insert(contentsOf: new, at: self.cursor)
        self.cursor += new.count
        return .changed
    }

    private mutating func move(to index: Int) -> Event {
        guard (0...self.characters.count).contains(index) else { return .refused }
        self.cursor = index
        return .changed
    }

    private mutating func remove(from start: Int, to end: Int) -> Event {
        guard start >= 0, start < end, end <= self.characters.count else { return .refused }
        self.characters.removeSubrange(start..<end)
        self.cursor = start
        return .changed
    }

    private mutating func kill(from start: Int, to end: Int) -> Event {
        guard start < end else { return .refused }
        self.killBuffer = Array(self.characters[start..<end])
        return self.remove(from: start, to: end)
    }

    private mutating func replace(by line: String?) -> Event {
        guard let line else { return .refused }
        self.characters = Array(line)
        self.cursor = self.characters.count
        return .changed
    }

    // MARK: Words

    private var wordStart: Int {
        var index = self.cursor
        while index > 0, self.characters[index - 1] == " " { index -= 1 }
        while index > 0, self.characters[index - 1] != " " { index -= 1 }
        return index
    }

    private var wordEnd: Int {
        var index = self.cursor
        while index < self.characters.count, self.characters[index] == " " { index += 1 }
        while index < self.characters.count, self.characters[index] != " " { index += 1 }
        return index
    }
}

/// The terminal row that shows the line editor. If the line is too long, shows the part around the cursor.
package struct EditorRow: Sendable, Equatable {
    /// Sanitized text after the prompt.
    package let text: String
    /// Cells between the end of the prompt and the cursor.
    package let cursorCells: Int

    /// - Parameter cells: width available after the prompt; at least 2 are used.
    package init(_ characters: [Character], cursor: Int, cells: Int) {
        let room = max(2, cells)
        let shown = characters.map(TerminalText.sanitizedCharacter)
        let widths = shown.map(CellWidth.of)
        var first = min(cursor, characters.count)
        var used = 0
        // The cursor needs a cell. Up to half of the row shows the text after the cursor.
        let behind = widths[first...].prefix(room).reduce(0, +)
        let before = max(room / 2, room - 1 - behind)
        while first > 0, used + widths[first - 1] <= before {
            first -= 1
            used += widths[first]
        }
        self.cursorCells = used
        var last = min(cursor, characters.count)
        while last < characters.count, used + widths[last] < room {
            used += widths[last]
            last += 1
        }
        self.text = shown[first..<last].joined()
    }

    /// Escape sequences and text that redraw the current row and index the cursor.
    /// - Parameters:
    ///   - prompt: printed unchanged.
    ///   - promptCells: width of the prompt in cells.
    package func rendered(prompt: String, promptCells: Int) -> String {
        let column = promptCells + self.cursorCells
        return "\r\u{1B}[K\(prompt)\(self.text)\r" + (column > 0 ? "\u{1B}[\(column)C" : "")
    }
}

/// History of submitted lines. Kept in memory only: input may be secret.
package struct InputHistory: Sendable, Equatable {
    /// Maximum number of lines; the oldest are dropped.
    package let limit: Int
    private var lines: [String] = []
    /// Index into `lines`; `lines.count` means the line being edited.
    private var index = 0
    private var draft = ""

    package init(limit: Int = 500) {
        self.limit = max(1, limit)
    }

    /// Ignores empty lines and repetitions of the last line.
    package mutating func add(_ line: String) {
        if !line.isEmpty, self.lines.last != line { self.lines.append(line) }
        if self.lines.count > self.limit { self.lines.removeFirst(self.lines.count - self.limit) }
        self.index = self.lines.count
        self.draft = ""
    }

    /// - Parameter current: text of the editor, saved if it is the line being edited.
    /// - Returns: `nil` at the oldest line.
    package mutating func older(than current: String) -> String? {
        guard self.index > 0 else { return nil }
        if self.index == self.lines.count { self.draft = current }
        self.index -= 1
        return self.lines[self.index]
    }

    /// - Returns: the next newer line, then the saved line; `nil` after that.
    package mutating func newer() -> String? {
        guard self.index < self.lines.count else { return nil }
        self.index += 1
        return self.index == self.lines.count ? self.draft : self.lines[self.index]
    }
}

/// Width of characters in terminal cells.
package enum CellWidth {
    /// Approximate ranges of wide scalars (UAX #11): East Asian scripts, full-width forms and pictographs.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
        0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x1FA70...0x1FAFF, 0x20000...0x3FFFD,
    ]

    package static func of(_ text: String) -> Int {
        text.reduce(0) { $0 + self.of($1) }
    }

    package static func of(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        if scalar.properties.isEmojiPresentation { return 2 }
        return self.wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }
}
