import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks
import WebSocketProtocol

/// `/v1/events`: what happens, as Server-Sent Events or over a WebSocket.
struct EventsResource: Sendable {
    static let heartbeat = Duration.seconds(15)

    let context: ControlContext

    var operations: [Operation] {
        let parameters = EventFilter.parameters.union(["after", "heartbeatMs"]).union(StreamBounds.parameters)
        return [
            Operation("followEvents", .get, "/v1/events", .read, parameters: parameters) { try await self.follow($0) }
        ]
    }

    private func follow(_ call: ControlCall) async throws -> Response {
        guard let journal = self.context.gateway.journal else {
            throw ControlProblem(409, "no-journal", "This gateway keeps no events.")
        }
        let filter = try EventFilter(call.query)
        let heartbeat = try call.query.milliseconds("heartbeatMs") ?? Self.heartbeat
        guard (.milliseconds(10) ... .seconds(600)).contains(heartbeat) else {
            throw ControlProblem(400, "invalid-parameter", "heartbeatMs is to be from 10 to 600000.")
                .at(parameter: "heartbeatMs")
        }
        let reader = EventReader(
            journal, filter: filter, after: try Self.position(call), heartbeat: heartbeat,
            bounds: try StreamBounds(call.query))
        if call.wantsWebSocket {
            return try await ControlUpgrade(call).webSocket(on: self.context.loop) { socket in
                await Self.pour(reader, into: socket)
            }
        }
        return try await EventStream.response(call) { writer, gone in
            var reader = reader
            reader.gone = gone
            while true {
                switch await reader.next() {
                case .events(let events):
                    for event in events {
                        try await writer.event(EventWriter.json(event), id: event.number, type: event.kind.rawValue)
                    }
                case .gap(let missed):
                    try await writer.event(EventWriter.gap(missed), id: missed.upperBound, type: "gap")
                case .heartbeat: try await writer.comment()
                case .end: return
                }
            }
        }
    }

    /// `Last-Event-ID`, as a client sends it that comes back, or `after`.
    private static func position(_ call: ControlCall) throws(ControlProblem) -> UInt64? {
        if let text = call.request.headers[.lastEventID], !text.isEmpty {
            guard let number = UInt64(text) else {
                throw ControlProblem(400, "invalid-header", "Last-Event-ID is to be the number of an event.")
            }
            return number
        }
        guard let text = try call.query.value("after") else { return nil }
        guard let number = UInt64(text) else {
            throw ControlProblem(400, "invalid-parameter", "after is to be the number of an event.").at(
                parameter: "after")
        }
        return number
    }

    private static func pour(_ reader: EventReader, into socket: WebSocketTask) async {
        var reader = reader
        while true {
            let texts: [[UInt8]]
            switch await reader.next() {
            case .events(let events): texts = events.map(EventWriter.json)
            case .gap(let missed): texts = [EventWriter.gap(missed)]
            case .heartbeat:
                // The peer's life is asked for by a ping.
                guard (try? await socket.sendPing()) != nil else { return }
                continue
            case .end: return socket.cancel(with: .goingAway)
            }
            for text in texts {
                guard (try? await socket.send(.string(String(decoding: text, as: UTF8.self)))) != nil else { return }
            }
        }
    }
}
