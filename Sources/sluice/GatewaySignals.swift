import Foundation
import StreamTransport

/// The signals that steer a gateway, heard by one of its loops.
enum GatewaySignals {
    private static let numbers = [SIGTERM, SIGINT, SIGHUP]

    /// From here on these signals do not end the process by themselves; they wait to be heard. Before any thread is started.
    static func hold() {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.hold(self.numbers)
    }

    /// Calls `heard` on `loop` with what the signals wish, those too that came since they are held.
    static func hear(
        on loop: Loop, _ heard: @escaping @Sendable (ProcessSignals.Wish) -> Void
    ) async throws(SystemError) {
        let error: SystemError? = await withCheckedContinuation { answer in
            loop.execute {
                do throws(SystemError) {
                    _ = try SignalWatch(self.numbers, on: loop) { heard($0 == SIGHUP ? .reload : .stop) }
                    answer.resume(returning: nil)
                } catch {
                    answer.resume(returning: error)
                }
            }
        }
        if let error { throw error }
    }
}
