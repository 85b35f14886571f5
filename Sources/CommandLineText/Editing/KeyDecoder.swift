/// Decodes terminal input into keys: UTF-8, control characters, and the ECMA-48 escape sequences of cursor and editing
/// keys. Input may be split anywhere.
package struct KeyDecoder: Sendable {
    private enum State {
        case plain
        /// First bytes of a UTF-8 sequence of `count` bytes.
        case character([UInt8], count: Int)
        case escape
        /// After ESC [ or ESC O; the bytes before the final byte.
        case sequence([UInt8])
    }

    /// Maximum length of an escape sequence; longer ones are dropped.
    private static let sequenceLimit = 32

    private var state = State.plain

    package init() {}

    package mutating func decode(_ bytes: [UInt8]) -> [Key] {
        bytes.flatMap { self.decode($0) }
    }

    private mutating func decode(_ byte: UInt8) -> [Key] {
        switch self.state {
        case .plain: return self.plain(byte)
        case .character(let bytes, let count): return self.continueCharacter(bytes, count: count, byte)
        case .escape: return self.decodeEscaped(byte)
        case .sequence(let bytes): return self.sequence(bytes, byte)
        }
    }

    private mutating func plain(_ byte: UInt8) -> [Key] {
        switch byte {
        case 0x1B:
            self.state = .escape
            return []
        case 0x0D, 0x0A: return [.enter]
        case 0x09: return [.tab]
        case 0x08, 0x7F: return [.backspace]
        case 0x01...0x1A: return [.control(Character(Unicode.Scalar(byte + 0x60)))]
        case 0x00, 0x1C...0x1F: return [.unknown]
        case 0x20...0x7E: return [.character(Unicode.Scalar(byte))]
        case 0xC2...0xDF: self.state = .character([byte], count: 2)
        case 0xE0...0xEF: self.state = .character([byte], count: 3)
        case 0xF0...0xF4: self.state = .character([byte], count: 4)
        default: return [.character("\u{FFFD}")]
        }
        return []
    }

    private mutating func continueCharacter(_ bytes: [UInt8], count: Int, _ byte: UInt8) -> [Key] {
        guard byte & 0xC0 == 0x80 else {
            // Incomplete sequence: the new byte begins another.
            self.state = .plain
            return [.character("\u{FFFD}")] + self.plain(byte)
        }
        let all = bytes + [byte]
        guard all.count == count else {
            self.state = .character(all, count: count)
            return []
        }
        self.state = .plain
        return String(decoding: all, as: UTF8.self).unicodeScalars.map { scalar in
            // C1 control characters are not text.
            scalar.properties.generalCategory == .control ? .unknown : .character(scalar)
        }
    }

    private mutating func decodeEscaped(_ byte: UInt8) -> [Key] {
        self.state = .plain
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "O"):
            self.state = .sequence([])
            return []
        case 0x1B:
            self.state = .escape
            return []
        case UInt8(ascii: "b"): return [.wordLeft]
        case UInt8(ascii: "f"): return [.wordRight]
        // Alt-Backspace deletes a word, as in readline.
        case 0x7F: return [.control("w")]
        // Escape alone, followed by another key.
        case 0x00...0x1F: return self.plain(byte)
        default: return [.unknown]
        }
    }

    private mutating func sequence(_ bytes: [UInt8], _ byte: UInt8) -> [Key] {
        guard byte >= 0x20, byte < 0x7F else {
            self.state = .plain
            return self.plain(byte)
        }
        guard byte >= 0x40 else {
            self.state = bytes.count < Self.sequenceLimit ? .sequence(bytes + [byte]) : .plain
            return []
        }
        self.state = .plain
        return [Self.key(parameters: String(decoding: bytes, as: UTF8.self), final: byte)]
    }

    private static func key(parameters: String, final: UInt8) -> Key {
        // `1;5` is the key together with Control, `1;3` with Alt.
        let byWord = parameters.hasSuffix(";5") || parameters.hasSuffix(";3")
        switch final {
        case UInt8(ascii: "A"): return .up
        case UInt8(ascii: "B"): return .down
        case UInt8(ascii: "C"): return byWord ? .wordRight : .right
        case UInt8(ascii: "D"): return byWord ? .wordLeft : .left
        case UInt8(ascii: "H"): return .home
        case UInt8(ascii: "F"): return .end
        case UInt8(ascii: "~"):
            switch parameters {
            case "1", "7": return .home
            case "4", "8": return .end
            case "3": return .delete
            default: return .unknown
            }
        default: return .unknown
        }
    }
}

/// A key of a terminal's keyboard.
package enum Key: Sendable, Hashable {
    /// A Unicode scalar that is not a control character.
    case character(Unicode.Scalar)
    /// Control with a letter in lower case, except those with a case of their own, like `enter` and `tab`.
    case control(Character)
    case enter, tab, backspace, delete
    case left, right, wordLeft, wordRight, home, end
    case up, down
    /// A sequence that means nothing here.
    case unknown
}
