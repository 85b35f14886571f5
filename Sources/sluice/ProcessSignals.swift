import Foundation
import StreamTransport

/// The signals that steer the process, as a sequence of wishes.
struct ProcessSignals {
    enum Wish: Sendable {
        case stop
        case reload

        init(_ signal: Int32) {
            self = signal == SIGHUP ? .reload : .stop
        }
    }

    /// Exit code of an end that does not wait for anything: interrupted.
    static let interrupted: Int32 = 130
    /// More than two say nothing new.
    private static let kept = 2

    let wishes: AsyncStream<Wish>

    /// From here on these signals no longer end the process by themselves. It ends all the same, with `interrupted`: one
    /// second after a second signal, at a third, and when `patience` is over after the first.
    /// - Parameter patience: `nil` leaves it to a second signal.
    init(patience: Duration?) throws(StartFailure) {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        let (wishes, heard) = AsyncStream.makeStream(of: Wish.self, bufferingPolicy: .bufferingOldest(Self.kept))
        self.wishes = wishes
        do throws(SystemError) {
            SignalWatch.set(patience: patience)
            try SignalWatch.take(
                ending: [SIGTERM, SIGINT, SIGHUP], others: [], exitCode: Self.interrupted)
            try SignalWatch.hear { heard.yield(Wish($0)) }
        } catch {
            throw StartFailure.refusedBySystem("\(error)")
        }
    }
}
