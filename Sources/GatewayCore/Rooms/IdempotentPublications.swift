import DequeModule
import Rooms

/// Publications of a room with an idempotency key, for five minutes after they were published.
package struct IdempotentPublications {
    private static let time: Duration = .seconds(300)
    /// Above it the oldest are forgotten.
    package static let limit = 100_000

    /// Keys are compared by their bytes, as in Redis.
    private var published: [[UInt8]: (position: StreamPosition, expiry: Duration)] = [:]
    /// The oldest first.
    private var keys: Deque<[UInt8]> = []
    /// Of the newest.
    private var lastExpiry: Duration = .zero

    package init() {}

    /// - Returns: `nil` if there is no publication with this key.
    package func position(of key: String, now: Duration) -> StreamPosition? {
        self.published[Array(key.utf8)].flatMap { $0.expiry > now ? $0.position : nil }
    }

    /// - Parameter key: one without a publication.
    package mutating func add(_ key: String, at position: StreamPosition, now: Duration) {
        while let first = self.keys.first {
            if let known = self.published[first], known.expiry > now, self.keys.count < Self.limit { break }
            self.keys.removeFirst()
            self.published[first] = nil
        }
        let key = Array(key.utf8)
        self.lastExpiry = now + Self.time
        self.published[key] = (position, self.lastExpiry)
        self.keys.append(key)
    }

    package func areExpired(now: Duration) -> Bool { self.lastExpiry <= now }
}
