import Foundation
import UnixSignals

/// The signals that steer the process, as a sequence of wishes.
struct ProcessSignals {
    enum Wish: Sendable {
        case stop
        case reload
    }

    private let signals: UnixSignalsSequence

    /// From here on these signals no longer end the process by themselves.
    init() async {
        // A reader of our output that goes away is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        self.signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
    }

    var wishes: AsyncMapSequence<UnixSignalsSequence, Wish> {
        self.signals.map { $0 == .sighup ? .reload : .stop }
    }
}
