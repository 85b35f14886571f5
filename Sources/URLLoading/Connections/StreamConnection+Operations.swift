import Foundation
import SessionTasks
import StreamTransport

/// What a stream task is asked for, from any thread. Everything takes its place behind what was asked for before.
extension StreamConnection {
    /// - Parameter answer: called on the loop.
    func read(
        _ minimum: Int, _ maximum: Int, timeout: TimeInterval,
        _ answer: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) {
        self.life.loop.execute { self.beginRead(minimum, maximum, timeout, answer) }
    }

    @discardableResult
    private func beginRead(
        _ minimum: Int, _ maximum: Int, _ timeout: TimeInterval,
        _ answer: @escaping @Sendable (Result<StreamTask.Chunk, URLError>) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            answer(.failure(self.life.error(.ended)))
            return nil
        }
        return stream.read(minimum: minimum, maximum: maximum, timeout: Self.limit(timeout)) { result in
            answer(result.mapError { self.life.error($0) })
        }
    }

    func write(_ data: Data, timeout: TimeInterval, _ answer: @escaping @Sendable (URLError?) -> Void) {
        let bytes = [UInt8](data)
        self.life.loop.execute { self.beginWrite(bytes, timeout, answer) }
    }

    @discardableResult
    private func beginWrite(
        _ bytes: [UInt8], _ timeout: TimeInterval, _ answer: @escaping @Sendable (URLError?) -> Void
    ) -> UInt64? {
        guard let stream = self.stream else {
            answer(self.life.error(.ended))
            return nil
        }
        return stream.write(bytes, timeout: Self.limit(timeout)) { answer(self.life.error($0)) }
    }

    /// Seconds, of which none and fewer mean no limit.
    private static func limit(_ timeout: TimeInterval) -> Duration? {
        timeout > 0 ? Duration(timeout: timeout) : nil
    }

    func closeRead() { self.life.loop.execute { self.stream?.closeReadOnLoop() } }
    func closeWrite() { self.life.loop.execute { self.stream?.closeWriteOnLoop() } }

    /// What waits is done, then both directions end.
    func close() {
        self.life.loop.execute {
            self.stream?.closeWriteOnLoop()
            self.stream?.closeReadOnLoop()
        }
    }

    // MARK: For Swift tasks that wait

    /// Cancelling withdraws the read; what had come for it goes to the next.
    func read(_ minimum: Int, _ maximum: Int, timeout: TimeInterval) async throws -> StreamTask.Chunk {
        try await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.beginRead(minimum, maximum, timeout, answer)
        } withdraw: { number in
            self.stream?.withdrawRead(number)
        }.get()
    }

    /// Cancelling withdraws the write unless it has begun.
    func write(_ data: Data, timeout: TimeInterval) async throws {
        let bytes = [UInt8](data)
        let failure: URLError? = await AwaitedOperation.perform(on: self.life.loop) { answer in
            self.beginWrite(bytes, timeout, answer)
        } withdraw: { number in
            self.stream?.withdrawWrite(number)
        }
        if let failure { throw failure }
    }
}
