import GatewayCore
import SessionTasks
import StreamTransport

extension TunnelLink {
    var loop: Loop {
        switch self {
        case .stream(let task): task.loop
        case .webSocket(let task): task.loop
        }
    }

    /// Does something to the task on its loop, and returns when it is done.
    func onLoop(_ body: @escaping @Sendable (TunnelLink) -> Void) async {
        await withCheckedContinuation { continuation in
            self.loop.execute {
                body(self)
                continuation.resume()
            }
        }
    }
}
