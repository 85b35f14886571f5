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
}
