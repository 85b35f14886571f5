/// A line that is being written on a terminal: keys in, events out. Draws nothing; see `EditorRow`.
package struct LineEditor: Sendable {
    package enum Event: Sendable, Equatable {
        /// Text or cursor changed: draw the row anew.
        case changed
        case submitted(String)
        /// Ctrl-C with nothing written; with something written it only clears the line.
        case interrupted
        /// Ctrl-D with nothing written.
        case endOfInput
        /// Ctrl-Z.
        case suspended
        /// Ctrl-L.
        case cleared
        /// The key has no effect here.
        case refused
    }

    /// Longest line, in characters; more are refused.
    package static let limit = 16384

    package private(set) var characters: [Character] = []
    /// Characters before the cursor.
    package private(set) var cursor = 0
    private var history: InputHistory
    /// Text removed last by Ctrl-K, Ctrl-U or Ctrl-W, for Ctrl-Y.
    private var taken: [Character] = []

    package init(history: InputHistory = InputHistory()) {
        self.history = history
    }

    package var text: String { String(self.characters) }

    package mutating func pressed(_ key: Key) -> Event {
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
        case "k": self.take(from: self.cursor, to: self.characters.count)
        case "l": .cleared
        case "n": self.replace(by: self.history.newer())
        case "p": self.replace(by: self.history.older(than: self.text))
        case "u": self.take(from: 0, to: self.cursor)
        case "w": self.take(from: self.wordStart, to: self.cursor)
        case "y": self.insert(self.taken)
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
        // An accent or the like joins the character before the cursor.
        if self.cursor > 0 {
            var joined = String(self.characters[self.cursor - 1])
            joined.unicodeScalars.append(scalar)
            // No end to the marks on one character otherwise.
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

    private mutating func move(to place: Int) -> Event {
        guard (0...self.characters.count).contains(place) else { return .refused }
        self.cursor = place
        return .changed
    }

    private mutating func remove(from start: Int, to end: Int) -> Event {
        guard start >= 0, start < end, end <= self.characters.count else { return .refused }
        self.characters.removeSubrange(start..<end)
        self.cursor = start
        return .changed
    }

    private mutating func take(from start: Int, to end: Int) -> Event {
        guard start < end else { return .refused }
        self.taken = Array(self.characters[start..<end])
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
        var place = self.cursor
        while place > 0, self.characters[place - 1] == " " { place -= 1 }
        while place > 0, self.characters[place - 1] != " " { place -= 1 }
        return place
    }

    private var wordEnd: Int {
        var place = self.cursor
        while place < self.characters.count, self.characters[place] == " " { place += 1 }
        while place < self.characters.count, self.characters[place] != " " { place += 1 }
        return place
    }
}

/// The one row of a terminal that shows a line being written. A line that is longer is shown in part: the part with the
/// cursor.
package struct EditorRow: Sendable, Equatable {
    /// Text behind the prompt, safe to print.
    package let text: String
    /// Cells between the end of the prompt and the cursor.
    package let cursorCells: Int

    /// - Parameter cells: room behind the prompt; at least 2 are taken.
    package init(_ characters: [Character], cursor: Int, cells: Int) {
        let room = max(2, cells)
        let shown = characters.map(TerminalText.shown)
        let widths = shown.map(CellWidth.of)
        var first = min(cursor, characters.count)
        var used = 0
        // The cursor itself needs a cell. Half of the row is kept for the text behind it, if there is any.
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

    /// Draws the row over the terminal's current one, and places the cursor.
    /// - Parameters:
    ///   - prompt: printed unchanged.
    ///   - promptCells: its width in cells.
    package func drawn(prompt: String, promptCells: Int) -> String {
        let column = promptCells + self.cursorCells
        return "\r\u{1B}[K\(prompt)\(self.text)\r" + (column > 0 ? "\u{1B}[\(column)C" : "")
    }
}

/// Lines entered so far. Kept in memory only: input may be secret.
package struct InputHistory: Sendable, Equatable {
    /// When more are added, the oldest go.
    package let limit: Int
    private var lines: [String] = []
    /// Index into `lines`; their count means the line being edited.
    private var place = 0
    private var draft = ""

    package init(limit: Int = 500) {
        self.limit = max(1, limit)
    }

    /// Empty lines and repetitions of the last one are not kept.
    package mutating func add(_ line: String) {
        if !line.isEmpty, self.lines.last != line { self.lines.append(line) }
        if self.lines.count > self.limit { self.lines.removeFirst(self.lines.count - self.limit) }
        self.place = self.lines.count
        self.draft = ""
    }

    /// - Parameter current: text of the editor; kept if it is the line being edited.
    /// - Returns: `nil` at the oldest line.
    package mutating func older(than current: String) -> String? {
        guard self.place > 0 else { return nil }
        if self.place == self.lines.count { self.draft = current }
        self.place -= 1
        return self.lines[self.place]
    }

    /// - Returns: the line that was being written behind the newest one, and `nil` behind that.
    package mutating func newer() -> String? {
        guard self.place < self.lines.count else { return nil }
        self.place += 1
        return self.place == self.lines.count ? self.draft : self.lines[self.place]
    }
}

/// How many cells of a terminal a character takes.
package enum CellWidth {
    /// Ranges of wide scalars: the East Asian scripts, their full-width forms, and pictographs (UAX #11, in large).
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
