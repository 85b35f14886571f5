import BackgroundTransfers
import Foundation

/// Conditions of the machine that discretionary transfers wait for.
package struct MachineConditions: Hashable, Sendable {
    package var isMetered: Bool
    package var isOnBattery: Bool
    /// Load of the last minute per processor.
    package var load: Double

    /// Above this load discretionary transfers wait.
    package static let loadLimit = 0.75

    package init(isMetered: Bool = false, isOnBattery: Bool = false, load: Double = 0) {
        self.isMetered = isMetered
        self.isOnBattery = isOnBattery
        self.load = load
    }

    /// Not read yet: discretionary transfers wait.
    package static let unknown = MachineConditions(isMetered: true, isOnBattery: true, load: .infinity)

    package var allowsDiscretionary: Bool { !self.isMetered && !self.isOnBattery && self.load < Self.loadLimit }
}

/// Which transfers start now. Recomputed after each event and at `nextChange`.
package struct TransferSchedule: Hashable, Sendable {
    package struct Task: Hashable, Sendable {
        package let session: String
        package let identifier: Int

        package init(session: String, identifier: Int) {
            self.session = session
            self.identifier = identifier
        }
    }

    /// Most transfers that run at a time.
    package static let runningLimit = 16
    /// How often, in seconds, the machine's conditions are read while a transfer waits for them.
    package static let conditionsInterval: TimeInterval = 60

    package private(set) var starts: [Task] = []
    /// The program must confirm their requests first.
    package private(set) var questions: [Task] = []
    /// Their time is over.
    package private(set) var expired: [Task] = []
    /// Whether a transfer waits for better conditions.
    package private(set) var waitsForConditions = false
    /// When the schedule may be another one without an event; `nil` if never.
    package private(set) var nextChange: Date?

    fileprivate struct Candidate {
        let task: Task
        let priority: Float
        /// Bytes that the program expects; unknown is the most.
        let size: Int64
        let begun: Date
    }

    /// - Parameter limit: most transfers that run at a time.
    package init(
        _ journal: TransferJournal, conditions: MachineConditions, now: Date, limit: Int = TransferSchedule.runningLimit
    ) {
        var (running, candidates) = (0, [Candidate]())
        for (name, session) in journal.sessions where session.record.needsSettings != true {
            let settings = session.record.settings
            for transfer in session.transfers.values where !transfer.isSuspended {
                let task = Task(session: name, identifier: transfer.identifier)
                let deadline = (transfer.begun ?? now) + settings.resourceTimeout
                guard deadline > now else {
                    self.expired.append(task)
                    continue
                }
                self.changes(at: deadline)
                switch transfer.phase {
                case .running: running += 1
                case .asksForRequest, .asksForCredential: break
                case .waiting(let until):
                    let allows =
                        conditions.allowsDiscretionary
                        || !(settings.isDiscretionary || transfer.backgroundOrdinal > 0)
                    guard self.mayBegin(transfer, until: until, allows: allows, now: now) else { continue }
                    if transfer.attributes.earliestBegin != nil, !transfer.hasAskedForRequest {
                        self.questions.append(task)
                    } else {
                        candidates.append(Candidate(task, transfer, now: now))
                    }
                }
            }
        }
        candidates.sort()
        self.starts = candidates.prefix(max(0, limit - running)).map(\.task)
        self.questions.sort { ($0.session, $0.identifier) < ($1.session, $1.identifier) }
        self.expired.sort { ($0.session, $0.identifier) < ($1.session, $1.identifier) }
    }

    private mutating func mayBegin(_ transfer: TransferRecord, until: Date?, allows: Bool, now: Date) -> Bool {
        let pauseEnd = until.flatMap { transfer.pauseEnd($0, now: now) }
        let begin = [pauseEnd, transfer.attributes.earliestBegin].compactMap(\.self).max() ?? now
        guard begin <= now else {
            self.changes(at: begin)
            return false
        }
        guard allows else {
            self.waitsForConditions = true
            self.changes(at: now + Self.conditionsInterval)
            return false
        }
        return true
    }

    private mutating func changes(at date: Date) {
        self.nextChange = min(self.nextChange ?? date, date)
    }
}

extension TransferRecord {
    /// The end of a pause that the daemon itself made; `nil` if it is further away than any pause: the clock was set back.
    fileprivate func pauseEnd(_ until: Date, now: Date) -> Date? {
        let longest = self.failures > 0 ? RetryPolicy.longestPause : TransferRules.longestBackgroundDelay
        return until <= now + longest ? until : nil
    }
}

extension TransferSchedule.Candidate {
    fileprivate init(_ task: TransferSchedule.Task, _ transfer: TransferRecord, now: Date) {
        let hints = [transfer.attributes.expectedToSend, transfer.attributes.expectedToReceive]
        self.task = task
        self.priority = transfer.attributes.priority
        self.size = hints.contains { $0 < 0 } ? .max : hints.reduce(0) { $0 > .max - $1 ? .max : $0 + $1 }
        self.begun = transfer.begun ?? now
    }
}

extension TransferSchedule.Candidate: Comparable {
    /// The higher priority first, then the smaller transfer, then the older one.
    fileprivate static func < (left: Self, right: Self) -> Bool {
        if left.priority != right.priority { return left.priority > right.priority }
        if left.size != right.size { return left.size < right.size }
        if left.begun != right.begun { return left.begun < right.begun }
        return (left.task.session, left.task.identifier) < (right.task.session, right.task.identifier)
    }

    fileprivate static func == (left: Self, right: Self) -> Bool { left.task == right.task }
}
