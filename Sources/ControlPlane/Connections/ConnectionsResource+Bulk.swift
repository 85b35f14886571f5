import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore

extension ConnectionsResource {
    /// Ends every connection that is meant, at once.
    func closeMany(_ call: ControlCall) async throws -> Response {
        let request = try await call.bulkRequest()
        guard request.ratePerSecond == nil, request.jitterMs == nil, request.deadlineMs == nil else {
            throw ControlProblem.invalid(
                "/ratePerSecond", "A rate, a jitter and a deadline are a drain's: POST /v1/drains.")
        }
        let order = try BulkOrder(request, standardCode: 1000)
        let keys = await self.keys(order.filter)
        var answer = BulkAnswer(matched: keys.count, told: 0)
        if order.isPreview { return .json(answer) }
        for key in keys where await order.end(key, of: self.gateway) { answer.told += 1 }
        return .json(answer)
    }

    /// What is meant; of a tunnel, its client's side stands for both.
    func keys(_ filter: ConnectionFilter) async -> [ConnectionKey] {
        let list = ConnectionList(
            gateway: self.gateway, filter: filter, sort: ConnectionSort(), limit: 1, kept: self.kept)
        let numbers = Set(await list.all().map(\.key.number))
        return numbers.sorted().map { ConnectionKey($0) }
    }
}

extension ControlCall {
    /// The body, with what the query says in its place.
    func bulkRequest() async throws -> BulkRequest {
        var request = try await self.decode(BulkRequest.self)
        if let all = try self.query.boolean("all") { request.all = all }
        if let preview = try self.query.boolean("preview") { request.preview = preview }
        return request
    }
}
