import BackgroundTransfers
import Foundation
import SQLiteStorage
import Synchronization
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

    @Test func damagedFileIsNamedWithARemedy() throws {
        defer { self.removeFolder() }
        try Data("this is no database, whatever its name says".utf8).write(to: URL(filePath: self.path))
        let damaged = #expect(throws: SQLiteFailure.self) { try JournalFile(self.path) }
        #expect(
            damaged?.description == "\(self.path): file is not a database; move it away to begin with an empty one")
        let path = "\(self.folder)/none/transfers.sqlite"
        let missing = #expect(throws: SQLiteFailure.self) { try JournalFile(path) }
        #expect(
            missing?.description
                == "\(path): unable to open database file; check the permissions of the file and its folder")
    }

    @Test func completeFileIsOpenedWithoutWriting() throws {
        defer { self.removeFolder() }
        let file = try JournalFile(self.path)
        #expect(file.isNew)
        try file.write(Self.rows)
        // Changes when another connection has written.
        let observer = try SQLiteDatabase(self.path)
        func version() throws -> SQLiteValue? {
            var version: SQLiteValue?
            try observer.run("PRAGMA data_version", row: { version = $0[0] }, columns: [.integer])
            return version
        }
        let before = try version()
        let other = try JournalFile(self.path)
        #expect(try !other.isNew && other.read() == Self.rows)
        #expect(try version() == before)
        try file.write([.removeTransfer(session: "s", task: 1)])
        #expect(try version() != before)
    }

    @Test func folderThatCannotBeUsedIsReportedWithTheReason() throws {
        defer { self.removeFolder() }
        let file = "\(self.folder)/file"
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        func failure(_ runtime: String) -> DaemonProcess.Failure? {
            let folders = TransferFolders(runtime: runtime, state: self.folder)
            return #expect(throws: DaemonProcess.Failure.self) { try DaemonProcess.run(folders, DaemonSettings()) }
        }
        #expect(failure(file)?.description == "\(file) is not a folder")
        #expect(failure("\(file)/r")?.description == "\(file)/r cannot be created: Not a directory")
    }

    @Test(arguments: [true, false])
    func emptyJournalIsReportedIfThereAreFiles(_ hasFiles: Bool) throws {
        defer { self.removeFolder() }
        let folders = TransferFolders(runtime: "\(self.folder)/r", state: "\(self.folder)/s")
        if hasFiles {
            let session = folders.session("s")
            try FileManager.default.createDirectory(atPath: session, withIntermediateDirectories: true)
            #expect(FileManager.default.createFile(atPath: "\(session)/1.content", contents: Data("x".utf8)))
        }
        let lines = Mutex<[String]>([])
        var settings = DaemonSettings()
        settings.idleLimit = .milliseconds(1)
        settings.log = { line in lines.withLock { $0.append(line) } }
        #expect(try DaemonProcess.run(folders, settings) == .ended)
        let report =
            "journal \(folders.journal): it was missing or empty, but there are files in \(folders.transfers): the "
            + "transfers that they belong to are lost; start them again in their programs"
        #expect(lines.withLock(\.self) == (hasFiles ? [report] : []))
        // Once.
        #expect(try DaemonProcess.run(folders, settings) == .ended)
        #expect(lines.withLock(\.count) == (hasFiles ? 1 : 0))
    }

    /// Damages one row of each kind, in different ways.
    private func damage() throws -> JournalFile {
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        let database = try SQLiteDatabase(self.path)
        try database.execute("UPDATE session SET record = '{\"identifier\":\"s\"}'")
        try database.execute("UPDATE transfer SET record = '{' WHERE task = 1")
        try database.execute("UPDATE message SET record = x'FF00' WHERE sequence = 2")
        return file
    }

    @Test func unreadableRowsAreSetAsideAsTheyAre() throws {
        defer { self.removeFolder() }
        let file = try self.damage()
        #expect(try file.read() == [Self.rows[2], Self.rows[3]])
        let unreadable = try file.unreadableRows()
        #expect(unreadable.map(\.kind) == [.session, .transfer, .message])
        #expect(unreadable.map(\.number) == [0, 1, 2] && unreadable.allSatisfy { $0.session == "s" })
        var records: [SQLiteValue] = []
        try SQLiteDatabase(self.path).run(
            "SELECT record FROM unreadable", row: { records.append($0[0]) }, columns: [.bytes])
        #expect(records == [.text("{\"identifier\":\"s\"}"), .text("{"), .bytes([0xFF, 0])])
        // A later daemon has the same, and new rows do not collide with the old ones.
        let later = try JournalFile(self.path)
        try later.write([Self.rows[0], Self.rows[1], Self.rows[4]])
        #expect(try later.read() == Self.rows)
        #expect(try later.unreadableRows() == unreadable)
    }

    @Test func unreadableRowSaysWhatItWasAndWhatToDo() throws {
        defer { self.removeFolder() }
        let file = try self.damage()
        _ = try file.read()
        #expect(
            try file.unreadableRows().map(\.description) == [
                "the settings of session s cannot be read (settings is missing); its transfers go on when its program runs "
                    + "again. The row is kept in the table unreadable of the journal",
                "transfer 1 of session s cannot be read (damaged); it does not go on: start it again in its program. The row "
                    + "is kept in the table unreadable of the journal",
                "message 2 of session s cannot be read (damaged); its program does not get it. The row is kept in the table "
                    + "unreadable of the journal",
            ])
    }

    @Test(arguments: [
        "UPDATE transfer SET task = 9 WHERE task = 1", "UPDATE transfer SET session = x'FF' WHERE task = 1",
        "UPDATE transfer SET record = replace(record, '\"failures\":0', '\"failures\":9223372036854775807') WHERE task = 1",
    ])
    func rowThatContradictsItselfIsUnreadable(_ damage: String) throws {
        defer { self.removeFolder() }
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        try SQLiteDatabase(self.path).execute(damage)
        #expect(try file.read() == [Self.rows[0]] + Self.rows[2...])
        #expect(try file.unreadableRows().count == 1)
    }

    @Test(arguments: [-1, Int.max])
    func challengeWithImpossibleFailuresIsUnreadable(_ failures: Int) throws {
        defer { self.removeFolder() }
        let challenge = TransferChallenge(
            host: "a.example", port: 80, scheme: "http", realm: nil, method: "Basic", isProxy: false,
            failures: failures)
        var (answered, asking) = (TransferRecord.sample(1), TransferRecord.sample(2))
        answered.setAnswer(.defaultHandling, to: challenge)
        asking.phase = .asksForCredential(challenge)
        let file = try JournalFile(self.path)
        try file.write([.transfer(session: "s", answered), .transfer(session: "s", asking)])
        #expect(try file.read() == [])
        #expect(try file.unreadableRows().count == 2)
    }

    @Test func transfersWhoseSessionIsLostWaitForItsProgram() throws {
        defer { self.removeFolder() }
        let file = try self.damage()
        var journal = TransferJournal(try file.read())
        let session = try #require(journal.sessions["s"])
        #expect(session.record.lastIdentifier == 3 && session.record.lastSequence == 1)
        #expect(session.transfers.keys.sorted() == [2] && session.messages.count == 1)
        _ = journal.request(.resume(task: 2))
        let now = TransferJournalTests.start
        #expect(TransferSchedule(journal, conditions: MachineConditions(), now: now).starts.isEmpty)
        // The new row of the session is written with the next event.
        try file.write(journal.takeChanges())
        #expect(try file.read().count == 3)
        try journal.attach(TransferJournalTests.attachment())
        #expect(
            TransferSchedule(journal, conditions: MachineConditions(), now: now).starts.map(\.identifier) == [2])
    }

    @Test(arguments: [false, true])
    func onlyItsOwnerCanReadTheFiles(_ wasReadable: Bool) throws {
        defer { self.removeFolder() }
        if wasReadable {
            try #require(
                FileManager.default.createFile(atPath: self.path, contents: nil, attributes: [.posixPermissions: 0o644])
            )
        }
        let file = try JournalFile(self.path)
        try file.write(Self.rows)
        let names = try FileManager.default.contentsOfDirectory(atPath: self.folder).sorted()
        #expect(names == ["transfers.sqlite", "transfers.sqlite-shm", "transfers.sqlite-wal"])
        for name in names {
            let mode = try FileManager.default.attributesOfItem(atPath: "\(self.folder)/\(name)")[.posixPermissions]
            #expect((mode as? NSNumber)?.intValue == 0o600, "\(name)")
        }
        _ = try file.read()
    }

    @Test func filesOfAnEarlierDaemonsLogBecomePrivate() throws {
        defer { self.removeFolder() }
        let earlier = try JournalFile(self.path)
        try earlier.write(Self.rows)
        let files = try FileManager.default.contentsOfDirectory(atPath: self.folder).map { "\(self.folder)/\($0)" }
        #expect(files.count == 3)
        for file in files { try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file) }
        #expect(try JournalFile(self.path).read() == Self.rows)
        for file in files {
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
            #expect((mode as? NSNumber)?.intValue == 0o600, "\(file)")
        }
        _ = try earlier.read()
    }

    @Test func missingLibraryNamesItsPackage() throws {
        defer { self.removeFolder() }
        do {
            _ = try JournalFile(self.path, library: "libsqlite-none.so.0")
            Issue.record("opened without a library")
        } catch {
            #expect(error.description.contains("libsqlite-none.so.0") && error.description.contains("libsqlite3-0"))
        }
    }
}
