import BackgroundTransfers
import Foundation
import SQLiteStorage

/// The journal's file: a database of SQLite with a row for each session, transfer and message, each as JSON.
package final class JournalFile {
    /// Stored in the file (`PRAGMA user_version`); a file of another version is refused.
    private static let version: Int64 = 1

    private let database: SQLiteDatabase

    /// Opens or creates the file.
    /// - Throws: also if another version of the daemon made it.
    package init(_ path: String, library: String = SQLiteDatabase.standardLibrary) throws(SQLiteFailure) {
        self.database = try SQLiteDatabase(path, library: library)
        var version: Int64 = 0
        try self.database.run(
            "PRAGMA user_version", row: { if case .integer(let number) = $0[0] { version = number } },
            columns: [.integer])
        guard version == 0 || version == Self.version else {
            throw SQLiteFailure("\(path): made by another version of the daemon (\(version), not \(Self.version))")
        }
        try self.database.execute(
            """
            CREATE TABLE IF NOT EXISTS session (name BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS transfer (
                session BLOB, task INTEGER, record BLOB NOT NULL, PRIMARY KEY (session, task)) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS message (
                session BLOB, sequence INTEGER, record BLOB NOT NULL, PRIMARY KEY (session, sequence)) WITHOUT ROWID;
            PRAGMA user_version = \(Self.version);
            """)
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

    /// All rows: sessions first, then transfers, then messages. Rows that cannot be read are left out.
    package func read() throws(SQLiteFailure) -> [JournalChange] {
        var rows: [JournalChange] = []
        try self.database.run(
            "SELECT record FROM session",
            row: { if let record: SessionRecord = Self.decode($0[0]) { rows.append(.session(record)) } },
            columns: [.bytes])
        try self.database.run(
            "SELECT session, record FROM transfer",
            row: { row in
                guard let transfer: TransferRecord = Self.decode(row[1]) else { return }
                rows.append(.transfer(session: Self.text(row[0]), transfer))
            }, columns: [.bytes, .bytes])
        try self.database.run(
            "SELECT session, sequence, record FROM message ORDER BY session, sequence",
            row: { row in
                guard let end: TransferEnd = Self.decode(row[2]), case .integer(let sequence) = row[1] else { return }
                rows.append(.message(session: Self.text(row[0]), sequence: Int(sequence), end))
            }, columns: [.bytes, .integer, .bytes])
        return rows
    }

    private static func encode(_ record: some Encodable) throws(SQLiteFailure) -> SQLiteValue {
        guard let data = try? JSONEncoder().encode(record) else { throw SQLiteFailure("a record cannot be encoded") }
        return .bytes([UInt8](data))
    }

    private static func decode<Record: Decodable>(_ value: SQLiteValue) -> Record? {
        guard case .bytes(let bytes) = value else { return nil }
        return try? JSONDecoder().decode(Record.self, from: Data(bytes))
    }

    private static func text(_ value: SQLiteValue) -> String {
        guard case .bytes(let bytes) = value else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }
}
