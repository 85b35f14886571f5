import Foundation

/// Standard input and output of the process, without blocking a thread of Swift's cooperative pool.
///
/// Reads only on request, and `write` returns when all bytes are written: a caller that awaits both bounds its memory.
final class StandardStreams: Sendable {
    enum ReadResult: Sendable {
        case bytes([UInt8])
        case end
        case failed(String)
    }

    static let readSize = 64 << 10

    // Separate queues, since each may block.
    private let reading = DispatchQueue(label: "standard input")
    private let writing = DispatchQueue(label: "standard output")

    /// Returns the available bytes, at most `readSize`; waits for the first.
    func read() async -> ReadResult {
        if let host = HostProcess.current {
            let bytes = await host.input()
            return bytes.isEmpty ? .end : .bytes(bytes)
        }
        return await withCheckedContinuation { continuation in
            self.reading.async { continuation.resume(returning: Self.readNow()) }
        }
    }

    /// - Throws: `ConnectFailure` when not all could be written.
    func write(_ bytes: [UInt8]) async throws(ConnectFailure) {
        if let host = HostProcess.current {
            guard host.output(bytes) else { throw Self.closedByReader }
            return
        }
        let failure: ConnectFailure? = await withCheckedContinuation { continuation in
            self.writing.async { continuation.resume(returning: Self.writeNow(bytes)) }
        }
        if let failure { throw failure }
    }

    /// Writes all of `bytes` to standard output, and blocks the thread until the reader accepts them.
    /// - Throws: `ConnectFailure` when not all could be written.
    static func writeBlocking(_ bytes: [UInt8]) throws(ConnectFailure) {
        if let host = HostProcess.current {
            guard host.output(bytes) else { throw self.closedByReader }
        } else if let failure = self.writeNow(bytes) {
            throw failure
        }
    }

    private static func readNow() -> ReadResult {
        var buffer = [UInt8](repeating: 0, count: self.readSize)
        while true {
            let count = Foundation.read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 { return .bytes(Array(buffer[..<count])) }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: self.wait(for: STDIN_FILENO, POLLIN)
            // The terminal was closed.
            case EIO: return .end
            default: return .failed(String(cString: strerror(errno)))
            }
        }
    }

    private static func writeNow(_ bytes: [UInt8]) -> ConnectFailure? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count =
                rest.withContiguousStorageIfAvailable { Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count) } ?? 0
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: self.wait(for: STDOUT_FILENO, POLLOUT)
            case EPIPE: return self.closedByReader
            default:
                return ConnectFailure(.inputOrOutput, "standard output: \(String(cString: strerror(errno)))")
            }
        }
        return nil
    }

    private static let closedByReader = ConnectFailure(.inputOrOutput, "standard output was closed by its reader")

    /// Waits for a descriptor that was inherited in non-blocking mode.
    private static func wait(for descriptor: Int32, _ event: Int32) {
        var poll = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        _ = Foundation.poll(&poll, 1, -1)
    }
}
