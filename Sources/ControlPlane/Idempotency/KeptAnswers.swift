import HTTPTypes
import Synchronization

/// Answers to requests that carried an Idempotency-Key, to be given again. Bounded in number and in bytes: the oldest
/// makes room.
final class KeptAnswers: Sendable {
    static let limit = 1024
    static let byteLimit = 8 << 20

    struct Answer: Sendable {
        let status: HTTPResponse.Status
        let headers: HTTPFields
        let body: [UInt8]
    }

    enum Finding: Sendable {
        /// Nobody asked before; `finish` or `giveUp` must follow.
        case new
        case underWay
        /// The key came with another request.
        case other
        case answered(Answer)
    }

    private struct Entry {
        let key: String
        let fingerprint: [UInt8]
        var answer: Answer?
    }

    private let entries = Mutex<[Entry]>([])

    func begin(_ key: String, fingerprint: [UInt8]) -> Finding {
        self.entries.withLock { entries in
            guard let entry = entries.first(where: { $0.key == key }) else {
                Self.makeRoom(&entries)
                entries.append(Entry(key: key, fingerprint: fingerprint))
                return .new
            }
            guard entry.fingerprint == fingerprint else { return .other }
            return entry.answer.map { .answered($0) } ?? .underWay
        }
    }

    private static func makeRoom(_ entries: inout [Entry]) {
        func bytes() -> Int { entries.reduce(0) { $0 + $1.fingerprint.count + ($1.answer?.body.count ?? 0) } }
        while entries.count >= Self.limit || bytes() > Self.byteLimit {
            guard let oldest = entries.firstIndex(where: { $0.answer != nil }) else { return }
            entries.remove(at: oldest)
        }
    }

    func finish(_ key: String, _ answer: Answer) {
        self.entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return }
            entries[index].answer = answer
        }
    }

    /// The request may be tried again: it was answered with a fault of the moment.
    func giveUp(_ key: String) {
        self.entries.withLock { $0.removeAll { $0.key == key && $0.answer == nil } }
    }
}
