/// Why a database cannot be opened, read or written.
package struct SQLiteFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package let text: String
    /// What to do; empty if there is no advice.
    package let remedy: String

    package init(_ text: String, remedy: String = "") {
        self.text = text
        self.remedy = remedy
    }

    package var description: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }

    /// - Parameter code: of SQLite, extended (sqlite.org, "Result and Error Codes").
    static func remedy(_ code: Int32) -> String {
        switch code {
        // SQLITE_IOERR_SHMSIZE: the index of the log beside the file cannot be made.
        case 4874: return "free space on its disk"
        default: break
        }
        switch code & 0xFF {
        case 3, 8, 14, 23: return "check the permissions of the file and its folder"
        case 5: return "end the process that uses it"
        case 11, 26: return "move it away to begin with an empty one"
        case 13: return "free space on its disk"
        default: return ""
        }
    }
}

/// A value of a statement's parameters and columns. All text is stored as bytes.
package enum SQLiteValue: Hashable, Sendable {
    case integer(Int64)
    case bytes([UInt8])

    package static func text(_ text: String) -> SQLiteValue { .bytes(Array(text.utf8)) }
}
