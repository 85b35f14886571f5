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

/// A reference to an SSL_SESSION. Threads share sessions; OpenSSL does not modify a session once it was offered.
@safe
final class CachedSession: @unchecked Sendable {
    private let session: OpaquePointer

    /// Takes ownership of the caller's reference.
    init(owning session: OpaquePointer) {
        unsafe self.session = session
    }

    deinit {
        unsafe SSL_SESSION_free(self.session)
    }

    /// TLS 1.2 sessions may be resumed any number of times.
    var isReusable: Bool { unsafe sluice_is_tls13(self.session) == 0 }

    /// Offers the session on a connection before its handshake.
    func offer(on ssl: OpaquePointer?) {
        guard unsafe sluice_is_resumable(self.session) == 1 else { return }
        unsafe SSL_set_session(ssl, self.session)
    }
}

/// The name or IP address that the server's certificate must match (reference identifier, RFC 9525 §6.1).
struct ReferenceIdentity {
    /// Without brackets and trailing dot.
    let text: String

    /// - Returns: `nil` if no name is given and none is needed.
    static func validated(
        _ name: String?, in configuration: TLSConfiguration
    ) throws(TLSFailure) -> ReferenceIdentity? {
        guard let name else {
            guard configuration.checksServerName, configuration.peerVerification != .none else { return nil }
            throw TLSFailure(.configuration, reasons: ["verification requires the server's name"])
        }
        var text = Substring(name)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        if text.hasSuffix(".") { text = text.dropLast() }
        guard (1...253).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw TLSFailure(.configuration, reasons: ["the server's name is not a host name or IP address in ASCII"])
        }
        return ReferenceIdentity(text: String(text))
    }

    /// Sends the name as SNI, unless it is an address (RFC 6066 §3), and makes verification require it.
    func install(on ssl: OpaquePointer?, verified: Bool) throws(TLSFailure) {
        if !self.isAddress, unsafe sluice_set_server_name(ssl, self.text) != 1 { throw self.unacceptable() }
        if verified { unsafe try self.require(in: SSL_get0_param(ssl)) }
    }

    /// Makes verification require a certificate for the name or address.
    func require(in parameters: OpaquePointer?) throws(TLSFailure) {
        if self.isAddress {
            guard unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, self.text) == 1 else { throw self.unacceptable() }
            return
        }
        // RFC 9525 §6.3 and §2: a wildcard is a whole label, and only subject alternative names count.
        unsafe X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        guard unsafe X509_VERIFY_PARAM_set1_host(parameters, self.text, 0) == 1 else { throw self.unacceptable() }
    }

    private var isAddress: Bool {
        guard let address = unsafe a2i_IPADDRESS(self.text) else {
            ErrorQueue.clear()
            return false
        }
        unsafe ASN1_OCTET_STRING_free(address)
        return true
    }

    private func unacceptable() -> TLSFailure {
        ErrorQueue.failure(.configuration, "\"\(self.text)\" is not a valid server name")
    }
}
