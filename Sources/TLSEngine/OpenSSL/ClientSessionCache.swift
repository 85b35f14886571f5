import COpenSSL
import Synchronization

/// A client's sessions, by the caller's key. Bounded: the session stored first makes room.
final class ClientSessionCache: Sendable {
    private struct Entry {
        let key: String
        let session: KeptSession
    }

    private let limit: Int
    private let entries = Mutex<[Entry]>([])
    /// TLS 1.3 servers give two tickets at a time; more of one key would only crowd out others.
    private static let limitPerKey = 2

    init(limit: Int) {
        self.limit = max(0, limit)
    }

    var count: Int { self.entries.withLock { $0.count } }

    func store(_ session: KeptSession, for key: String) {
        guard self.limit > 0 else { return }
        self.entries.withLock { entries in
            let same = entries.indices.filter { entries[$0].key == key }
            if same.count >= Self.limitPerKey || session.isReusable, let oldest = same.first {
                entries.remove(at: oldest)
            }
            if entries.count >= self.limit { entries.removeFirst() }
            entries.append(Entry(key: key, session: session))
        }
    }

    /// The newest session for `key`. A ticket of TLS 1.3 is given out once, lest its second use tells an observer that
    /// both connections are ours (RFC 8446 §C.4).
    func session(for key: String) -> KeptSession? {
        self.entries.withLock { entries in
            guard let index = entries.lastIndex(where: { $0.key == key }) else { return nil }
            let session = entries[index].session
            if !session.isReusable { entries.remove(at: index) }
            return session
        }
    }
}
