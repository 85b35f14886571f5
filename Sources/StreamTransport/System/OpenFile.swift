import ByteKernels
import CLinux

/// A folder whose files are opened by relative names, none of which leads out of it.
///
/// Links within the folder are followed where the kernel has openat2(2) (Linux 5.6), which checks each step; links that
/// are absolute or lead out are refused. Elsewhere no link is followed.
package final class OpenFolder {
    /// How names are resolved.
    package enum Resolution: Sendable {
        /// By the kernel in one call; stepwise where it cannot.
        case kernel
        /// Segment by segment, following no link.
        case stepwise
    }

    /// A folder that changes under a call makes it fail with `EAGAIN`; so often it is repeated.
    private static let attempts = 4

    private let number: Int32
    private let resolution: Resolution
    private let reserve: DescriptorReserve

    /// - Parameter path: links are followed, and may be absolute.
    /// - Throws: `ENOTDIR` for a file; `EMFILE` also where only the process's reserve of descriptors is left.
    package init(
        _ path: String, resolution: Resolution = .kernel, reserve: DescriptorReserve = .process
    ) throws(SystemError) {
        guard reserve.hasCapacity else { throw .processDescriptorsExhausted }
        self.number = try Self.admitted(unsafe sluice_open_folder(path), by: reserve)
        self.resolution = resolution
        self.reserve = reserve
    }

    deinit {
        _ = CLinux.close(self.number)
    }

    /// Opens a file or folder for reading; never waits, not for a FIFO either.
    /// - Parameter name: relative, with `/` between segments; empty is the folder itself.
    /// - Throws: `leadsOut` for a name that leads out of the folder, itself or by a link; `tooManyLinks` also for a link
    ///   that is not followed; `EMFILE` also where only the process's reserve of descriptors is left.
    package func open(_ name: String) throws(SystemError) -> OpenFile {
        guard self.reserve.hasCapacity else { throw .processDescriptorsExhausted }
        // A name of the C library ends at its first zero byte.
        guard !name.utf8.contains(0), !name.hasPrefix("/") else { throw .leadsOut }
        return try OpenFile(adopting: Self.admitted(self.openBeneath(name.isEmpty ? "." : name), by: self.reserve))
    }

    private func openBeneath(_ name: String) -> Int32 {
        guard case .kernel = self.resolution else { return unsafe sluice_open_stepwise(self.number, name) }
        for _ in 0..<Self.attempts {
            let opened = unsafe sluice_open_beneath(self.number, name)
            guard opened < 0 else { return opened }
            switch sluice_errno() {
            case EAGAIN, EINTR: continue
            // No such call, or a filter of system calls that does not know it.
            case ENOSYS, EPERM: return unsafe sluice_open_stepwise(self.number, name)
            default: return opened
            }
        }
        return -1
    }

    private static func admitted(_ opened: Int32, by reserve: DescriptorReserve) throws(SystemError) -> Int32 {
        guard opened >= 0 else {
            let error = SystemError.last
            if error == .processDescriptorsExhausted { reserve.exhausted() }
            throw error
        }
        guard reserve.admits(opened) else {
            _ = CLinux.close(opened)
            throw .processDescriptorsExhausted
        }
        return opened
    }
}

/// A file or folder open for reading, closed with its last reference.
package final class OpenFile {
    package enum Kind: Hashable, Sendable {
        case regular
        case folder
        /// A device, FIFO or socket.
        case other
    }

    package let kind: Kind
    /// In bytes, when it was opened.
    package let size: Int64
    /// Nanoseconds since 1970, when it was opened.
    package let modified: Int64
    package let inode: UInt64
    let number: Int32

    /// - Throws: `SystemError`; the descriptor is closed then.
    fileprivate init(adopting number: Int32) throws(SystemError) {
        var (size, modified): (Int64, Int64) = (0, 0)
        var inode: UInt64 = 0
        let kind = unsafe sluice_file_status(number, &size, &modified, &inode)
        guard kind >= 0 else {
            let error = SystemError.last
            _ = CLinux.close(number)
            throw error
        }
        self.kind = kind == 1 ? .regular : kind == 2 ? .folder : .other
        self.size = size
        self.modified = modified
        self.inode = inode
        self.number = number
    }

    deinit {
        _ = CLinux.close(self.number)
    }

    /// Reads at most as many bytes as fit, from `offset` on.
    /// - Returns: their number, 0 at the end of the file; a negated error number.
    package func read(into buffer: inout MutableRawSpan, at offset: Int64) -> Int {
        unsafe buffer.withUnsafeMutableBytes { bytes in
            while true {
                let count = unsafe sluice_read_at(self.number, bytes.baseAddress, bytes.count, offset)
                if count >= 0 { return count }
                let error = sluice_errno()
                if error != EINTR { return -Int(error) }
            }
        }
    }

    /// A name in a folder.
    package struct Entry: Hashable, Sendable {
        package let name: String
        /// Not for a link to one.
        package let isFolder: Bool

        package init(name: String, isFolder: Bool) {
            self.name = name
            self.isFolder = isFolder
        }
    }

    /// The names in a folder without `.` and `..`, in the order of the system; those that are not UTF-8 are left out.
    /// - Parameter room: bytes of names read at most; about twenty times as many as names.
    /// - Returns: the entries, and whether these are all.
    package func entries(room: Int = 64 << 10) throws(SystemError) -> (entries: [Entry], isWhole: Bool) {
        var isWhole: Int32 = 1
        var failed = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: max(0, room)) { buffer, used in
            let names = unsafe UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
            let count = unsafe sluice_list_folder(self.number, names, buffer.count, &isWhole)
            failed = count < 0
            used = max(0, count)
        }
        guard !failed else { throw .last }
        let entries = bytes.split(separator: 0).compactMap { record -> Entry? in
            guard let kind = record.first, let name = String(validating: record.dropFirst(), as: UTF8.self) else {
                return nil
            }
            return Entry(name: name, isFolder: kind == UInt8(ascii: "d"))
        }
        return (entries, isWhole == 1)
    }
}
