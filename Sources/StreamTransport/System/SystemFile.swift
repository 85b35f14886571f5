import CLinux
import Synchronization

/// Small files, read whole.
package enum SystemFile {
    /// - Parameters:
    ///   - limit: a longer file is not read.
    ///   - waits: whether a FIFO is read to its end; otherwise it is refused.
    /// - Throws: `SystemError`; `EFBIG` above the limit, `fifo` for a FIFO that is refused.
    package static func read(_ path: String, limit: Int, waits: Bool = false) throws(SystemError) -> [UInt8] {
        let descriptor = unsafe sluice_open_for_reading(path, waits ? 1 : 0)
        guard descriptor >= 0 else { throw .last }
        defer { _ = CLinux.close(descriptor) }
        var contents: [UInt8] = []
        while contents.count <= limit {
            var failed = false
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, used in
                let count = unsafe CLinux.read(descriptor, buffer.baseAddress, buffer.count)
                failed = count < 0
                used = max(0, count)
            }
            if failed {
                guard SystemError.last == .interrupted else { throw .last }
                continue
            }
            guard !piece.isEmpty else { return contents }
            contents.append(contentsOf: piece)
        }
        throw SystemError(EFBIG)
    }

    /// - Parameter path: links are followed.
    package static func version(_ path: String) throws(SystemError) -> FileVersion {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw .last }
        let kind: OpenFile.Kind =
            switch status.st_mode & 0o170000 {
            case 0o100000: .regular
            case 0o040000: .folder
            default: .other
            }
        return FileVersion(
            kind: kind, inode: UInt64(status.st_ino), size: Int64(status.st_size),
            modified: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
    }
}

/// Identifies a version of a file: changes when it is written or replaced.
package struct FileVersion: Hashable, Sendable {
    package let kind: OpenFile.Kind
    package let inode: UInt64
    /// In bytes.
    package let size: Int64
    /// Nanoseconds since 1970; after 2262 and before 1677 with an overflow, which leaves changes visible.
    package let modified: Int64
}

/// The process's own output. A reader may be slow or stopped: call these on a thread that may block.
package enum StandardError {
    /// Whether the last write failed within a line.
    private static let endsWithinLine = Atomic<Bool>(false)

    /// Writes all of `bytes`, waiting if the reader is slow. After a write that failed within a line it begins with a line
    /// feed.
    /// - Returns: `nil`, or why the rest could not be written (a full disk, a closed pipe).
    package static func write(_ bytes: [UInt8]) -> SystemError? {
        let lineFeed = UInt8(ascii: "\n")
        let bytes = self.endsWithinLine.load(ordering: .relaxed) ? [lineFeed] + bytes : bytes
        let (count, error) = StandardOutput.write(bytes, to: 2)
        if count > 0 { self.endsWithinLine.store(error != nil && bytes[count - 1] != lineFeed, ordering: .relaxed) }
        return error
    }
}

package enum StandardOutput {
    /// Writes all of `bytes`, waiting if the reader is slow.
    /// - Returns: `nil`, or why the rest could not be written (a full disk, a closed pipe).
    package static func write(_ bytes: [UInt8]) -> SystemError? {
        self.write(bytes, to: 1).error
    }

    /// - Returns: the number of bytes written, and why the rest could not be.
    fileprivate static func write(_ bytes: [UInt8], to descriptor: Int32) -> (count: Int, error: SystemError?) {
        unsafe bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
                let count = unsafe CLinux.write(descriptor, rest.baseAddress, rest.count)
                if count >= 0 {
                    offset += count
                    continue
                }
                switch SystemError.last {
                case .interrupted: continue
                // The descriptor was inherited in non-blocking mode.
                case .wouldBlock:
                    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = unsafe poll(&wanted, 1, -1)
                case let error: return (offset, error)
                }
            }
            return (offset, nil)
        }
    }
}
