import GatewayCore
import StreamTransport
import Synchronization

/// The order of lists that are being paged through by something that changes: without it a connection could move from a
/// page that is still to come to one that was seen. Bounded: the list that was used least recently makes room.
package final class KeptLists: Sendable {
    package static let limit = 16
    /// Names in all lists together.
    package static let keyLimit = 1_000_000

    private struct Kept {
        let number: UInt64
        let keys: [ConnectionKey]
    }

    /// The least recently used first.
    private let lists = Mutex<[Kept]>([])

    package init() {}

    package func keep(_ keys: [ConnectionKey]) -> UInt64 {
        let number = Machine.randomWords(1).first ?? 0
        self.lists.withLock { lists in
            lists.append(Kept(number: number, keys: keys))
            while lists.count > 1, lists.count > Self.limit || lists.reduce(0, { $0 + $1.keys.count }) > Self.keyLimit {
                lists.removeFirst()
            }
        }
        return number
    }

    /// `nil` if it is not kept any more.
    package func keys(_ number: UInt64) -> [ConnectionKey]? {
        self.lists.withLock { lists in
            guard let index = lists.firstIndex(where: { $0.number == number }) else { return nil }
            let kept = lists.remove(at: index)
            lists.append(kept)
            return kept.keys
        }
    }
}
