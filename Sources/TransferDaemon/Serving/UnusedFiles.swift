import BackgroundTransfers
import Foundation

/// The files in the sessions' folders that no transfer and no message names: what is left of a daemon or a program that was
/// killed before it removed them.
package struct UnusedFiles {
    private let folders: TransferFolders
    /// Names of the files in use, by the session's folder.
    private var used: [String: Set<String>] = [:]
    /// Tasks whose rows cannot be read: their files are all that is left.
    private var kept: [String: Set<Int>] = [:]

    package init(_ folders: TransferFolders, _ journal: TransferJournal, _ unreadable: [UnreadableRow]) {
        self.folders = folders
        for (name, session) in journal.sessions {
            var files: Set<String> = []
            for transfer in session.transfers.values + session.messages.map(\.end.transfer) {
                files.insert(transfer.contentName)
                if let body = transfer.body { files.insert(body) }
            }
            for message in session.messages { if let file = message.end.file { files.insert(file) } }
            self.used[folders.session(name)] = files
        }
        for row in unreadable {
            // The number of a message is not that of its task: the folder is left as it is.
            let task = row.kind == .transfer ? row.number : -1
            self.kept[folders.session(row.session), default: []].insert(task)
        }
    }

    /// Whether any session's folder has a file.
    package static func exist(in folders: TransferFolders) -> Bool {
        let files = FileManager.default
        return ((try? files.contentsOfDirectory(atPath: folders.transfers)) ?? []).contains { name in
            (try? files.contentsOfDirectory(atPath: "\(folders.transfers)/\(name)"))?.isEmpty == false
        }
    }

    /// Removes those that were changed before `limit`: a program may be about to name a recent one.
    package func remove(before limit: Date) {
        let files = FileManager.default
        for name in (try? files.contentsOfDirectory(atPath: self.folders.transfers)) ?? [] {
            let folder = "\(self.folders.transfers)/\(name)"
            for entry in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where !self.isUsed(entry, in: folder) {
                let attributes = try? files.attributesOfItem(atPath: "\(folder)/\(entry)")
                guard let date = attributes?[.modificationDate] as? Date, date < limit else { continue }
                try? files.removeItem(atPath: "\(folder)/\(entry)")
            }
            // Only if it is empty.
            if self.used[folder] == nil { _ = rmdir(folder) }
        }
    }

    private func isUsed(_ name: String, in folder: String) -> Bool {
        if self.used[folder]?.contains(name) == true { return true }
        guard let kept = self.kept[folder] else { return false }
        // `3.content`, `3-….body`.
        let task = name.prefix { $0.isNumber }
        return kept.contains(-1) || Int(task).map(kept.contains) == true
    }
}
