import CLinux

/// The process's own output for logs.
package enum StandardError {
    /// Writes all of `bytes`, waiting if the reader is slow.
    /// - Returns: `nil`, or why the rest could not be written (a full disk, a closed pipe).
    package static func write(_ bytes: [UInt8]) -> SystemError? {
        unsafe bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[offset...])
                let count = unsafe CLinux.write(2, rest.baseAddress, rest.count)
                if count >= 0 {
                    offset += count
                } else if SystemError.last != .interrupted {
                    return .last
                }
            }
            return nil
        }
    }
}
