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
    /// What Ctrl-K, Ctrl-U and Ctrl-W took last, for Ctrl-Y.
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
