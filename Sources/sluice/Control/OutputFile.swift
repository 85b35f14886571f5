import ControlClient
import Foundation

/// A file here for what comes from the gateway. A plain file appears once it is whole; a device, a pipe or a link is written
/// into.
struct OutputFile {
    private let path: String
    /// Where it is written; `nil`: into `path` itself.
    private let draft: String?
    private let handle: FileHandle

    init(_ path: String) throws(ConnectFailure) {
        self.path = path
        let kind = (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
        guard kind != .typeDirectory else { throw Self.failure(path, "it is a directory") }
        self.draft = kind == nil || kind == .typeRegular ? path + ".part" : nil
        if let draft, !FileManager.default.createFile(atPath: draft, contents: nil) {
            throw Self.failure(draft, String(cString: strerror(errno)))
        }
        do {
            self.handle = try FileHandle(forWritingTo: URL(fileURLWithPath: self.draft ?? path))
        } catch {
            throw Self.failure(path, error.localizedDescription)
        }
        // What cannot be cut, like a pipe, is empty.
        if self.draft == nil { try? self.handle.truncate(atOffset: 0) }
    }

    func write(_ bytes: [UInt8]) throws(ConnectFailure) {
        do {
            try self.handle.write(contentsOf: bytes)
        } catch {
            throw Self.failure(self.path, error.localizedDescription)
        }
    }

    /// It is whole.
    func finish() throws(ConnectFailure) {
        do {
            try self.handle.close()
        } catch {
            throw Self.failure(self.path, error.localizedDescription)
        }
        guard let draft, rename(draft, self.path) != 0 else { return }
        throw Self.failure(self.path, String(cString: strerror(errno)))
    }

    /// There will be no more of it.
    func discard() {
        try? self.handle.close()
        if let draft { try? FileManager.default.removeItem(atPath: draft) }
    }

    private static func failure(_ path: String, _ reason: String) -> ConnectFailure {
        ConnectFailure(
            .inputOrOutput, "\(path) cannot be written: \(reason)", remedy: "name another file with --output")
    }
}
