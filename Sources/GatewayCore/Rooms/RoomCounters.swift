import Rooms
import Synchronization

/// Counters of all rooms, for metrics: those of messages for each policy, none for a room.
package final class RoomCounters: Sendable {
    /// Policies that are counted apart; further ones count as `other`.
    private static let policyLimit = 256

    private let policies = Mutex<[String: PolicyCounters]>([:])
    private let refused = Atomic<Int>(0)
    private let refusedToClients = Atomic<Int>(0)
    private let removed = Atomic<Int>(0)
    private let disconnectsByCode = Mutex<[UInt16: Int]>([:])
    private let errorsByCode = Mutex<[UInt32: Int]>([:])

    /// Uses of a room that was not made because there were too many.
    package var refusedRooms: Int { self.refused.load(ordering: .relaxed) }
    /// Rooms that were not made because their client had made too many.
    package var roomsRefusedToClients: Int { self.refusedToClients.load(ordering: .relaxed) }
    /// Histories that were removed because all together were too large.
    package var removedHistories: Int { self.removed.load(ordering: .relaxed) }
    /// Connections that the rooms ended, by the code of the Close frame.
    package var disconnects: [UInt16: Int] { self.disconnectsByCode.withLock(\.self) }
    /// Commands that were refused, by the code of the error.
    package var errors: [UInt32: Int] { self.errorsByCode.withLock(\.self) }

    func addRefusedRoom(_ error: RoomHub.AcquireError) {
        switch error {
        case .tooManyRooms: self.refused.wrappingAdd(1, ordering: .relaxed)
        case .tooManyRoomsOfClient: self.refusedToClients.wrappingAdd(1, ordering: .relaxed)
        }
    }
    func addRemovedHistory() { self.removed.wrappingAdd(1, ordering: .relaxed) }
    func addError(_ error: CommandError) { self.errorsByCode.withLock { $0[error.code, default: 0] += 1 } }
    func addDisconnect(_ code: UInt16) { self.disconnectsByCode.withLock { $0[code, default: 0] += 1 } }

    /// Counters of the rooms that have this policy.
    func of(_ policy: RoomPolicy) -> PolicyCounters {
        self.policies.withLock { policies in
            let name = policies[policy.name] != nil || policies.count < Self.policyLimit ? policy.name : "other"
            if let counters = policies[name] { return counters }
            let counters = PolicyCounters()
            policies[name] = counters
            return counters
        }
    }

    /// Policies that were used, with their counters, in the order of their names.
    package var byPolicy: [(policy: String, counters: PolicyCounters)] {
        self.policies.withLock { Array($0) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The sum over all policies.
    package subscript(_ counter: PolicyCounters.Counter) -> Int {
        self.policies.withLock { $0.values.reduce(0) { $0 + $1[counter] } }
    }
}

/// Messages in the rooms of one policy.
package final class PolicyCounters: Sendable {
    package enum Counter: Sendable, CaseIterable {
        case publications
        case deliveries
        /// Publications that clients got by recovery.
        case recovered
        /// Recoveries that were not possible.
        case unrecovered
        /// Messages that slow members lost by their room's policy.
        case lost
        /// Publications that members did not get because of their filters.
        case filtered
    }

    private let publications = Atomic<Int>(0)
    private let deliveries = Atomic<Int>(0)
    private let recovered = Atomic<Int>(0)
    private let unrecovered = Atomic<Int>(0)
    private let lost = Atomic<Int>(0)
    private let filtered = Atomic<Int>(0)

    func add(_ count: Int = 1, to counter: Counter) {
        switch counter {
        case .publications: self.publications.wrappingAdd(count, ordering: .relaxed)
        case .deliveries: self.deliveries.wrappingAdd(count, ordering: .relaxed)
        case .recovered: self.recovered.wrappingAdd(count, ordering: .relaxed)
        case .unrecovered: self.unrecovered.wrappingAdd(count, ordering: .relaxed)
        case .lost: self.lost.wrappingAdd(count, ordering: .relaxed)
        case .filtered: self.filtered.wrappingAdd(count, ordering: .relaxed)
        }
    }

    /// Counts what a client gets that came back.
    func add(recovery result: Reply.SubscribeResult) {
        guard result.wasRecovering, result.isRecoverable else { return }
        self.add(result.publications.count, to: .recovered)
        if !result.isRecovered { self.add(to: .unrecovered) }
    }

    package subscript(_ counter: Counter) -> Int {
        switch counter {
        case .publications: self.publications.load(ordering: .relaxed)
        case .deliveries: self.deliveries.load(ordering: .relaxed)
        case .recovered: self.recovered.load(ordering: .relaxed)
        case .unrecovered: self.unrecovered.load(ordering: .relaxed)
        case .lost: self.lost.load(ordering: .relaxed)
        case .filtered: self.filtered.load(ordering: .relaxed)
        }
    }
}
