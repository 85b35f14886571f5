import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import SessionTasks
import WebSocketProtocol

extension ConnectionsResource {
    /// Description, priority and labels; what is missing stays.
    func change(_ call: ControlCall) async throws -> Response {
        let live = try await self.live(call)
        let patch = try await call.decode(ConnectionPatch.self)
        let description = try ClientOrderReading.description(patch.description)
        let priority = try ClientOrderReading.priority(patch.priority)
        let labels = try patch.labels.map { (labels) throws(ControlProblem) in try ClientOrderReading.labels(labels) }
        if description != nil || priority != nil {
            let record = try self.link(live).record
            if let description { record.update { $0.label = description.isEmpty ? nil : description } }
            if let priority { record.priority = priority }
        }
        if let labels { _ = await self.gateway.setLabels(labels, of: live.report.key) }
        return try await self.shown(live.report.key)
    }

    /// Ends a connection: with a closing handshake, in order, or at once with `abort=true`. Answers when it is over, or
    /// with 202 where that takes longer than the client waits.
    func close(_ call: ControlCall) async throws -> Response {
        let live = try await self.live(call)
        let key = live.report.key
        if try call.query.boolean("abort") == true {
            guard try call.query.value("code") == nil, try call.query.value("reason") == nil else {
                throw ControlProblem(
                    400, "invalid-parameter", "An abort says nothing to the peer: leave out code and reason."
                )
                .at(parameter: "abort")
            }
            _ = await self.gateway.abort(key)
        } else {
            _ = await self.gateway.stop(key, try Self.signal(call.query))
        }
        return try await self.ended(key, within: .seconds(call.waitPreference() ?? 5))
    }

    static func signal(_ query: Query) throws(ControlProblem) -> CloseSignal {
        let reason = Array((try query.value("reason") ?? "").utf8)
        guard reason.count <= 123 else {
            throw ControlProblem(
                400, "invalid-parameter", "reason is to have at most 123 bytes of UTF-8 (RFC 6455 §5.5)."
            )
            .at(parameter: "reason")
        }
        guard let text = try query.value("code") else { return CloseSignal(code: 1000, reason: reason) }
        guard let code = UInt16(text), CloseCode(rawValue: code).isAllowedOnWire else {
            throw ControlProblem(
                400, "invalid-parameter",
                "code is to be one that may be sent: 1000 to 1003, 1007 to 1014, 3000 to 4999 (RFC 6455 §7.4)."
            )
            .at(parameter: "code")
        }
        return CloseSignal(code: code, reason: reason)
    }

    private func ended(_ key: ConnectionKey, within limit: Duration) async throws -> Response {
        let isLive = if case .live = await self.found(key, endedWithin: limit) { true } else { false }
        return try await self.shown(key, status: isLive ? .accepted : .ok)
    }

    /// What is known of a connection once it is over, or the time is.
    func found(_ key: ConnectionKey, endedWithin limit: Duration) async -> Gateway.Lookup {
        let deadline = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(1)
        while true {
            let found = await self.gateway.find(key)
            guard case .live = found, ContinuousClock.now < deadline, !Task.isCancelled else { return found }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .milliseconds(50))
        }
    }
}
