/// Why a database cannot be opened, read or written.
package struct SQLiteFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package var description: String { self.text }
}

/// A value of a statement's parameters and columns. All text is stored as bytes.
package enum SQLiteValue: Hashable, Sendable {
    case integer(Int64)
    case bytes([UInt8])

    package static func text(_ text: String) -> SQLiteValue { .bytes(Array(text.utf8)) }
}
