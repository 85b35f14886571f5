import BackgroundTransfers
import Foundation
import SQLiteStorage

/// The journal's file: a database of SQLite with a row for each session, transfer and message, each as JSON.
package final class JournalFile {
    /// Stored in the file (`PRAGMA user_version`); a file of another version is refused.
    private static let version: Int64 = 1

    private let database: SQLiteDatabase
    /// Whether the file was missing or empty.
    package let isNew: Bool

    /// Opens or creates the file.
    /// - Throws: also if another version of the daemon made it.
    package init(_ path: String, library: String = SQLiteDatabase.standardLibrary) throws(SQLiteFailure) {
        self.database = try SQLiteDatabase(path, library: library)
        var version: Int64 = 0
        try self.database.run(
            "PRAGMA user_version", row: { if case .integer(let number) = $0[0] { version = number } },
            columns: [.integer])
        guard version == 0 || version == Self.version else {
            throw SQLiteFailure(
                "\(path): made by another version of the daemon (\(version), not \(Self.version))",
                remedy: "update sluice, or move the file away to begin with an empty one")
        }
        self.isNew = version == 0
        try self.database.execute(
            """
            CREATE TABLE IF NOT EXISTS session (name BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS transfer (
                session BLOB, task INTEGER, record BLOB NOT NULL, PRIMARY KEY (session, task)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS message (
                session BLOB, sequence INTEGER, record BLOB NOT NULL, PRIMARY KEY (session, sequence)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS unreadable (kind TEXT, session BLOB, number INTEGER, record BLOB, reason TEXT);
            """)
        // A file that is complete is opened without writing: that works on a full disk, too.
        if self.isNew { try self.database.execute("PRAGMA user_version = \(Self.version)") }
    }

    /// Writes all changes, or none, and waits until they are on the disk.
    package func write(_ changes: [JournalChange]) throws(SQLiteFailure) {
        guard !changes.isEmpty else { return }
        try self.database.transaction { () throws(SQLiteFailure) in
            for change in changes { try self.write(change) }
        }
    }

    private func write(_ change: JournalChange) throws(SQLiteFailure) {
        switch change {
        case .session(let record):
            try self.database.run(
                "INSERT OR REPLACE INTO session VALUES (?1, ?2)", [.text(record.identifier), try Self.encode(record)])
        case .removeSession(let name):
            try self.database.run("DELETE FROM session WHERE name = ?1", [.text(name)])
        case .transfer(let session, let transfer):
            try self.database.run(
                "INSERT OR REPLACE INTO transfer VALUES (?1, ?2, ?3)",
                [.text(session), .integer(Int64(transfer.identifier)), try Self.encode(transfer)])
        case .removeTransfer(let session, let task):
            try self.database.run(
                "DELETE FROM transfer WHERE session = ?1 AND task = ?2", [.text(session), .integer(Int64(task))])
        case .message(let session, let sequence, let end):
            try self.database.run(
                "INSERT INTO message VALUES (?1, ?2, ?3)",
                [.text(session), .integer(Int64(sequence)), try Self.encode(end)])
        case .removeMessages(let session, let sequence):
            try self.database.run(
                "DELETE FROM message WHERE session = ?1 AND sequence <= ?2",
                [.text(session), .integer(Int64(sequence))])
        }
    }

    /// All rows: sessions first, then transfers, then messages.
    ///
    /// Those that cannot be read are moved, as they are, to the table `unreadable`: new rows cannot collide with them then,
    /// and nothing of them is lost.
    package func read() throws(SQLiteFailure) -> [JournalChange] {
        var reading = Reading()
        try self.database.run(
            "SELECT name, record FROM session",
            row: { row in
                reading.add(.session, [row[0]], row[1]) { name, _, record throws(RowProblem) in
                    let record: SessionRecord = try Self.decode(record)
                    guard record.identifier == name else { throw RowProblem("its record is that of another session") }
                    guard record.isInRange else { throw RowProblem("a number is out of range") }
                    return .session(record)
                }
            }, columns: [.bytes, .bytes])
        try self.database.run(
            "SELECT session, task, record FROM transfer",
            row: { row in
                reading.add(.transfer, [row[0], row[1]], row[2]) { name, task, record throws(RowProblem) in
                    let transfer: TransferRecord = try Self.decode(record)
                    guard transfer.identifier == task else { throw RowProblem("its record is that of another task") }
                    guard transfer.isInRange else { throw RowProblem("a number is out of range") }
                    return .transfer(session: name, transfer)
                }
            }, columns: [.bytes, .integer, .bytes])
        try self.database.run(
            "SELECT session, sequence, record FROM message ORDER BY session, sequence",
            row: { row in
                reading.add(.message, [row[0], row[1]], row[2]) { name, sequence, record throws(RowProblem) in
                    let end: TransferEnd = try Self.decode(record)
                    guard end.transfer.isInRange, 1...TransferRecord.identifierLimit ~= sequence else {
                        throw RowProblem("a number is out of range")
                    }
                    return .message(session: name, sequence: sequence, end)
                }
            }, columns: [.bytes, .integer, .bytes])
        try self.setAside(reading.unreadable)
        return reading.rows
    }

    /// The rows that could not be read, now or by an earlier daemon.
    package func unreadableRows() throws(SQLiteFailure) -> [UnreadableRow] {
        var rows: [UnreadableRow] = []
        try self.database.run(
            "SELECT kind, session, number, reason FROM unreadable",
            row: { row in
                guard let kind = UnreadableRow.Kind(rawValue: Self.text(row[0])), case .integer(let number) = row[2]
                else { return }
                rows.append(
                    UnreadableRow(
                        kind: kind, session: Self.text(row[1]), number: Int(number), reason: Self.text(row[3])))
            }, columns: [.bytes, .bytes, .integer, .bytes])
        return rows
    }

    private func setAside(_ rows: [Reading.Unreadable]) throws(SQLiteFailure) {
        guard !rows.isEmpty else { return }
        try self.database.transaction { () throws(SQLiteFailure) in
            for row in rows {
                let values = [.text(row.reason)] + row.key
                switch row.kind {
                case .session:
                    try self.database.run(
                        "INSERT INTO unreadable SELECT 'session', name, 0, record, ?1 FROM session WHERE name = ?2",
                        values)
                    try self.database.run("DELETE FROM session WHERE name = ?1", row.key)
                case .transfer:
                    try self.database.run(
                        """
                        INSERT INTO unreadable SELECT 'transfer', session, task, record, ?1 FROM transfer
                        WHERE session = ?2 AND task = ?3
                        """, values)
                    try self.database.run("DELETE FROM transfer WHERE session = ?1 AND task = ?2", row.key)
                case .message:
                    try self.database.run(
                        """
                        INSERT INTO unreadable SELECT 'message', session, sequence, record, ?1 FROM message
                        WHERE session = ?2 AND sequence = ?3
                        """, values)
                    try self.database.run("DELETE FROM message WHERE session = ?1 AND sequence = ?2", row.key)
                }
            }
        }
    }

    private static func encode(_ record: some Encodable) throws(SQLiteFailure) -> SQLiteValue {
        guard let data = try? JSONEncoder().encode(record) else { throw SQLiteFailure("a record cannot be encoded") }
        return .bytes([UInt8](data))
    }

    private static func decode<Record: Decodable>(_ bytes: [UInt8]) throws(RowProblem) -> Record {
        do {
            return try JSONDecoder().decode(Record.self, from: Data(bytes))
        } catch {
            throw RowProblem(error)
        }
    }

    private static func text(_ value: SQLiteValue) -> String {
        guard case .bytes(let bytes) = value else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A row of the journal that cannot be read: damaged, or made by a daemon that knew more.
package struct UnreadableRow: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable {
        case session
        case transfer
        case message
    }

    package let kind: Kind
    package let session: String
    /// Identifier of the task, or sequence number of the message; 0 for a session.
    package let number: Int
    package let reason: String

    package init(kind: Kind, session: String, number: Int, reason: String) {
        self.kind = kind
        self.session = session
        self.number = number
        self.reason = reason
    }

    package var description: String {
        let row =
            switch self.kind {
            case .session: "the settings of session \(self.session)"
            case .transfer: "transfer \(self.number) of session \(self.session)"
            case .message: "message \(self.number) of session \(self.session)"
            }
        let effect =
            switch self.kind {
            case .session: "its transfers go on when its program runs again"
            case .transfer: "it does not go on: start it again in its program"
            case .message: "its program does not get it"
            }
        return
            "\(row) cannot be read (\(self.reason)); \(effect). The row is kept in the table unreadable of the journal"
    }
}

/// Why a row cannot be read.
private struct RowProblem: Error {
    let text: String

    init(_ text: String) { self.text = text }

    init(_ error: any Error) {
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.isEmpty ? "" : " at \(context.codingPath.map(\.stringValue).joined(separator: "."))"
        }
        switch error as? DecodingError {
        case .keyNotFound(let key, let context): self.text = "\(key.stringValue) is missing\(place(context))"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            self.text = "a value of another type\(place(context))"
        case .dataCorrupted(let context): self.text = "damaged\(place(context))"
        case nil: self.text = "damaged"
        @unknown default: self.text = "damaged"
        }
    }
}

/// The rows of one reading.
private struct Reading {
    struct Unreadable {
        let kind: UnreadableRow.Kind
        let key: [SQLiteValue]
        let reason: String
    }

    private(set) var rows: [JournalChange] = []
    private(set) var unreadable: [Unreadable] = []

    /// - Parameters:
    ///   - key: the columns that identify the row: the session's name, and a number.
    ///   - decode: gets the name, the number and the record.
    mutating func add(
        _ kind: UnreadableRow.Kind, _ key: [SQLiteValue], _ record: SQLiteValue,
        _ decode: (String, Int, [UInt8]) throws(RowProblem) -> JournalChange
    ) {
        do throws(RowProblem) {
            guard case .bytes(let name) = key[0], let name = String(validating: name, as: UTF8.self),
                case .bytes(let record) = record
            else { throw RowProblem("damaged") }
            let number: Int64 = if case .integer(let number)? = key.dropFirst().first { number } else { 0 }
            self.rows.append(try decode(name, Int(number), record))
        } catch {
            self.unreadable.append(Unreadable(kind: kind, key: key, reason: error.text))
        }
    }
}
