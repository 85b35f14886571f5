import CLinux
import Foundation
import StreamTransport

/// An open descriptor, closed when nobody holds it any more.
final class OpenFile: Sendable {
    let descriptor: Int32

    /// - Parameter descriptor: what a call of the system gave; negative where it failed.
    init(_ descriptor: Int32) throws(FileRefusal) {
        guard descriptor >= 0 else { throw FileRefusal(errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            close(descriptor)
            throw FileRefusal(EMFILE)
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
    func length() throws(FileRefusal) -> Int64 {
        var facts = stat()
        guard fstat(self.descriptor, &facts) == 0 else { throw FileRefusal(errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw FileRefusal(EINVAL) }
        return Int64(facts.st_size)
    }

    /// At most `count` bytes from `offset` on; none at the end.
    func read(_ count: Int, at offset: Int64) throws(FileRefusal) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            let got = pread(self.descriptor, &bytes, count, off_t(offset))
            if got >= 0 { return Array(bytes.prefix(got)) }
            if errno != EINTR { throw FileRefusal(errno) }
        }
    }

    func write(_ bytes: [UInt8]) throws(FileRefusal) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Foundation.write(self.descriptor, Array(rest), rest.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw FileRefusal(errno)
            }
        }
    }
}
