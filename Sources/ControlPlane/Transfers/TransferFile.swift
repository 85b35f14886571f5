import CLinux
import Foundation
import StreamTransport

/// A file that a transfer may read or write, below a directory of the configuration. Neither `..` nor a symbolic link can
/// escape the directory: each path component is opened relative to its parent.
struct TransferFile: Sendable {
    private static let lengthLimit = 4096

    let path: String
    private let root: String
    /// Path components below the root; at least one.
    private let components: [String]

    /// - Parameter pointer: to the member of the body with the path.
    /// - Throws: `ControlProblem` for a path that is not below one of `directories`, or is not normalized.
    init(_ path: String, below directories: [String], at pointer: String) throws(ControlProblem) {
        guard !directories.isEmpty else {
            throw ControlProblem(
                403, "path-not-allowed", "Files are not allowed: control.transfers.directories is empty."
            ).at(pointer: pointer)
        }
        let components = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        guard path.hasPrefix("/"), path.utf8.count <= Self.lengthLimit,
            !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            components.allSatisfy({ !["", ".", ".."].contains($0) && $0.utf8.count <= 255 })
        else {
            throw ControlProblem(
                403, "path-not-allowed",
                """
                The path must begin with / and have no control characters, no empty segments, and no segments \
                "." or "..".
                """
            ).at(pointer: pointer)
        }
        let match = directories.map { ($0, $0.split(separator: "/").map(String.init)) }.first { root in
            components.count > root.1.count && components.starts(with: root.1)
        }
        guard let (root, rootComponents) = match else {
            throw ControlProblem(
                403, "path-not-allowed", "The path must be below one of \(directories.joined(separator: ", "))."
            )
            .at(pointer: pointer)
        }
        self.path = path
        self.root = root
        self.components = Array(components.dropFirst(rootComponents.count))
    }

    private var name: String { self.components[self.components.count - 1] }

    /// Opens the directory that contains the file.
    private func parent() throws(FileError) -> OpenFile {
        var directory = try OpenFile(open(self.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        for component in self.components.dropLast() {
            directory = try OpenFile(
                openat(directory.descriptor, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
        }
        return directory
    }

    func openForReading() throws(FileError) -> OpenFile {
        let directory = try self.parent()
        let file = try OpenFile(
            openat(directory.descriptor, self.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))
        _ = try file.length()
        return file
    }

    func checkWritable(overwrites: Bool) throws(FileError) {
        let directory = try self.parent()
        guard faccessat(directory.descriptor, ".", W_OK, 0) == 0 else { throw FileError(errno) }
        var status = stat()
        guard fstatat(directory.descriptor, self.name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(EINVAL) }
        if !overwrites { throw FileError(EEXIST) }
    }

    /// - Parameter tag: distinguishes the temporary file from others; `nil` chooses one.
    func makeOutput(tag: String? = nil) throws(FileError) -> TransferOutput {
        TransferOutput(try self.parent(), name: self.name, tag: tag)
    }
}

/// The destination of a download. It is written under a temporary name, so that the destination never shows a partial
/// file.
final class TransferOutput: Sendable {
    private static let chunkSize = 1 << 20
    private static let mode: mode_t = 0o640

    private let directory: OpenFile
    private let name: String
    private let temporaryName: String
    /// Whether the file is on the disk when it is published, since its source is removed then.
    private let isDurable: Bool

    fileprivate init(_ directory: OpenFile, name: String, tag: String?) {
        self.directory = directory
        self.name = name
        self.isDurable = tag != nil
        self.temporaryName = ".sluice-\(tag ?? String(Machine.randomWords(1).first ?? 0, radix: 36)).part"
        // Left by a process that was killed.
        if tag != nil { self.discard() }
    }

    /// Links the file at `path` instead of copying it.
    /// - Returns: `false` on failure, such as for another file system.
    func link(_ path: String) -> Bool {
        guard linkat(AT_FDCWD, path, self.directory.descriptor, self.temporaryName, 0) == 0 else { return false }
        _ = fchmodat(self.directory.descriptor, self.temporaryName, Self.mode, 0)
        return true
    }

    /// Blocks the thread.
    func copy(_ source: OpenFile) throws(FileError) {
        let target = try OpenFile(
            openat(
                self.directory.descriptor, self.temporaryName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                Self.mode)
        )
        var offset: Int64 = 0
        while true {
            let bytes = try source.read(Self.chunkSize, at: offset)
            guard !bytes.isEmpty else { break }
            try target.write(bytes)
            offset += Int64(bytes.count)
        }
        if self.isDurable, fsync(target.descriptor) != 0 { throw FileError(errno) }
    }

    /// Gives the file its final name.
    func publish(overwrites: Bool) throws(FileError) {
        let directory = self.directory.descriptor
        let isDone =
            overwrites
            ? renameat(directory, self.temporaryName, directory, self.name) == 0
            : linkat(directory, self.temporaryName, directory, self.name, 0) == 0
        guard isDone else { throw FileError(errno) }
        // A second link to a file is not renamed to the first (rename(2)).
        if !overwrites || self.isDurable { self.discard() }
        if self.isDurable, fsync(directory) != 0 { throw FileError(errno) }
    }

    /// Whether the destination has the content of the file at `path` already.
    func isPublished(_ path: String) throws(FileError) -> Bool {
        let (source, target) = (
            try OpenFile(open(path, O_RDONLY | O_CLOEXEC)),
            try OpenFile(openat(self.directory.descriptor, self.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))
        )
        guard try source.length() == target.length() else { return false }
        var offset: Int64 = 0
        while true {
            let piece = try source.read(Self.chunkSize, at: offset)
            guard try piece == target.read(Self.chunkSize, at: offset) else { return false }
            guard !piece.isEmpty else { return true }
            offset += Int64(piece.count)
        }
    }

    /// Removes the temporary file.
    func discard() {
        unlinkat(self.directory.descriptor, self.temporaryName, 0)
    }
}

/// Owns a file descriptor.
final class OpenFile: Sendable {
    let descriptor: Int32

    /// - Parameter descriptor: the result of a system call; negative on failure.
    init(_ descriptor: Int32) throws(FileError) {
        guard descriptor >= 0 else { throw FileError(errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            close(descriptor)
            throw FileError(EMFILE)
        }
        self.descriptor = descriptor
    }

    deinit {
        close(self.descriptor)
    }

    /// A path to the same file, even if it was renamed or unlinked.
    var path: String { "/proc/self/fd/\(self.descriptor)" }

    /// The length in bytes.
    /// - Throws: for anything but a regular file.
    func length() throws(FileError) -> Int64 {
        var status = stat()
        guard fstat(self.descriptor, &status) == 0 else { throw FileError(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(EINVAL) }
        return Int64(status.st_size)
    }

    /// - Returns: at most `count` bytes; empty at the end of the file.
    func read(_ count: Int, at offset: Int64) throws(FileError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            let received = pread(self.descriptor, &bytes, count, off_t(offset))
            if received >= 0 { return Array(bytes.prefix(received)) }
            if errno != EINTR { throw FileError(errno) }
        }
    }

    func write(_ bytes: [UInt8]) throws(FileError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Foundation.write(self.descriptor, Array(rest), rest.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw FileError(errno)
            }
        }
    }
}

/// A failed system call on a file.
struct FileError: Error, Equatable, CustomStringConvertible {
    enum Kind {
        case missing, exists, unusable
        /// No permission, a symbolic link, or not a regular file.
        case notAllowed
    }

    private let errorNumber: Int32

    var kind: Kind {
        switch self.errorNumber {
        case ENOENT: .missing
        case EEXIST: .exists
        case EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EINVAL, EISDIR, ENXIO: .notAllowed
        default: .unusable
        }
    }

    init(_ number: Int32) {
        self.errorNumber = number
    }

    var description: String {
        switch self.errorNumber {
        case ENOENT: "no such file or directory"
        case EEXIST: "the file exists already"
        case EACCES, EPERM, EROFS: "permission denied"
        case ELOOP, ENOTDIR: "the path contains a symbolic link, or a component that is not a directory"
        case EINVAL, EISDIR, ENXIO: "not a regular file"
        case EMFILE: "\(SystemError.processDescriptorsExhausted)"
        default: String(cString: strerror(self.errorNumber))
        }
    }
}
