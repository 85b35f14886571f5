import GatewayConfiguration
import GatewayCore
import HTTPSemantics
import HTTPTypes
import HummingbirdCore
import StreamTransport
import Synchronization
import TLSEngine
import WireText

/// Decides whether a request is allowed, by the settings in force when it arrives.
struct RequestAuthorizer: Sendable {
    private let authenticator: CallerAuthenticator
    private let origins: OriginPolicy

    init(_ settings: ControlSettings) {
        self.authenticator = CallerAuthenticator(settings)
        self.origins = OriginPolicy(settings)
    }

    /// Checks the Host, Origin and Sec-Fetch-Site fields; done for every request, whatever its operation.
    /// - Throws: `ControlProblem` 400, 421 or 403.
    func checkSource(of request: Request) throws(ControlProblem) {
        // The first Host field is the authority; a second one stays among the other fields.
        guard request.headers[values: .host].isEmpty else {
            throw ControlProblem(400, "bad-host", "The request has more than one Host field (RFC 9112 §3.2).")
        }
        try self.origins.check(
            authority: request.head.authority, origin: request.headers[.origin],
            fetchSite: request.headers[.secFetchSite])
    }

    /// - Returns: the caller with all scopes it has.
    /// - Throws: `ControlProblem` 401 where credentials are missing or wrong.
    func authenticate(_ request: Request, for operation: Operation) throws(ControlProblem) -> Caller {
        guard operation.scope != .none else { return .anonymous }
        let fields = request.headers[values: .authorization]
        guard fields.count < 2 else {
            throw CallerAuthenticator.unauthorized("Send one Authorization field.", error: "invalid_request")
        }
        let caller = try self.authenticator.authenticate(
            authorization: fields.first, peer: ConnectionPeer.current, now: Machine.wallClockMilliseconds())
        guard caller != .anonymous else {
            throw CallerAuthenticator.unauthorized("Authenticate with Authorization: Bearer TOKEN.", error: nil)
        }
        return caller
    }

    /// - Throws: `ControlProblem` 403 with the scope that the caller lacks.
    func authorize(_ caller: Caller, for operation: Operation) throws(ControlProblem) {
        guard let scope = operation.scope.required, !caller.scopes.contains(scope) else { return }
        let has = caller.scopes.map(\.rawValue).sorted().joined(separator: ", ")
        throw ControlProblem(
            403, "insufficient-scope",
            "This needs the scope \(scope.rawValue); \(caller.name) has \(has.isEmpty ? "none" : has)."
        ).with {
            // RFC 6750 §3.1.
            $0.challenge = "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""
        }
    }
}

/// Rights of callers in one configuration.
struct ControlAccess: Sendable {
    let settings: ControlSettings
    let authorizer: RequestAuthorizer
    /// Targets to which the control plane may open connections.
    let targets: TargetRules
    let securitySchemes: SecuritySchemes

    init(_ settings: ControlSettings) {
        self.settings = settings
        self.authorizer = RequestAuthorizer(settings)
        self.targets = settings.targets
        self.securitySchemes = SecuritySchemes(settings)
    }
}

/// The access settings in force; a reload replaces them for all later requests.
final class CurrentAccess: Sendable {
    private struct State {
        var access: ControlAccess
        var revision: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ settings: ControlSettings) {
        self.state = Mutex(State(access: ControlAccess(settings)))
    }

    var current: ControlAccess { self.state.withLock { $0.access } }
    /// Increases with each change.
    var revision: UInt64 { self.state.withLock { $0.revision } }

    func replace(_ settings: ControlSettings) {
        let access = ControlAccess(settings)
        self.state.withLock { $0 = State(access: access, revision: $0.revision + 1) }
    }
}

/// Identifies callers by bearer token, client certificate or the user of a Unix socket.
package struct CallerAuthenticator: Sendable {
    /// Longest token, in bytes.
    private static let tokenLimit = 512

    private let tokens: [ControlToken]
    private let clients: [ControlClient]
    private let peers: [ControlPeer]

    package init(_ settings: ControlSettings) {
        self.tokens = settings.tokens
        self.clients = settings.clients
        self.peers = settings.peers
    }

    /// - Parameters:
    ///   - authorization: the value of the Authorization field.
    ///   - now: milliseconds since 1970-01-01T00:00:00Z.
    /// - Returns: `.anonymous` if the request must identify its caller but does not.
    /// - Throws: `ControlProblem` 401 for a token that is not valid.
    package func authenticate(authorization: String?, peer: ConnectionPeer?, now: Int64) throws(ControlProblem)
        -> Caller
    {
        if let authorization, !self.tokens.isEmpty { return try self.bearer(authorization, now: now) }
        let certificate = peer?.certificate
        if let client = self.clients.first(where: { $0.identity.matches(certificate) }) {
            return Caller(name: "client:\(client.name)", scopes: client.scopes)
        }
        let process = peer?.process
        if !self.peers.isEmpty, let process {
            // One process may match several entries, by its user and by its group.
            let entries = self.peers.filter { $0.matches(process) }
            if !entries.isEmpty {
                return Caller(
                    name: "uid:\(process.user)", scopes: entries.reduce(into: []) { $0.formUnion($1.scopes) })
            }
        }
        guard self.tokens.isEmpty, self.clients.isEmpty, self.peers.isEmpty else { return .anonymous }
        return Caller(name: process.map { "uid:\($0.user)" } ?? Caller.local.name, scopes: Caller.local.scopes)
    }

    /// RFC 6750 §2.1.
    private func bearer(_ authorization: String, now: Int64) throws(ControlProblem) -> Caller {
        let parts = authorization.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1).map { Substring($0) }
        guard parts.count == 2, parts[0].matchesIgnoringCase("bearer") else {
            throw Self.unauthorized("Send a token as Authorization: Bearer TOKEN.", error: nil)
        }
        let text = parts[1].trimmingBlanks
        guard text.utf8.count <= Self.tokenLimit, let token = self.token(of: text) else {
            throw Self.unauthorized("The token is unknown.", error: "invalid_token")
        }
        if let expires = token.expires, expires <= now {
            throw Self.unauthorized("The token \(token.name) has expired.", error: "invalid_token")
        }
        return Caller(name: "token:\(token.name)", scopes: token.scopes)
    }

    /// Compares with every token, so that the time taken does not depend on which one matches.
    private func token(of text: String) -> ControlToken? {
        let bytes = Array(text.utf8)
        let digest = MessageDigest.of(bytes, by: .sha256)
        return self.tokens.reduce(nil) { found, token in token.hash.matches(digest) ? token : found }
    }

    package static func unauthorized(_ detail: String, error: String?) -> ControlProblem {
        ControlProblem(401, "unauthorized", detail).with {
            $0.challenge = "Bearer realm=\"sluice\"" + (error.map { ", error=\"\($0)\"" } ?? "")
        }
    }
}

extension ControlClient.Identity {
    fileprivate func matches(_ certificate: CertificateNames?) -> Bool {
        guard let certificate else { return false }
        switch self {
        case .subject(let subject): return certificate.subject == subject
        case .alternativeName(let name): return certificate.alternativeNames.contains(name)
        case .pin(let pin): return certificate.pin.digest == pin.digest
        }
    }
}

extension ControlPeer {
    fileprivate func matches(_ process: PeerProcess) -> Bool {
        (self.user ?? process.user) == process.user && (self.group ?? process.group) == process.group
    }
}

/// The authenticated sender of a request, as the audit log shows it.
package struct Caller: Sendable, Hashable {
    /// `token:NAME`, `client:NAME`, `uid:NUMBER`, or `local`.
    package let name: String
    package let scopes: Set<ControlScope>

    package init(name: String, scopes: Set<ControlScope>) {
        self.name = name
        self.scopes = scopes
    }

    /// The caller on a listener without authentication: has every scope.
    package static let local = Caller(name: "local", scopes: Set(ControlScope.allCases))
    /// A caller without credentials.
    package static let anonymous = Caller(name: "nobody", scopes: [])
}

/// The scope that an operation requires.
package enum Scope: String, CaseIterable, Sendable {
    /// Open to everybody: health probes and the OpenAPI document.
    case none
    case read
    case operate
    case configure
    case metrics
    /// Open to programs with a key of `rooms.api-keys`.
    case apiKey

    /// `nil` for `none` and `apiKey`.
    package var required: ControlScope? { ControlScope(rawValue: self.rawValue) }
}

extension ControlSettings {
    /// The settings in force after a reload with `next`: all of `next` except the listener's address and whether it
    /// uses TLS, which need a restart.
    ///
    /// If the address changes and `next` has no authentication, the callers of `self` stay: the listener, still at its
    /// old address, must not become open to everybody.
    package func reloaded(with next: ControlSettings) -> ControlSettings {
        var settings = next
        settings.address = self.address
        settings.isExplicit = self.isExplicit
        if (self.tls == nil) != (next.tls == nil) { settings.tls = self.tls }
        guard next.address != self.address, !settings.authenticates, self.authenticates else { return settings }
        settings.tokens = self.tokens
        settings.clients = self.clients
        settings.peers = self.peers
        return settings
    }
}
