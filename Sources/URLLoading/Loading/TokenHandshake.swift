import Foundation
import GSSEngine
import HTTPSemantics
import HTTPTransport
import TLSEngine
import WireText

/// The credential of NTLM or Negotiate (RFC 4559), and the connections that it authenticates. Confined to the session's
/// executor.
final class ConnectionAuthorization {
    let mechanism: SecurityMechanism
    let credential: SecurityCredential
    let identity = ConnectionIdentity()
    /// The channel bindings of the server's certificate as last seen; empty without TLS.
    var bindings: [UInt8] = []
    /// The server wants a token with each request, not only with the first one on a connection.
    var authenticatesEachRequest = false

    /// - Returns: `nil` for another scheme, and for a credential without user name and password.
    init?(_ scheme: AuthenticationScheme, _ credential: URLCredential) {
        switch scheme {
        case .negotiate: self.mechanism = .negotiate
        case .ntlm: self.mechanism = .ntlm
        case .basic, .digest, .other: return nil
        }
        guard let user = credential.user, let password = credential.password else { return nil }
        self.credential = user.isEmpty ? .system : .password(user: user, password: password)
    }

    var schemeName: String {
        switch self.mechanism {
        case .negotiate: "Negotiate"
        case .ntlm: "NTLM"
        }
    }
}

/// Exchanges the tokens of NTLM or Negotiate, each in a request of its own on the same connection. Confined to the
/// session's executor.
final class TokenHandshake: @unchecked Sendable {  // Confined to the session's executor, but for the context.
    /// Most tokens of one handshake.
    private static let limit = 8
    /// Security contexts block, while they ask a key distribution centre. Four do so at a time; others wait.
    private static let queue = {
        let queue = OperationQueue()
        queue.name = "URLLoading.authentication"
        queue.maxConcurrentOperationCount = 4
        return queue
    }()

    let authorization: ConnectionAuthorization
    private let host: String
    private let bindings: [UInt8]
    /// Used within the queue only, by one step at a time.
    private var context: SecurityContext?
    /// To be sent with the next request.
    private var token: [UInt8]?
    private var steps = 0
    private var isComplete = false

    /// - Parameter host: of the server or proxy, whose service name is `HTTP@host`.
    init(_ authorization: ConnectionAuthorization, host: String) {
        self.authorization = authorization
        self.host = host
        self.bindings = authorization.bindings
    }

    /// Whether the next token makes sense only on the connection of the tokens before.
    var isBound: Bool { self.steps > 1 }

    /// Whether a token of the server would be taken.
    var canContinue: Bool { !self.isComplete && self.steps < Self.limit }

    /// The value of the authorization field; `nil` if there is no token to be sent.
    func takeFieldValue() -> String? {
        defer { self.token = nil }
        return self.token.map { "\(self.authorization.schemeName) \(Base64.encoded($0))" }
    }

    /// Makes the next token.
    /// - Parameters:
    ///   - token: of the server; empty for the first step.
    ///   - completion: called once on any thread; its argument belongs into `stepped`.
    func step(_ token: [UInt8], _ completion: @escaping @Sendable (Result<SecurityStep, GSSFailure>) -> Void) {
        self.steps += 1
        Self.queue.addOperation { completion(self.next(token)) }
    }

    private func next(_ token: [UInt8]) -> Result<SecurityStep, GSSFailure> {
        do throws(GSSFailure) {
            let context = try self.makeContext()
            self.context = context
            return .success(try context.step(token))
        } catch {
            return .failure(error)
        }
    }

    private func makeContext() throws(GSSFailure) -> SecurityContext {
        if let context { return context }
        // NTLM's plug-in uses OpenSSL.
        CryptoLibrary.start()
        return try SecurityContext(
            self.authorization.mechanism, with: self.authorization.credential, to: "HTTP", at: self.host,
            bindings: self.bindings)
    }

    /// Takes the result of a step.
    func stepped(_ step: SecurityStep) {
        self.isComplete = step.isComplete
        self.token = step.token
    }
}
