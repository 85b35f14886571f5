import Foundation

/// Standard input and output of the process, without a thread of Swift's pool waiting for them.
///
/// Nothing is read before it is asked for, and a write returns when it is done: who awaits both bounds what is in memory.
final class StandardStreams: Sendable {
    enum Piece: Sendable {
        case bytes([UInt8])
        case end
        case failed(String)
    }

    static let pieceSize = 64 << 10

    // A queue each, since each may wait for long.
    private let reading = DispatchQueue(label: "standard input")
    private let writing = DispatchQueue(label: "standard output")

    /// What is there, at most `pieceSize` bytes; waits for something.
    func read() async -> Piece {
        await withCheckedContinuation { continuation in
            self.reading.async { continuation.resume(returning: Self.readNow()) }
        }
    }

    /// - Throws: `ConnectFailure` when not all could be written.
    func write(_ bytes: [UInt8]) async throws(ConnectFailure) {
        let failure: ConnectFailure? = await withCheckedContinuation { continuation in
            self.writing.async { continuation.resume(returning: Self.writeNow(bytes)) }
        }
        if let failure { throw failure }
    }

    private static func readNow() -> Piece {
        var buffer = [UInt8](repeating: 0, count: self.pieceSize)
        while true {
            let count = Foundation.read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 { return .bytes(Array(buffer[..<count])) }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: self.wait(for: STDIN_FILENO, POLLIN)
            // A terminal whose other side is gone.
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
            case EPIPE: return ConnectFailure(.inputOrOutput, "nobody reads standard output any more")
            default:
                return ConnectFailure(.inputOrOutput, "standard output: \(String(cString: strerror(errno)))")
            }
        }
        return nil
    }

    /// Whoever gave us the descriptor set it not to wait.
    private static func wait(for descriptor: Int32, _ event: Int32) {
        var poll = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        _ = Foundation.poll(&poll, 1, -1)
    }
}
