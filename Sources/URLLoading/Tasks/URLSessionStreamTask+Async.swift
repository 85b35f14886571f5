import Foundation
import SessionTasks

extension URLSessionStreamTask {
    /// As `readData(ofMinLength:maxLength:timeout:completionHandler:)`, without the delegate queue between.
    ///
    /// Cancelling the Swift task withdraws the read: bytes that had come for it go to the next.
    /// - Throws: `URLError`.
    public func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        guard let connection else { throw self.refusal }
        let chunk = try await connection.read(minBytes, maxBytes, timeout: timeout)
        return (Data(chunk.bytes), chunk.isAtEnd)
    }

    /// As `write(_:timeout:completionHandler:)`, without the delegate queue between.
    ///
    /// Cancelling the Swift task withdraws the write if it had not begun; one that has begun runs to its end.
    /// - Throws: `URLError`.
    public func write(_ data: Data, timeout: TimeInterval) async throws {
        guard let connection else { throw self.refusal }
        try await connection.write(data, timeout: timeout)
    }
}
