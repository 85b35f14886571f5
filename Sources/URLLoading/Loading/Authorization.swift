import Foundation
import HTTPSemantics
import WireText

extension SessionCore {
    /// Finds the credential that the storage has for a task.
    /// - Parameters:
    ///   - user: whose credential is required; `nil` for the default one.
    ///   - answer: called once: at once, or on the executor after a custom storage has answered.
    func findCredential(
        for space: URLProtectionSpace, user: String? = nil, of task: URLSessionTask,
        _ answer: @escaping @Sendable (URLCredential?) -> Void
    ) {
        let storage = self.configuration.urlCredentialStorage
        guard let storage, type(of: storage) != URLCredentialStorage.self else {
            return answer(storage?.credential(for: space, user: user))
        }
        let handler = OneShotHandler<URLCredential?> { found in self.executor.execute { answer(found) } }
        // A storage that blocks must not stop the other tasks.
        storage.queue.async {
            storage.getDefaultCredential(for: space, task: task) { found in
                guard let user, found?.user != user else { return handler(found) }
                storage.getCredentials(for: space, task: task) { handler($0?[user]) }
            }
        }
    }

    /// Whether Negotiate may use the tickets of the process's user at `url` without the program's word.
    func mayUseTickets(at url: URL) -> Bool {
        guard let host = url.serverName else { return false }
        return self.configuration.ticketHosts.contains { name in
            let name = name.loweredASCII
            let suffix = name.hasPrefix(".") ? String(name.dropFirst()) : name
            return host == suffix || name.hasPrefix(".") && host.hasSuffix(name)
        }
    }
}

extension URL {
    /// `nil` for an empty user too.
    var namedUser: String? { self.user(percentEncoded: false).flatMap { $0.isEmpty ? nil : $0 } }
}

/// User and password that a URL or the settings of a proxy name.
struct ConfiguredAccount: Hashable {
    let user: String
    let password: String

    init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// - Returns: `nil` if the URL names no user and password.
    init?(_ url: URL) {
        guard let user = url.user(percentEncoded: false), let password = url.password(percentEncoded: false) else {
            return nil
        }
        self.init(user: user, password: password)
    }
}

/// A credential for an HTTP challenge, sent with all requests in its scope (RFC 9110 §11). Confined to the session's executor.
final class Authorization {
    private enum Method {
        /// The value of the `Authorization` field.
        case basic(String)
        case digest(DigestSession)
        case connection(ConnectionAuthorization)
    }

    fileprivate let origin: HTTPSemantics.Origin
    fileprivate let scope: ProtectionScope
    /// For whose requests the credential was accepted; `nil` for requests without an account of their own.
    let account: ConfiguredAccount?
    let credential: URLCredential
    private var method: Method

    /// - Parameter isOfProxy: whether a proxy asks, for all that is sent to it.
    /// - Returns: `nil` if the credential has no user name and password, or the scheme cannot encode them.
    init?(
        _ challenge: Challenge, credential: URLCredential, url: URL, account: ConfiguredAccount?, isOfProxy: Bool
    ) {
        guard let user = credential.user, let password = credential.password, let origin = Origin(url) else {
            return nil
        }
        let path = url.path(percentEncoded: true)
        switch challenge.scheme {
        case .basic:
            guard let value = BasicCredentials.fieldValue(user: user, password: password) else { return nil }
            self.method = .basic(value)
            self.scope = ProtectionScope(basicChallengedAt: path.isEmpty ? "/" : path)
        case .digest:
            guard let digest = DigestChallenge(challenge) else { return nil }
            self.method = .digest(DigestSession(digest, user: user, password: password))
            // A proxy's `domain` has no meaning (RFC 7616 §3.3).
            self.scope = ProtectionScope(digestDomain: isOfProxy ? [] : Self.paths(digest.domain, at: url, origin))
        case .ntlm, .negotiate:
            guard let connection = ConnectionAuthorization(challenge.scheme, credential) else { return nil }
            self.method = .connection(connection)
            self.scope = ProtectionScope(digestDomain: [])
        case .other: return nil
        }
        self.origin = origin
        self.account = account
        self.credential = credential
    }

    private static func paths(_ references: [String], at url: URL, _ origin: HTTPSemantics.Origin) -> [String] {
        references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { Origin($0) == origin }.map { $0.path(percentEncoded: true) }
    }

    /// `nil` for a scheme whose requests are authenticated one by one.
    var connection: ConnectionAuthorization? {
        if case .connection(let authorization) = self.method { authorization } else { nil }
    }

    /// Whether the same credential can be tried again, which is the case only after a stale nonce.
    func canRetry(after challenge: Challenge) -> Bool {
        guard case .digest(var session) = self.method, let digest = DigestChallenge(challenge) else { return false }
        defer { self.method = .digest(session) }
        return session.rechallenged(by: digest) == .retry
    }

    /// Hashes the content of the next request; `nil` if that is not required.
    var contentHasher: DigestHasher? {
        if case .digest(let session) = self.method { session.contentHasher } else { nil }
    }

    /// The value of the `Authorization` field for one request; `nil` for a scheme that authenticates connections.
    func fieldValue(method: String, target: String, contentHash: String?) -> String? {
        switch self.method {
        case .connection: return nil
        case .basic(let value): return value
        case .digest(var session):
            let request = DigestRequest(method: method, target: target, contentHash: contentHash)
            let value = session.fieldValue(for: request, clientNonce: UUID().uuidString)
            self.method = .digest(session)
            return value
        }
    }

    /// Processes the `Authentication-Info` fields of a response.
    func received(authenticationLines: [String]) {
        guard !authenticationLines.isEmpty, case .digest(var session) = self.method else { return }
        session.received(authenticationLines: authenticationLines)
        self.method = .digest(session)
    }
}

/// Authorizations to send preemptively: the last `limit` used in this session.
struct AuthorizationCache {
    private static let limit = 64

    private var entries: [Authorization] = []

    var isEmpty: Bool { self.entries.isEmpty }

    /// - Parameter mayUse: whether the request may be sent with the authorization.
    func find(
        _ origin: HTTPSemantics.Origin, path: String, for mayUse: (Authorization) -> Bool
    ) -> Authorization? {
        self.entries.last { $0.origin == origin && $0.scope.covers(path) && mayUse($0) }
    }

    mutating func insert(_ authorization: Authorization) {
        self.entries.removeAll {
            $0 === authorization
                || $0.origin == authorization.origin && $0.scope == authorization.scope
                    && $0.account == authorization.account
                    && $0.credential.user == authorization.credential.user
        }
        self.entries.append(authorization)
        if self.entries.count > Self.limit { self.entries.removeFirst() }
    }

    mutating func remove(_ authorization: Authorization) {
        self.entries.removeAll { $0 === authorization }
    }
}

extension URLProtectionSpace {
    /// The protection space of a proxy's challenge.
    convenience init(_ challenge: Challenge, of proxy: ProxyAddress) {
        self.init(
            proxyHost: proxy.host, port: Int(proxy.port),
            type: proxy.kind == .https ? NSURLProtectionSpaceHTTPSProxy : NSURLProtectionSpaceHTTPProxy,
            realm: challenge.realm, authenticationMethod: Self.method(of: challenge))
    }

    private static func method(of challenge: Challenge) -> String {
        switch challenge.scheme {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        case .ntlm: NSURLAuthenticationMethodNTLM
        case .negotiate: NSURLAuthenticationMethodNegotiate
        case .other: NSURLAuthenticationMethodDefault
        }
    }

    /// The protection space of a challenge in a response.
    convenience init(_ challenge: Challenge, at url: URL) {
        let scheme = url.scheme?.loweredASCII ?? "http"
        let isSecure = ["https", "wss"].contains(scheme)
        self.init(
            host: url.serverName ?? "", port: url.port ?? (isSecure ? 443 : 80),
            protocol: isSecure ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, realm: challenge.realm,
            authenticationMethod: Self.method(of: challenge))
    }
}
