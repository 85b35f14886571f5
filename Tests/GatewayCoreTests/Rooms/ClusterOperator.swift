import GatewayCore
import Rooms

/// A program that publishes through the nodes' control planes with idempotency keys, repeats what may not have been done,
/// and removes publications from histories.
final class ClusterOperator {
    /// A publication with a key of its own.
    final class Request {
        let number: Int
        let room: String
        /// Positions that nodes have told, one for each attempt that succeeded.
        fileprivate(set) var positions: [StreamPosition] = []
        /// The attempt that has no result yet: `nil` also after its node was killed.
        fileprivate var attempt: (node: Int, number: Int)?

        init(number: Int, room: String) {
            self.number = number
            self.room = room
        }

        var isAcknowledged: Bool { !self.positions.isEmpty }
    }

    private(set) var requests: [Request] = []
    private(set) var counts: [String: Int] = [:]
    private var attempts = 0

    private func count(_ name: String) { self.counts[name, default: 0] += 1 }

    func publish(_ number: Int, in room: String, on gateway: SimulatedGateway, node: Int) {
        let request = Request(number: number, room: room)
        self.requests.append(request)
        self.attempt(request, on: gateway, node: node)
    }

    /// Publishes once more what was acknowledged, or may have been done.
    func repeatRequest(_ request: Request, on gateway: SimulatedGateway, node: Int) {
        guard request.attempt == nil else { return }
        self.count(request.isAcknowledged ? "repeatedAcknowledged" : "repeatedUncertain")
        self.attempt(request, on: gateway, node: node)
    }

    private func attempt(_ request: Request, on gateway: SimulatedGateway, node: Int) {
        self.attempts += 1
        let attempt = self.attempts
        request.attempt = (node, attempt)
        let publication = Publication(
            .json(Array(#"{"n":\#(request.number)}"#.utf8)),
            tags: [Tag("parity", request.number.isMultiple(of: 2) ? "even" : "odd")])
        gateway.begin(inHomeOf: request.room) { part in
            part.publish(publication, in: request.room, idempotencyKey: "\(request.number)") { [weak self] result in
                guard request.attempt?.number == attempt else { return }
                request.attempt = nil
                switch result {
                case .success(let position): request.positions.append(position)
                case .failure: self?.count("operationsFailed")
                }
            }
        }
    }

    /// - Parameter offset: `nil` removes all.
    func remove(_ offset: Int?, from room: String, on gateway: SimulatedGateway) {
        gateway.begin(inHomeOf: room) { part in
            guard let offset = offset.map({ UInt64($0) }) else { return part.removeHistory(of: room) { _ in } }
            part.removePublication(of: room, offset: offset) { _ in }
        }
    }

    /// What the node was doing has no result.
    func nodeWasKilled(_ node: Int) {
        for request in self.requests where request.attempt?.node == node { request.attempt = nil }
    }
}
