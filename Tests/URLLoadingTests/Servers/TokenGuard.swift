import ByteKernels
import GSSEngine
import Synchronization
import TestSupport
import Testing
import WireText

/// Lets a test's server authenticate its connections by NTLM, or by Negotiate with NTLM inside, as GSS-API's server side
/// decides.
final class TokenGuard: Sendable {
    private struct State {
        var contexts: [Int: AcceptingContext] = [:]
        var clients: [Int: String] = [:]
        var tokens = 0
    }

    private let field: String
    private let status: Int
    private let others: [String]
    private let scheme: String
    /// Whether a token authenticates its connection, and not only its request.
    private let keepsConnections: Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - field: `WWW-Authenticate` or `Proxy-Authenticate`.
    ///   - others: challenges that a refusal offers before the scheme's.
    ///   - scheme: `NTLM` or `Negotiate`.
    init(
        field: String = "WWW-Authenticate", status: Int = 401, others: [String] = [], scheme: String = "NTLM",
        keepsConnections: Bool = true
    ) throws {
        try #require(NTLMUsers.areKnown)
        self.field = field
        self.status = status
        self.others = others
        self.scheme = scheme
        self.keepsConnections = keepsConnections
    }

    /// The number of client tokens so far.
    var tokens: Int { self.state.withLock { $0.tokens } }

    /// - Parameter serve: answers a request of a client whose name is known.
    func script(_ serve: @escaping @Sendable (ReceivedRequest, _ client: String) -> Answer) -> WebServer.Script {
        { request in self.answer(request, serve) }
    }

    private func answer(_ request: ReceivedRequest, _ serve: (ReceivedRequest, String) -> Answer) -> Answer {
        let name = self.status == 401 ? "Authorization" : "Proxy-Authorization"
        guard let value = request[name] else {
            let client = self.state.withLock { $0.clients[request.connection] }
            return client.map { serve(request, $0) } ?? self.refusal(nil)
        }
        let prefix = self.scheme + " "
        guard value.hasPrefix(prefix), let token = Base64.decoded(value.dropFirst(prefix.count).utf8) else {
            return self.refusal(nil)
        }
        switch self.step(token, request.connection) {
        case .failure: return self.refusal(nil)
        case .success((let token, nil)): return self.refusal(token)
        case .success((_, let client?)): return serve(request, client)
        }
    }

    private func step(_ token: [UInt8], _ connection: Int) -> Result<([UInt8], client: String?), GSSFailure> {
        self.state.withLock { state in
            state.tokens += 1
            do throws(GSSFailure) {
                let context = try self.context(state.contexts[connection])
                state.contexts[connection] = context
                let step = try context.step(token)
                guard step.isComplete else { return .success((step.token, nil)) }
                state.contexts[connection] = nil
                if self.keepsConnections { state.clients[connection] = context.client }
                return .success((step.token, context.client ?? "nobody"))
            } catch {
                state.contexts[connection] = nil
                return .failure(error)
            }
        }
    }

    private func context(_ begun: AcceptingContext?) throws(GSSFailure) -> AcceptingContext {
        if let begun { return begun }
        return try AcceptingContext()
    }

    private func refusal(_ token: [UInt8]?) -> Answer {
        let challenges = token.map { ["\(self.scheme) \(Base64.encoded($0))"] } ?? self.others + [self.scheme]
        return .text("no", challenges.map { "\(self.field): \($0)" }, status: self.status)
    }
}
