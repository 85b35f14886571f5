import GatewayCore
import SessionTasks
import StreamTransport

extension TunnelLink {
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
