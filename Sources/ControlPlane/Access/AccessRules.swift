import GatewayCore
import HTTPSemantics
import TLSEngine

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
