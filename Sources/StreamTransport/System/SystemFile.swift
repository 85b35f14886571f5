import CLinux

/// Small files, read whole.
package enum SystemFile {
    /// - Parameter limit: a longer file is not read.
    /// - Throws: `SystemError`; `EFBIG` above the limit.
    package static func read(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let descriptor = unsafe sluice_open_for_reading(path)
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
}
