import Foundation
import StreamTransport

/// The signals that steer a gateway, heard by one of its loops. That they end the process in the end depends on no loop.
enum GatewaySignals {
    /// From the first signal to the end at the latest, while the gateway starts.
    private static let startPatience = Duration.seconds(5)
    /// What may follow the drain at the latest: the control plane's last answers, the transfers' end, the log.
    private static let grace = Duration.seconds(15)

    /// From here on these signals do not end the process by themselves; they wait to be heard. Before any thread is started.
    /// - Throws: `SystemError` when there are not enough descriptors.
    static func hold() throws(SystemError) {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.set(patience: self.startPatience)
        try SignalWatch.take(ending: [SIGTERM, SIGINT], others: [SIGHUP], exitCode: 0)
    }

    /// The gateway is up: the end may take so long from the signal on.
    static func allow(drain timeout: Duration) {
        SignalWatch.set(patience: timeout + self.grace)
    }

    /// Calls `heard` on `loop` with what the signals wish, those too that came since they are held.
    static func hear(
        on loop: Loop, _ heard: @escaping @Sendable (ProcessSignals.Wish) -> Void
    ) async throws(SystemError) {
        let error: SystemError? = await withCheckedContinuation { answer in
            loop.execute {
                do throws(SystemError) {
                    _ = try SignalWatch(on: loop) { heard(ProcessSignals.Wish($0)) }
                    answer.resume(returning: nil)
                } catch {
                    answer.resume(returning: error)
                }
            }
        }
        if let error { throw error }
    }
}
