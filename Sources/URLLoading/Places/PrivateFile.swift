import Foundation

/// Files that only their owner may read.
enum PrivateFile {
    /// Puts `data` in the place of what is at `url`, in one step and with mode 0600; makes the folders that are missing.
    /// - Returns: whether that worked; if not, what was there is still there.
    static func write(_ data: Data, to url: URL) -> Bool {
        let files = FileManager.default
        let folder = url.deletingLastPathComponent()
        try? files.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let draft = folder.appendingPathComponent("\(self.draftPrefix)\(UUID().uuidString)")
        // Made empty with its mode first, so that the content is at no moment there for others.
        guard files.createFile(atPath: draft.path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            return false
        }
        do {
            let handle = try FileHandle(forWritingTo: draft)
            try handle.write(contentsOf: data)
            try handle.close()
            guard rename(draft.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
            return true
        } catch {
            try? files.removeItem(at: draft)
            return false
        }
    }

    /// How the names of files begin that are not finished.
    static let draftPrefix = ".draft-"
}
