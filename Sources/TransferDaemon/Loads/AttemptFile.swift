import BackgroundTransfers
import Foundation

/// The file that the content of an attempt is written to. Used on the delegate queue of its session.
struct AttemptFile {
    /// Bytes between two checkpoints, at which the file is brought to the disk.
    static let checkpointInterval: Int64 = 16 << 20
    /// Longest response to an upload, in bytes.
    static let responseLimit: Int64 = 64 << 20

    let name: String
    private let handle: FileHandle
    private(set) var length: Int64
    private(set) var durable: Int64

    /// Opens or creates the file, with mode 0600, and cuts it to `offset`.
    init(_ name: String, in folder: String, at offset: Int64) throws {
        let path = "\(folder)/\(name)"
        let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        self.handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        self.name = name
        self.length = offset
        self.durable = offset
        try self.handle.truncate(atOffset: UInt64(max(0, offset)))
        try self.handle.seek(toOffset: UInt64(max(0, offset)))
    }

    mutating func append(_ data: Data) throws {
        try self.handle.write(contentsOf: data)
        self.length += Int64(data.count)
    }

    /// Brings the content to the disk.
    mutating func synchronize() throws {
        try self.handle.synchronize()
        self.durable = self.length
    }

    /// Size of a file; 0 if there is none.
    static func length(_ path: String) -> Int64 {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : 0
    }
}

/// Identifies the machine's current boot: files keep what a process wrote until the machine stops.
package enum MachineBoot {
    package static let identifier: String = {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? UUID().uuidString
    }()
}
