import Foundation
import StreamTransport

/// What was received, on its way to its place: complete or not there at all for whoever looks at the directory.
final class TransferDraft: Sendable {
    private static let pieceSize = 1 << 20
    /// For its owner to write, for its group to read.
    private static let mode: mode_t = 0o640

    private let folder: OpenFile
    private let name: String
    private let draftName: String

    init(_ folder: OpenFile, name: String) {
        self.folder = folder
        self.name = name
        self.draftName = ".sluice-\(String(Machine.randomWords(1).first ?? 0, radix: 36)).part"
    }

    /// Takes the file at `path` without copying it, which works within one file system.
    /// - Returns: whether that worked.
    func link(_ path: String) -> Bool {
        guard linkat(AT_FDCWD, path, self.folder.descriptor, self.draftName, 0) == 0 else { return false }
        _ = fchmodat(self.folder.descriptor, self.draftName, Self.mode, 0)
        return true
    }

    /// Copies; takes as long as the disk does.
    func copy(_ source: OpenFile) throws(FileRefusal) {
        let target = try OpenFile(
            openat(
                self.folder.descriptor, self.draftName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, Self.mode)
        )
        var offset: Int64 = 0
        while true {
            let bytes = try source.read(Self.pieceSize, at: offset)
            guard !bytes.isEmpty else { return }
            try target.write(bytes)
            offset += Int64(bytes.count)
        }
    }

    /// Gives the draft its name.
    func publish(overwrites: Bool) throws(FileRefusal) {
        let folder = self.folder.descriptor
        let isDone =
            overwrites
            ? renameat(folder, self.draftName, folder, self.name) == 0
            : linkat(folder, self.draftName, folder, self.name, 0) == 0
        guard isDone else { throw FileRefusal(errno) }
        if !overwrites { self.discard() }
    }

    /// Takes the draft away.
    func discard() {
        unlinkat(self.folder.descriptor, self.draftName, 0)
    }
}
