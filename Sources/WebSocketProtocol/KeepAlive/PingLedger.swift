/// Pings that wait for their Pongs, in the order in which they went out.
///
/// A Pong answers the ping whose payload it repeats (of several alike, the earliest), and every one before it: a peer
/// may answer only the most recent (RFC 6455 §5.5.3). A Pong that repeats nothing waiting is unsolicited and means
/// nothing.
public struct PingLedger: Sendable {
    /// Pings that may wait at once.
    public static let limit = 1024

    private struct Entry: Sendable {
        let number: UInt64
        let payload: [UInt8]
    }

    private var waiting: [Entry] = []

    public init() {}

    /// - Returns: whether there was room: a peer that answers none is not asked without end.
    public mutating func sent(_ number: UInt64, payload: [UInt8]) -> Bool {
        guard self.waiting.count < Self.limit else { return false }
        self.waiting.append(Entry(number: number, payload: payload))
        return true
    }

    /// - Returns: the pings that this Pong answers, the earliest first.
    public mutating func received(_ payload: [UInt8]) -> [UInt64] {
        guard let index = self.waiting.firstIndex(where: { $0.payload == payload }) else { return [] }
        let answered = self.waiting[...index].map(\.number)
        self.waiting.removeFirst(index + 1)
        return answered
    }
}
