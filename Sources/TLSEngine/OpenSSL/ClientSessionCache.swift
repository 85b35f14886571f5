import COpenSSL
import Synchronization

/// A client's sessions by resumption key. Bounded: the oldest session is evicted.
final class ClientSessionCache: Sendable {
    private struct Entry {
        let key: String
        let session: CachedSession
    }

    private let limit: Int
    private let entries = Mutex<[Entry]>([])
    /// TLS 1.3 servers send two tickets at a time; more for one key would only evict those of others.
    private static let limitPerKey = 2

    init(limit: Int) {
        self.limit = max(0, limit)
    }

    var count: Int { self.entries.withLock { $0.count } }

    func store(_ session: CachedSession, for key: String) {
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

    /// The newest session for `key`. A TLS 1.3 ticket is used only once, because an observer could link connections
    /// that share one (RFC 8446 §C.4).
    func session(for key: String) -> CachedSession? {
        self.entries.withLock { entries in
            guard let index = entries.lastIndex(where: { $0.key == key }) else { return nil }
            let session = entries[index].session
            if !session.isReusable { entries.remove(at: index) }
            return session
        }
    }
}

/// A reference to an SSL_SESSION.
@safe
final class CachedSession: Sendable {
    /// Shared by threads: OpenSSL does not modify a session once it was offered.
    nonisolated(unsafe) private let session: OpaquePointer

    /// Takes ownership of the caller's reference.
    init(owning session: OpaquePointer) {
        unsafe self.session = session
    }

    deinit {
        unsafe SSL_SESSION_free(self.session)
    }

    /// TLS 1.2 sessions may be resumed any number of times.
    fileprivate var isReusable: Bool { unsafe sluice_is_tls13(self.session) == 0 }

    /// Offers the session on a connection before its handshake.
    func offer(on ssl: OpaquePointer?) {
        guard unsafe sluice_is_resumable(self.session) == 1 else { return }
        unsafe SSL_set_session(ssl, self.session)
    }
}
