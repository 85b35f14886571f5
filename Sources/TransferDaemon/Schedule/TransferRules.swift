import BackgroundTransfers
import Foundation

/// Pauses between the attempts of one transfer.
package enum RetryPolicy {
    /// Longest pause in seconds.
    package static let longestPause: TimeInterval = 300

    /// 1 s after the first failure, twice as long after each one that follows it without progress, up to 5 min; of that
    /// between the half and the whole.
    /// - Parameters:
    ///   - failures: at least 1.
    ///   - jitter: 0 to 1.
    package static func pause(afterFailures failures: Int, jitter: Double) -> TimeInterval {
        let whole = min(self.longestPause, pow(2, Double(min(max(1, failures), 32) - 1)))
        return whole * (0.5 + 0.5 * min(1, max(0, jitter)))
    }
}

/// Delays of transfers that a program creates while it runs only because the daemon started it.
package enum TransferRules {
    /// In seconds.
    package static let standardBackgroundDelay: TimeInterval = 15
    /// A day: the doubling ends here.
    package static let longestBackgroundDelay: TimeInterval = 86_400

    /// How long a transfer waits that was created while its program ran for launch events only: the base for the first, and
    /// twice the delay of the one before for each further one.
    /// - Parameter ordinal: 1 for the first; 0 for a transfer that does not wait.
    package static func backgroundDelay(ofTransfer ordinal: Int, base: TimeInterval) -> TimeInterval {
        guard ordinal > 0, base > 0 else { return 0 }
        return min(self.longestBackgroundDelay, base * pow(2, Double(min(ordinal, 64) - 1)))
    }
}

/// When the daemon starts the program of a session that no running program has.
package enum LaunchPolicy {
    /// Starts in a row after which the program took no message.
    package static let limit = 5

    /// Pause in seconds after so many starts without a message taken.
    package static func pause(afterLaunches launches: Int) -> TimeInterval {
        launches <= 0 ? 0 : min(3600, 10 * pow(6, Double(min(launches, 8) - 1)))
    }

    package enum Decision: Hashable, Sendable {
        case launch
        case wait(until: Date)
        /// Nothing to tell, or not allowed to.
        case none
        /// The program was started too often without taking a message: a person must start it.
        case giveUp
    }

    package static func decide(_ session: TransferJournal.Session, now: Date) -> Decision {
        let settings = session.record.settings
        guard settings.sendsLaunchEvents, settings.launch != nil, !session.isAttached, self.hasEvents(session) else {
            return .none
        }
        guard session.record.launches < self.limit else { return .giveUp }
        // One in the future: the clock was set back.
        let last = session.record.lastLaunch.flatMap { $0 <= now ? $0 : nil }
        let next = last.map { $0 + self.pause(afterLaunches: session.record.launches) } ?? now
        return next <= now ? .launch : .wait(until: next)
    }

    /// All transfers are over, or one needs an answer.
    private static func hasEvents(_ session: TransferJournal.Session) -> Bool {
        let going = session.transfers.values.filter { !$0.isSuspended }
        let asks = going.contains { transfer in
            switch transfer.phase {
            case .asksForCredential, .asksForRequest: true
            case .waiting, .running: false
            }
        }
        return asks || going.isEmpty && !session.messages.isEmpty
    }
}
