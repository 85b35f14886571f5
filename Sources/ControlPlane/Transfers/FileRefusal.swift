import Foundation
import StreamTransport

/// What the system said about a file.
struct FileRefusal: Error, Equatable, CustomStringConvertible {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    var description: String {
        switch self.number {
        case ENOENT: "there is no such file or directory"
        case EEXIST: "there is a file already"
        case EACCES, EPERM, EROFS: "this user may not do that"
        case ELOOP, ENOTDIR: "the path leads through a symbolic link, or through what is no directory"
        case EINVAL, EISDIR, ENXIO: "it is no regular file"
        case EMFILE: "\(SystemError.processDescriptorsExhausted)"
        default: String(cString: strerror(self.number))
        }
    }

    /// - Parameter pointer: which member of the body named the file.
    func problem(_ path: String, at pointer: String) -> ControlProblem {
        let (status, code) =
            switch self.number {
            case ENOENT: (422, "no-such-file")
            case EEXIST: (409, "file-exists")
            case EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EINVAL, EISDIR, ENXIO: (403, "path-not-allowed")
            default: (409, "file-unusable")
            }
        return ControlProblem(status, code, "\(path.prefix(256)): \(self.description).").at(pointer: pointer)
    }
}
