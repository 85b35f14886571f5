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
