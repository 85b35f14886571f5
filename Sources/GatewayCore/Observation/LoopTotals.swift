import SessionTasks
import StreamTransport

/// What the connections of one loop that are over have carried, and how long things took. On the loop.
struct LoopTotals {
    /// Routes that are told apart; what is beyond counts as `other`.
    static let routeLimit = 256

    /// By route; of connections opened by command, under the empty name.
    private(set) var ended: [String: TrafficSums] = [:]
    /// From acceptance to the first byte of payload that may flow, in microseconds.
    var handshakes = Distribution()
    /// From there to the end.
    var lives = Distribution()

    mutating func end(_ record: TaskRecord, route: String?) {
        let name = route ?? ""
        let key = self.ended[name] != nil || self.ended.count < Self.routeLimit ? name : "other"
        self.ended[key, default: TrafficSums()].add(record)
    }
}
