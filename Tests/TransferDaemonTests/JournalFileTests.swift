import BackgroundTransfers
import Foundation
import SQLiteStorage
import Testing
import TransferDaemon

@Suite("File of the journal")
struct JournalFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "JournalFileTests-\(UUID())").path

    init() throws {
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
    }

    private var path: String { "\(self.folder)/transfers.sqlite" }

    private func removeFolder() { try? FileManager.default.removeItem(atPath: self.folder) }

    private static let rows: [JournalChange] = [
        .session(SessionRecord(identifier: "s", settings: SessionSettings())),
        .transfer(session: "s", .sample(1)), .transfer(session: "s", .sample(2, .upload)),
        .message(
            session: "s", sequence: 1,
            TransferEnd(
                transfer: .sample(3), file: "3.content", error: nil, ended: Date(timeIntervalSinceReferenceDate: 1))),
        .message(
            session: "s", sequence: 2,
            TransferEnd(
                transfer: .sample(4), file: nil, error: TransferError(code: -1001, text: "\u{0}'\""),
                ended: Date(timeIntervalSinceReferenceDate: 2))),
    ]

    @Test func rowsAreReadAsTheyWereWritten() throws {
        defer { self.removeFolder() }
        try JournalFile(self.path).write(Self.rows)
        #expect(try JournalFile(self.path).read() == Self.rows)
    }

    @Test func removedRowsAreGone() throws {
        defer { self.removeFolder() }
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        try file.write([.removeTransfer(session: "s", task: 1), .removeMessages(session: "s", through: 1)])
        #expect(try JournalFile(self.path).read() == [Self.rows[0], Self.rows[2], Self.rows[4]])
        try file.write([.removeSession("s")])
        #expect(try file.read() == [Self.rows[2], Self.rows[4]])
    }

    @Test func changesAreWrittenTogetherOrNotAtAll() throws {
        defer { self.removeFolder() }
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        // The sequence number exists: the whole event is refused.
        let other = JournalChange.transfer(session: "s", .sample(9))
        #expect(throws: SQLiteFailure.self) { try file.write([other, Self.rows[3]]) }
        #expect(try file.read() == Self.rows)
    }

    @Test func fileOfAnotherVersionIsRefused() throws {
        defer { self.removeFolder() }
        try SQLiteDatabase(self.path).execute("PRAGMA user_version = 99")
        #expect(throws: SQLiteFailure.self) { try JournalFile(self.path) }
    }

    @Test func damagedFileIsAnError() throws {
        defer { self.removeFolder() }
        try Data("this is no database, whatever its name says".utf8).write(to: URL(filePath: self.path))
        #expect(throws: SQLiteFailure.self) { try JournalFile(self.path) }
        #expect(throws: SQLiteFailure.self) { try JournalFile("\(self.folder)/none/transfers.sqlite") }
    }

    @Test func unreadableRowIsLeftOut() throws {
        defer { self.removeFolder() }
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        try SQLiteDatabase(self.path).execute("UPDATE transfer SET record = '{' WHERE task = 1")
        #expect(try file.read() == [Self.rows[0]] + Self.rows[2...])
    }

    @Test func missingLibraryNamesItsPackage() throws {
        defer { self.removeFolder() }
        do {
            _ = try JournalFile(self.path, library: "libsqlite-none.so.0")
            Issue.record("opened without a library")
        } catch {
            #expect(error.description.contains("libsqlite3-0"))
        }
    }
}
