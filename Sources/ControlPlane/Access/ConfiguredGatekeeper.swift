import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import StreamTransport

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
