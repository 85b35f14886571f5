import CLinux
import Foundation

/// A file that a transfer may touch: below a directory that the configuration names. Neither `..` nor a symbolic link
/// leads out of it: each step is opened from the one before.
struct TransferPlace: Sendable {
    private static let lengthLimit = 4096

    let path: String
    private let root: String
    /// From the root down; at least one.
    private let steps: [String]

    /// - Parameter pointer: which member of the body names the file.
    /// - Throws: `ControlProblem` for a path that is not below one of `directories`, or is not written plainly.
    init(_ path: String, below directories: [String], at pointer: String) throws(ControlProblem) {
        guard !directories.isEmpty else {
            throw ControlProblem(
                403, "path-not-allowed", "No files may be touched: control.transfers.directories names no directory."
            ).at(pointer: pointer)
        }
        let steps = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        guard path.hasPrefix("/"), path.utf8.count <= Self.lengthLimit,
            !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            steps.allSatisfy({ !["", ".", ".."].contains($0) && $0.utf8.count <= 255 })
        else {
            throw ControlProblem(
                403, "path-not-allowed",
                """
                The path is to begin with /, without empty parts, control characters, and dots for its own or the upper \
                directory.
                """
            ).at(pointer: pointer)
        }
        let fitting = directories.map { ($0, $0.split(separator: "/").map(String.init)) }.first { root in
            steps.count > root.1.count && steps.starts(with: root.1)
        }
        guard let (root, above) = fitting else {
            throw ControlProblem(
                403, "path-not-allowed", "The path is below none of \(directories.joined(separator: ", "))."
            )
            .at(pointer: pointer)
        }
        self.path = path
        self.root = root
        self.steps = Array(steps.dropFirst(above.count))
    }

    private var name: String { self.steps[self.steps.count - 1] }

    /// The directory that the file is in.
    private func parent() throws(FileRefusal) -> OpenFile {
        var folder = try OpenFile(open(self.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        for step in self.steps.dropLast() {
            folder = try OpenFile(openat(folder.descriptor, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
        }
        return folder
    }

    /// The file, to be read.
    func opened() throws(FileRefusal) -> OpenFile {
        let folder = try self.parent()
        let file = try OpenFile(
            openat(folder.descriptor, self.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))
        _ = try file.length()
        return file
    }

    /// Looks whether a file can be put here.
    func checkFree(overwrites: Bool) throws(FileRefusal) {
        let folder = try self.parent()
        guard faccessat(folder.descriptor, ".", W_OK, 0) == 0 else { throw FileRefusal(errno) }
        var facts = stat()
        guard fstatat(folder.descriptor, self.name, &facts, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw FileRefusal(EINVAL) }
        if !overwrites { throw FileRefusal(EEXIST) }
    }

    // MARK: Putting a file here

    /// A file beside the place, which nobody knows by its own name yet.
    func draft() throws(FileRefusal) -> TransferDraft {
        TransferDraft(try self.parent(), name: self.name)
    }
}
