import GatewayCore
import StreamTransport

/// Where transfers may lead: to where connections opened by command may.
struct TransferTargets: Sendable {
    /// Why a URL may not be asked for, before its name is looked up; also of each redirect.
    var refusal: @Sendable (_ scheme: String, _ host: String, _ port: UInt16) -> ControlProblem? = { _, _, _ in nil }
    /// Whether an address may be connected to on behalf of a host.
    var admits: @Sendable (SocketAddress, _ host: String) -> Bool

    /// - Parameter rules: asked each time, as they can change.
    init(_ rules: @escaping @Sendable () -> TargetRules) {
        self.admits = { address, host in
            // A host in digits is no name that a rule could be about.
            let isLiteral = SocketAddress(literal: host, port: 0) != nil
            return rules().allows(address, askedFor: isLiteral ? nil : host)
        }
    }
}
