import CLinux
import Foundation
import HTTPTypes
import StreamTransport

/// A file that a transfer may touch: below a directory that the configuration names. Neither `..` nor a symbolic link
/// leads out of it: each step is opened from the one before.
struct TransferFile: Sendable {
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
    private func parent() throws(FileError) -> OpenFile {
        var folder = try OpenFile(open(self.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        for step in self.steps.dropLast() {
            folder = try OpenFile(openat(folder.descriptor, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
        }
        return folder
    }

    /// The file, to be read.
    func openForReading() throws(FileError) -> OpenFile {
        let folder = try self.parent()
        let file = try OpenFile(
            openat(folder.descriptor, self.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))
        _ = try file.length()
        return file
    }

    /// Looks whether a file can be put here.
    func checkWritable(overwrites: Bool) throws(FileError) {
        let folder = try self.parent()
        guard faccessat(folder.descriptor, ".", W_OK, 0) == 0 else { throw FileError(errno) }
        var facts = stat()
        guard fstatat(folder.descriptor, self.name, &facts, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw FileError(EINVAL) }
        if !overwrites { throw FileError(EEXIST) }
    }

    // MARK: Putting a file here

    /// A file beside the place, which nobody knows by its own name yet.
    func makeOutput() throws(FileError) -> TransferOutput {
        TransferOutput(try self.parent(), name: self.name)
    }
}

/// An open descriptor, closed when nobody holds it any more.
final class OpenFile: Sendable {
    let descriptor: Int32

    /// - Parameter descriptor: what a call of the system gave; negative where it failed.
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

    /// A path under which the same file can be opened once more, whatever became of its name.
    var path: String { "/proc/self/fd/\(self.descriptor)" }

    /// In bytes.
    /// - Throws: for anything but a regular file.
    func length() throws(FileError) -> Int64 {
        var facts = stat()
        guard fstat(self.descriptor, &facts) == 0 else { throw FileError(errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw FileError(EINVAL) }
        return Int64(facts.st_size)
    }

    /// At most `count` bytes from `offset` on; none at the end.
    func read(_ count: Int, at offset: Int64) throws(FileError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            let got = pread(self.descriptor, &bytes, count, off_t(offset))
            if got >= 0 { return Array(bytes.prefix(got)) }
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

/// What the system said about a file.
struct FileError: Error, Equatable, CustomStringConvertible {
    let errorNumber: Int32

    init(_ number: Int32) {
        self.errorNumber = number
    }

    var description: String {
        switch self.errorNumber {
        case ENOENT: "there is no such file or directory"
        case EEXIST: "there is a file already"
        case EACCES, EPERM, EROFS: "this user may not do that"
        case ELOOP, ENOTDIR: "the path leads through a symbolic link, or through what is no directory"
        case EINVAL, EISDIR, ENXIO: "it is no regular file"
        case EMFILE: "\(SystemError.processDescriptorsExhausted)"
        default: String(cString: strerror(self.errorNumber))
        }
    }

    /// - Parameter pointer: which member of the body named the file.
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

/// The part of some content that a request asks for (RFC 9110 §14.2): one range, or all of it.
package struct ContentRange: Sendable, Equatable {
    package let start: Int64
    /// Behind the last byte.
    package let end: Int64
    private let length: Int64
    private let isPart: Bool

    /// - Parameter field: the value of `Range`; one of several ranges, or of another unit, is passed over.
    /// - Throws: `ControlProblem` 416 for a range that holds nothing.
    package init(_ field: String?, length: Int64) throws(ControlProblem) {
        self.length = length
        guard let (first, last) = Self.parse(field) else {
            (self.start, self.end, self.isPart) = (0, length, false)
            return
        }
        switch (first, last) {
        case (let first?, let last): (self.start, self.end) = (first, min(length, (last ?? length - 1) &+ 1))
        case (nil, let count): (self.start, self.end) = (max(0, length - (count ?? 0)), length)
        }
        self.isPart = true
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
        // What is written must be a number, and the last not before the first.
        guard parts[0].isEmpty || first != nil, parts[1].isEmpty || last != nil else { return nil }
        if let first, let last, last < first { return nil }
        if last == .max { return nil }
        return (first, last)
    }

    package var status: HTTPResponse.Status { self.isPart ? .partialContent : .ok }

    package var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "application/octet-stream", .cacheControl: "no-store", .acceptRanges: "bytes",
            .contentDisposition: "attachment", .xContentTypeOptions: "nosniff",
        ]
        if self.isPart { headers[.contentRange] = "bytes \(self.start)-\(self.end - 1)/\(self.length)" }
        return headers
    }
}
