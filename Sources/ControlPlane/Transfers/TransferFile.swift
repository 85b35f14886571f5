import CLinux
import Foundation
import HTTPTypes
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
                The path is to begin with /, without empty parts, control characters, and dots for its own or the upper \
                directory.
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

    func makeOutput() throws(FileError) -> TransferOutput {
        TransferOutput(try self.parent(), name: self.name)
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
    let errorNumber: Int32

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

    /// - Parameter pointer: to the member of the body with the path.
    func problem(_ path: String, at pointer: String) -> ControlProblem {
        let (status, code) =
            switch self.errorNumber {
            case ENOENT: (422, "no-such-file")
            case EEXIST: (409, "file-exists")
            case EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EINVAL, EISDIR, ENXIO: (403, "path-not-allowed")
            default: (409, "file-unusable")
            }
        return ControlProblem(status, code, "\(path.prefix(256)): \(self.description).").at(pointer: pointer)
    }
}

/// The requested part of some content (RFC 9110 §14.2): one range, or all of it.
package struct ContentRange: Sendable, Equatable {
    package let start: Int64
    /// Exclusive.
    package let end: Int64
    private let length: Int64
    private let isPartial: Bool

    /// - Parameter field: the value of `Range`; ignored if it has several ranges or another unit.
    /// - Throws: `ControlProblem` 416 for an empty range.
    package init(_ field: String?, length: Int64) throws(ControlProblem) {
        self.length = length
        guard let (first, last) = Self.parse(field) else {
            (self.start, self.end, self.isPartial) = (0, length, false)
            return
        }
        switch (first, last) {
        case (let first?, let last): (self.start, self.end) = (first, min(length, (last ?? length - 1) &+ 1))
        case (nil, let count): (self.start, self.end) = (max(0, length - (count ?? 0)), length)
        }
        self.isPartial = true
        guard self.start < self.end else {
            var problem = ControlProblem(416, "range-not-satisfiable", "The content has \(length) bytes.")
            problem.contentLength = length
            throw problem
        }
    }

    private static func parse(_ field: String?) -> (Int64?, Int64?)? {
        guard let field, field.lowercased().hasPrefix("bytes=") else { return nil }
        let parts = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, parts != ["", ""] else { return nil }
        func number(_ text: String) -> Int64? {
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
        }
        let (first, last) = (number(parts[0]), number(parts[1]))
        guard parts[0].isEmpty || first != nil, parts[1].isEmpty || last != nil else { return nil }
        if let first, let last, last < first { return nil }
        if last == .max { return nil }
        return (first, last)
    }

    package var status: HTTPResponse.Status { self.isPartial ? .partialContent : .ok }

    package var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "application/octet-stream", .cacheControl: "no-store", .acceptRanges: "bytes",
            .contentDisposition: "attachment", .xContentTypeOptions: "nosniff",
        ]
        if self.isPartial { headers[.contentRange] = "bytes \(self.start)-\(self.end - 1)/\(self.length)" }
        return headers
    }
}
