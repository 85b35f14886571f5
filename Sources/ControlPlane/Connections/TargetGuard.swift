import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization

/// Stands between an order and the addresses that it leads to: each is asked about when it is tried, so that what a name
/// means then is what counts.
final class TargetGuard: Sendable {
    private let rules: TargetRules
    private let url: EndpointURL
    private let refused = Mutex<SocketAddress?>(nil)

    init(_ rules: TargetRules, url: EndpointURL) {
        self.rules = rules
        self.url = url
    }

    func stand(before order: inout ClientOrder) {
        let host: String? = if case .name(let name, _) = self.url.location { name } else { nil }
        let rules = self.rules
        order.permits = { rules.allows($0, askedFor: host) }
        order.watch = { step in
            if case .failed(.notPermitted(let address)) = step { self.refused.withLock { $0 = address } }
        }
    }

    /// Whether nothing was tried because nothing may be.
    var hasRefused: Bool { self.refused.withLock { $0 != nil } }

    var problem: ControlProblem {
        let address = self.refused.withLock { $0 }.map { "\($0)" } ?? self.url.description
        return ControlProblem(
            403, "target-not-allowed",
            "\(address) is none of the targets that may be connected to; control.targets lists them."
        )
        .at(pointer: "/url")
    }
}
