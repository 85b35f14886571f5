import SessionTasks
import StreamTransport

extension WebSocketTask {
    /// A task is made where it lives: on its loop.
    static func make(_ opening: ClientOpening, on loop: Loop, options: WebSocketOptions) async -> WebSocketTask {
        await withCheckedContinuation { continuation in
            loop.execute {
                continuation.resume(returning: WebSocketTask(opening: opening, on: loop, options: options))
            }
        }
    }

    /// How the task ended. Returns once the connection is closed, or after about 5 s: if the process ended earlier, the
    /// kernel would reset a connection with unread input, and our last frame would be lost.
    func end() async throws -> WebSocketEnd {
        let end = await self.taskEnd()
        for _ in 0..<5000 {
            guard await self.isConnectionLeft() else { break }
            try await Task.sleep(for: .milliseconds(1))
        }
        return end
    }

    private func isConnectionLeft() async -> Bool {
        await withCheckedContinuation { continuation in
            self.loop.execute { continuation.resume(returning: self.loop.watchedCount > 0) }
        }
    }

    private func taskEnd() async -> WebSocketEnd {
        await withCheckedContinuation { continuation in
            self.loop.execute { self.whenEnded { continuation.resume(returning: $0) } }
        }
    }
}
