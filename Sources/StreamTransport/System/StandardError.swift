import CLinux

/// The process's own output. A reader may be slow or asleep: who must not wait calls these on a thread that may.
package enum StandardError {
    /// Writes all of `bytes`, waiting if the reader is slow.
    /// - Returns: `nil`, or why the rest could not be written (a full disk, a closed pipe).
    package static func write(_ bytes: [UInt8]) -> SystemError? {
        StandardOutput.write(bytes, to: 2)
    }
}

package enum StandardOutput {
    /// Writes all of `bytes`, waiting if the reader is slow.
    /// - Returns: `nil`, or why the rest could not be written (a full disk, a closed pipe).
    package static func write(_ bytes: [UInt8]) -> SystemError? {
        self.write(bytes, to: 1)
    }

    fileprivate static func write(_ bytes: [UInt8], to descriptor: Int32) -> SystemError? {
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
                // Whoever gave us the descriptor set it not to wait.
                case .wouldBlock:
                    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = unsafe poll(&wanted, 1, -1)
                case let error: return error
                }
            }
            return nil
        }
    }
}
