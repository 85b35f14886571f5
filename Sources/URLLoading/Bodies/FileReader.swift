import Foundation
import StreamTransport

/// Reads a file with the length it has when it is opened: appended bytes are not sent, and truncation is a failure. A file
/// that is removed while open remains readable.
final class FileReader: BodyReader {
    let chunkSize = 256 << 10
    let isRepeatable = true
    /// Of the bytes to send.
    let length: Int64
    let identity: FileIdentity
    private let start: Int64
    private let descriptor: Int32

    /// - Parameter part: what to read of the file, which must be unchanged; `nil` reads the whole file.
    init(_ url: URL, part: FilePart? = nil) throws(FileBodyFailure) {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileBodyFailure(errorNumber: errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            _ = Foundation.close(descriptor)
            throw FileBodyFailure(errorNumber: EMFILE)
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            _ = Foundation.close(descriptor)
            throw isFolder ? .isDirectory : .notAFile
        }
        let identity = FileIdentity(status)
        guard part.map({ $0.identity == identity }) ?? true else {
            _ = Foundation.close(descriptor)
            throw .changed
        }
        self.descriptor = descriptor
        self.identity = identity
        self.start = part?.offset ?? 0
        self.length = part?.length ?? Int64(status.st_size)
        _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    }

    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int {
        let wanted = Int(min(Int64(chunk.count), self.length - offset))
        guard wanted > 0 else { return 0 }
        while true {
            let count = pread(self.descriptor, &chunk, wanted, off_t(self.start + offset))
            if count > 0 { return count }
            guard count < 0 else { throw FileBodyFailure.becameShorter(missing: self.length - offset) }
            let number = errno
            if number != EINTR { throw FileBodyFailure(errorNumber: number) }
        }
    }

    func close() {
        _ = Foundation.close(self.descriptor)
    }
}

/// Identifies a version of a file.
package struct FileIdentity: Equatable, Sendable {
    package let device: UInt64
    package let inode: UInt64
    /// In bytes.
    package let size: Int64
    /// When the content was last modified, in nanoseconds since 1970.
    package let modified: Int64

    package init(device: UInt64, inode: UInt64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }

    init(_ status: stat) {
        self.device = UInt64(status.st_dev)
        self.inode = UInt64(status.st_ino)
        self.size = Int64(status.st_size)
        self.modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
    }
}

/// A part of a file that is sent after another part.
struct FilePart: Equatable, Sendable {
    /// 0 to the file's size.
    let offset: Int64
    let length: Int64
    /// Of the file when its first part was sent.
    let identity: FileIdentity
}

/// A blocking source of a body. Used on the queue of its `ReadAheadBody`, except `isRepeatable`.
protocol BodyReader: AnyObject, Sendable {
    /// Largest read, in bytes.
    var chunkSize: Int { get }
    /// Whether earlier offsets can be read again.
    var isRepeatable: Bool { get }

    /// Reads bytes from `offset` into the front of `chunk`. May block.
    /// - Returns: the number of bytes; 0 at the end.
    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int

    /// Called once, last.
    func close()
}

/// Why a file cannot be sent.
package enum FileBodyFailure: Error, Equatable, Sendable, CustomStringConvertible {
    case notFound
    case isDirectory
    /// A pipe, a device, a socket.
    case notAFile
    case noPermission
    /// The file was changed, or replaced by another one, between two parts of its upload.
    case changed
    /// The file was truncated while it was sent.
    case becameShorter(missing: Int64)
    /// Another `errno`.
    case system(Int32)

    init(errorNumber: Int32) {
        switch errorNumber {
        case ENOENT, ENOTDIR: self = .notFound
        case EISDIR: self = .isDirectory
        case EACCES, EPERM: self = .noPermission
        default: self = .system(errorNumber)
        }
    }

    package var code: URLError.Code {
        switch self {
        case .notFound: .fileDoesNotExist
        case .isDirectory: .fileIsDirectory
        case .noPermission: .noPermissionsToReadFile
        case .notAFile, .changed, .becameShorter, .system: .cannotOpenFile
        }
    }

    /// The system's error, for `NSUnderlyingErrorKey`.
    package var underlying: NSError? {
        switch self {
        case .notFound: Self.posix(ENOENT)
        case .isDirectory: Self.posix(EISDIR)
        case .noPermission: Self.posix(EACCES)
        case .system(let number): Self.posix(number)
        case .notAFile, .changed, .becameShorter: nil
        }
    }

    private static func posix(_ number: Int32) -> NSError {
        NSError(domain: NSPOSIXErrorDomain, code: Int(number))
    }

    package var description: String {
        switch self {
        case .notFound: "the file to upload does not exist"
        case .isDirectory: "the file to upload is a directory"
        case .notAFile: "the file to upload is not a regular file"
        case .noPermission: "no permission to read the file to upload"
        case .changed: "the file to upload was changed since the upload began"
        case .becameShorter(let missing): "the file was truncated during the upload: \(missing) bytes are missing"
        case .system(let number): "the file to upload cannot be read: \(SystemError(number))"
        }
    }
}
