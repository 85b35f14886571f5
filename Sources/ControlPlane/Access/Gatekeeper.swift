import GatewayCore
import HTTPSemantics
import HTTPTypes
import Hummingbird
import HummingbirdCore
import StreamTransport
import Synchronization
import TLSEngine

/// Who may do what: asked before every operation.
protocol Gatekeeper: Sendable {
    /// Asked of every request, whatever it is for.
    /// - Throws: `ControlProblem`: 421 or 403 for a request that a web page of somebody else made.
    func inspect(_ request: Request) throws(ControlProblem)
    /// - Returns: who asks, with whatever scopes they have.
    /// - Throws: `ControlProblem` 401 where it must be said who asks, and is not, or wrongly.
    func caller(of request: Request, for operation: Operation) throws(ControlProblem) -> Caller
}

extension Gatekeeper {
    /// - Throws: `ControlProblem` 403 with the scope that the caller lacks.
    func authorize(_ caller: Caller, for operation: Operation) throws(ControlProblem) {
        guard let scope = operation.scope.needed, !caller.scopes.contains(scope) else { return }
        let has = caller.scopes.map(\.rawValue).sorted().joined(separator: ", ")
        var problem = ControlProblem(
            403, "insufficient-scope",
            "This needs the scope \(scope.rawValue); \(caller.name) has \(has.isEmpty ? "none" : has).")
        // RFC 6750 §3.1.
        problem.challenge = "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"\(scope.rawValue)\""
        throw problem
    }
}

/// Lets in whom the configuration names.
struct ConfiguredGatekeeper: Gatekeeper {
    private let rules: AccessRules
    private let sources: SourceRules

    init(_ settings: ControlSettings) {
        self.rules = AccessRules(settings)
        self.sources = SourceRules(settings)
    }

    func inspect(_ request: Request) throws(ControlProblem) {
        // The first Host field is the authority; a second one stays among the others.
        guard request.headers[values: .host].isEmpty else {
            throw ControlProblem(400, "bad-host", "The request has more than one Host field (RFC 9112 §3.2).")
        }
        try self.sources.check(
            authority: request.head.authority, origin: request.headers[.origin],
            fetchSite: request.headers[.secFetchSite])
    }

    func caller(of request: Request, for operation: Operation) throws(ControlProblem) -> Caller {
        guard operation.scope != .none else { return .nobody }
        let fields = request.headers[values: .authorization]
        guard fields.count < 2 else {
            throw AccessRules.unauthorized("Send one Authorization field.", error: "invalid_request")
        }
        let caller = try self.rules.caller(
            authorization: fields.first, peer: ConnectionPeer.current, now: Machine.wallClockMilliseconds())
        guard caller != .nobody else {
            throw AccessRules.unauthorized("Say who you are: Authorization: Bearer TOKEN.", error: nil)
        }
        return caller
    }
}

/// The access that counts now: each request is judged by what the last reload said.
final class CurrentAccess: Sendable {
    private struct State {
        var access: ControlAccess
        var number: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ settings: ControlSettings) {
        self.state = Mutex(State(access: ControlAccess(settings)))
    }

    var now: ControlAccess { self.state.withLock { $0.access } }
    /// Grows with each change.
    var number: UInt64 { self.state.withLock { $0.number } }

    func replace(_ settings: ControlSettings) {
        let access = ControlAccess(settings)
        self.state.withLock { $0 = State(access: access, number: $0.number + 1) }
    }
}

extension CurrentAccess: Gatekeeper {
    func inspect(_ request: Request) throws(ControlProblem) {
        try self.now.gatekeeper.inspect(request)
    }

    func caller(of request: Request, for operation: Operation) throws(ControlProblem) -> Caller {
        try self.now.gatekeeper.caller(of: request, for: operation)
    }
}

/// Finds out who asks.
package struct AccessRules: Sendable {
    /// Bytes of a token at most; what is longer is none of ours.
    static let tokenLimit = 512

    private let tokens: [ControlToken]
    private let clients: [ControlClient]
    private let peers: [ControlPeer]

    package init(_ settings: ControlSettings) {
        self.tokens = settings.tokens
        self.clients = settings.clients
        self.peers = settings.peers
    }

    /// - Parameters:
    ///   - authorization: the header of that name, if there is one.
    ///   - now: milliseconds since 1970-01-01T00:00:00Z.
    /// - Returns: `.nobody` where nothing is said that would tell who it is.
    /// - Throws: `ControlProblem` 401 for a token that is not valid.
    package func caller(authorization: String?, peer: ConnectionPeer?, now: Int64) throws(ControlProblem) -> Caller {
        if let authorization, !self.tokens.isEmpty { return try self.bearer(authorization, now: now) }
        let certificate = peer?.certificate
        if let client = self.clients.first(where: { $0.mark.holds(certificate) }) {
            return Caller(name: "client:\(client.name)", scopes: client.scopes)
        }
        let process = peer?.process
        if !self.peers.isEmpty, let process {
            // Several entries may mean one process: as its user, and as one of a group.
            let known = self.peers.filter { $0.means(process) }
            if !known.isEmpty {
                return Caller(
                    name: "uid:\(process.user)", scopes: known.reduce(into: []) { $0.formUnion($1.scopes) })
            }
        }
        guard self.tokens.isEmpty, self.clients.isEmpty, self.peers.isEmpty else { return .nobody }
        return Caller(name: process.map { "uid:\($0.user)" } ?? Caller.local.name, scopes: Caller.local.scopes)
    }

    /// - Parameter authorization: as RFC 6750 §2.1 has it.
    private func bearer(_ authorization: String, now: Int64) throws(ControlProblem) -> Caller {
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Self.unauthorized("Send a token as Authorization: Bearer TOKEN.", error: nil)
        }
        let text = parts[1].trimmingSpaces
        guard text.utf8.count <= Self.tokenLimit, let token = self.token(of: text) else {
            throw Self.unauthorized("The token is none of this gateway.", error: "invalid_token")
        }
        if let expires = token.expires, expires <= now {
            throw Self.unauthorized("The token \(token.name) has expired; get another.", error: "invalid_token")
        }
        return Caller(name: "token:\(token.name)", scopes: token.scopes)
    }

    /// Compares with every one, found or not.
    private func token(of text: String) -> ControlToken? {
        let bytes = Array(text.utf8)
        var hash = SHA256()
        hash.update(bytes.span)
        let digest = hash.finalize()
        return self.tokens.reduce(nil) { found, token in token.hash.matches(digest) ? token : found }
    }

    package static func unauthorized(_ detail: String, error: String?) -> ControlProblem {
        var problem = ControlProblem(401, "unauthorized", detail)
        problem.challenge = "Bearer realm=\"sluice\"" + (error.map { ", error=\"\($0)\"" } ?? "")
        return problem
    }
}

extension ControlClient.Mark {
    func holds(_ certificate: CertificateNames?) -> Bool {
        guard let certificate else { return false }
        switch self {
        case .subject(let subject): return certificate.subject == subject
        case .alternativeName(let name): return certificate.alternativeNames.contains(name)
        case .pin(let pin): return certificate.pin.digest == pin.digest
        }
    }
}

extension ControlPeer {
    func means(_ process: PeerProcess) -> Bool {
        (self.user ?? process.user) == process.user && (self.group ?? process.group) == process.group
    }
}

/// On whose behalf a request is carried out; stands in the audit log.
package struct Caller: Sendable, Hashable {
    /// `token:NAME`, `client:NAME`, `uid:NUMBER`, or `local`.
    package let name: String
    package let scopes: Set<ControlScope>

    package init(name: String, scopes: Set<ControlScope>) {
        self.name = name
        self.scopes = scopes
    }

    /// Whoever can reach a listener that asks nobody who they are.
    package static let local = Caller(name: "local", scopes: Set(ControlScope.allCases))
    /// Somebody who did not say.
    package static let nobody = Caller(name: "nobody", scopes: [])
}

/// Who may do what, and where to, by one configuration.
struct ControlAccess: Sendable {
    let settings: ControlSettings
    let gatekeeper: ConfiguredGatekeeper
    /// Where what is opened by command may lead.
    let targets: TargetRules
    /// How callers may say who they are.
    let schemes: AccessSchemes

    init(_ settings: ControlSettings) {
        self.settings = settings
        self.gatekeeper = ConfiguredGatekeeper(settings)
        self.targets = settings.targets
        self.schemes = AccessSchemes(settings)
    }
}

/// What a caller must be allowed to do for an operation.
package enum Scope: String, CaseIterable, Sendable {
    /// For what says no more than that the process is there.
    case none
    case read
    case operate
    case configure
    case metrics

    /// `nil`: everybody may.
    package var needed: ControlScope? { ControlScope(rawValue: self.rawValue) }
}

extension ControlSettings {
    /// What of other settings can be in force while the listener stays where it is: all but the place itself, and
    /// whether it speaks TLS.
    ///
    /// Callers whom the other place would need no longer are kept for this one: that the listener is to move must not
    /// let everybody in until it has.
    package func followed(by next: ControlSettings) -> ControlSettings {
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
