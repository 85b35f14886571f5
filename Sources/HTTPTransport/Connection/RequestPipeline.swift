import DequeModule
import StreamTransport
import WireText

/// The requests that are written behind the current one of an HTTP/1.1 connection (RFC 9112 §9.3.2). Their responses come
/// in the same order.
///
/// Confined to the connection's loop.
final class RequestPipeline {
    /// Most requests of a connection without a response, the current one included.
    static let depth = 6
    /// How long the consumer of the current response may take nothing before the requests behind it are sent elsewhere.
    static let patience = Duration.seconds(1)

    private var exchanges: Deque<Exchange> = []
    /// The responses of some written requests are not wanted any more: the connection is closed behind the current one.
    private(set) var isBroken = false
    let patienceTimer = LoopTimer()

    var isEmpty: Bool { self.exchanges.isEmpty }

    /// Whether requests were written whose responses have not begun, wanted or not.
    var wasWritten: Bool { self.isBroken || !self.isEmpty }

    /// Whether one more request can be written.
    var hasCapacity: Bool { !self.isBroken && self.exchanges.count + 1 < Self.depth }

    func append(_ exchange: Exchange) { self.exchanges.append(exchange) }

    func popFirst() -> Exchange? { self.isBroken ? nil : self.exchanges.popFirst() }

    /// Removes an exchange that has ended.
    func remove(_ exchange: Exchange) { self.exchanges.removeAll { $0 === exchange } }

    /// Removes all; their responses are not wanted.
    func takeAll() -> [Exchange] {
        defer { self.exchanges = [] }
        if !self.exchanges.isEmpty { self.isBroken = true }
        return Array(self.exchanges)
    }

    /// The response of a written request is not wanted.
    func breakOff() { self.isBroken = true }
}

extension Exchange {
    /// Whether the request can be repeated without effect, and has nothing that changes the connection.
    static func canBePipelined(_ request: ExchangeRequest, _ plan: RequestPlan) -> Bool {
        guard request.usesPipelining, plan.framing == .none, request.lease == nil, plan.head.fields["Upgrade"] == nil
        else { return false }
        return ["GET", "HEAD", "OPTIONS", "TRACE"].contains(plan.head.method)
    }
}
