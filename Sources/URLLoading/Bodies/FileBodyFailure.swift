import Foundation
import StreamTransport

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
