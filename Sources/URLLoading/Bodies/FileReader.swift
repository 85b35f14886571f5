import Foundation
import StreamTransport

/// Reads a file that is as long as it was in the beginning: what is added to it later is not sent, and when it becomes
/// shorter that is a failure. A file that is removed meanwhile is still whole for who has it open.
final class FileReader: ChunkReader, @unchecked Sendable {
    let chunkSize = 256 << 10
    let isRepeatable = true
    let length: Int64
    /// Confined to the queue.
    private let descriptor: Int32

    init(_ url: URL) throws(FileBodyFailure) {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileBodyFailure(errorNumber: errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            _ = Foundation.close(descriptor)
            throw FileBodyFailure(errorNumber: EMFILE)
        }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            let isFolder = facts.st_mode & S_IFMT == S_IFDIR
            _ = Foundation.close(descriptor)
            throw isFolder ? .isDirectory : .notAFile
        }
        self.descriptor = descriptor
        self.length = Int64(facts.st_size)
        _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    }

    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int {
        let wanted = Int(min(Int64(chunk.count), self.length - offset))
        guard wanted > 0 else { return 0 }
        while true {
            let count = pread(self.descriptor, &chunk, wanted, off_t(offset))
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

/// Where a body comes from that takes time to read. Used on the queue of the body alone, but for `isRepeatable`.
protocol ChunkReader: AnyObject, Sendable {
    /// Largest piece that it is asked for, in bytes.
    var chunkSize: Int { get }
    /// Whether it may be asked for what is behind it.
    var isRepeatable: Bool { get }

    /// Reads the bytes from `offset` on into the front of `chunk`, waiting for them if need be.
    /// - Returns: how many; 0 at the end.
    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int

    /// Called once, last.
    func close()
}

/// Why a file cannot be sent.
package enum FileBodyFailure: Error, Equatable, Sendable {
    case notFound
    case isDirectory
    /// A pipe, a device, a socket.
    case notAFile
    case noPermission
    /// Somebody cut it off while it was sent.
    case becameShorter(missing: Int64)
    /// Another error number of the system.
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
        case .notAFile, .becameShorter, .system: .cannotOpenFile
        }
    }

    /// What the system said, for `NSUnderlyingErrorKey`.
    package var underlying: NSError? {
        switch self {
        case .notFound: Self.posix(ENOENT)
        case .isDirectory: Self.posix(EISDIR)
        case .noPermission: Self.posix(EACCES)
        case .system(let number): Self.posix(number)
        case .notAFile, .becameShorter: nil
        }
    }

    private static func posix(_ number: Int32) -> NSError {
        NSError(domain: NSPOSIXErrorDomain, code: Int(number))
    }
}

extension FileBodyFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notFound: "the file to be sent is not there"
        case .isDirectory: "what is to be sent is a directory"
        case .notAFile: "what is to be sent is not a regular file"
        case .noPermission: "the file to be sent may not be read"
        case .becameShorter(let missing): "the file became shorter while it was sent: \(missing) bytes are missing"
        case .system(let number): "the file to be sent cannot be read: \(SystemError(number))"
        }
    }
}
