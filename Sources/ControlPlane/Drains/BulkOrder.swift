import ControlAPI
import GatewayCore
import WebSocketProtocol

/// A bulk request, understood.
package struct BulkOrder: Sendable {
    /// Of the query, in place of members of the body.
    package static let parameters: Set<String> = ["all", "preview"]

    package let filter: ConnectionFilter
    package let signal: CloseSignal
    package let aborts: Bool
    package let isPreview: Bool

    /// - Throws: `ControlProblem`; also for a selector that would mean everything without `all`.
    package init(_ request: BulkRequest, standardCode: UInt16) throws(ControlProblem) {
        self.filter = try BulkSelector(request.selector ?? [:]).filter
        guard !self.filter.isEmpty || request.all == true else {
            throw .invalid("/selector", "An empty selector means every connection: say all=true if that is meant.")
        }
        guard !self.filter.wantsClosed else { throw .invalid("/selector/state", "What is closed cannot be closed.") }
        let reason = Array((request.reason ?? "").utf8)
        guard reason.count <= 123 else { throw .invalid("/reason", "reason is to have at most 123 bytes of UTF-8.") }
        let code = request.code.flatMap { UInt16(exactly: $0) } ?? (request.code == nil ? standardCode : 0)
        guard CloseCode(rawValue: code).isAllowedOnWire else {
            throw .invalid("/code", "code is to be 1000 to 1003, 1007 to 1014, or 3000 to 4999 (RFC 6455 §7.4).")
        }
        self.signal = CloseSignal(code: code, reason: reason)
        self.aborts = request.abort == true
        self.isPreview = request.preview == true
    }

    func end(_ key: ConnectionKey, of gateway: Gateway) async -> Bool {
        self.aborts ? await gateway.abort(key) : await gateway.stop(key, self.signal)
    }
}
