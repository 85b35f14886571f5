import BackgroundTransfers
import Foundation
import Testing
import TransferDaemon

@Suite("Files that nothing names")
struct UnusedFileTests {
    private let root = FileManager.default.temporaryDirectory.appending(path: "UnusedFileTests-\(UUID())").path

    private var folders: TransferFolders { TransferFolders(runtime: "\(self.root)/r", state: "\(self.root)/s") }

    /// Creates files in the folders of sessions.
    private func make(_ files: [String: [String]]) throws {
        for (session, names) in files {
            let folder = self.folders.session(session)
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            for name in names { _ = FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: Data()) }
        }
    }

    private func left(_ session: String) -> [String]? {
        (try? FileManager.default.contentsOfDirectory(atPath: self.folders.session(session)))?.sorted()
    }

    private static func journal() throws -> TransferJournal {
        var journal = try TransferJournalTests.journal()
        _ = journal.request(.create(.sample(1)))
        _ = journal.request(.create(.sample(2, .upload)))
        _ = journal.request(.cancel(task: 2, reason: nil))
        return journal
    }

    @Test func filesOfTransfersAndMessagesStay() throws {
        defer { try? FileManager.default.removeItem(atPath: self.root) }
        try self.make([
            "s": ["1.content", "2.content", "2.body", "3.content", "3-x.body", "other"], "gone": ["1.content"],
        ])
        UnusedFiles(self.folders, try Self.journal(), []).remove(before: Date.distantFuture)
        #expect(self.left("s") == ["1.content", "2.body", "2.content"])
        #expect(self.left("gone") == nil)
    }

    @Test func recentFilesStay() throws {
        defer { try? FileManager.default.removeItem(atPath: self.root) }
        try self.make(["s": ["3.content"], "gone": ["1.content"]])
        UnusedFiles(self.folders, try Self.journal(), []).remove(before: Date(timeIntervalSinceNow: -60))
        #expect(self.left("s") == ["3.content"] && self.left("gone") == ["1.content"])
    }

    @Test func filesOfUnreadableRowsStay() throws {
        defer { try? FileManager.default.removeItem(atPath: self.root) }
        try self.make(["s": ["3.content", "3-x.body", "4.content", "33.content"], "t": ["1.content"]])
        let rows = [
            UnreadableRow(kind: .transfer, session: "s", number: 3, reason: ""),
            UnreadableRow(kind: .message, session: "t", number: 9, reason: ""),
        ]
        UnusedFiles(self.folders, try Self.journal(), rows).remove(before: Date.distantFuture)
        #expect(self.left("s") == ["3-x.body", "3.content"] && self.left("t") == ["1.content"])
    }
}
