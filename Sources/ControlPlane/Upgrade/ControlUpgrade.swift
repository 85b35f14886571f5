import HTTPTypes
import HummingbirdCore
import NIOCore
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Upgrades the connection of a request to a WebSocket (RFC 6455 §4.2).
struct ControlUpgrade {
    let call: ControlCall

    /// Responds with 101, runs `body` with the open WebSocket, and closes the WebSocket when `body` returns.
    /// - Parameters:
    ///   - loop: runs the WebSocket.
    ///   - receives: whether `body` receives messages; otherwise messages of the client are discarded.
    /// - Throws: `ControlProblem` for an invalid opening handshake.
    func webSocket(
        on loop: Loop, receives: Bool = false, _ body: @escaping @Sendable (WebSocketTask) async -> Void
    ) async throws -> Response {
        let opening = try self.openingRequest()
        let wire = try await self.call.upgradableWire()
        guard let channel = self.call.channel else { throw ControlProblem.notForwarded }
        let acceptance = opening.acceptance(subprotocols: [], deflate: nil)
        let socket = await withCheckedContinuation { (continuation: CheckedContinuation<WebSocketTask, Never>) in
            loop.execute {
                var options = WebSocketOptions()
                options.pingInterval = .seconds(30)
                options.maximumMessageSize = 16 << 20
                let transport = wire.transport(of: channel, on: loop)
                continuation.resume(
                    returning: WebSocketTask(
                        accepting: transport, response: acceptance.response, subprotocol: acceptance.subprotocol,
                        deflate: nil, options: options))
            }
        }
        // HTTP output is discarded from here on; the request ends with the connection.
        return Response(
            status: .switchingProtocols,
            body: ResponseBody { writer in
                await Self.run(socket, receives: receives, body)
                try? await channel.closeFuture.get()
                try await writer.finish(nil)
            })
    }

    private static func run(
        _ socket: WebSocketTask, receives: Bool, _ body: @escaping @Sendable (WebSocketTask) async -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await body(socket) }
            // The client's Close stops the sender.
            if !receives { group.addTask { while (try? await socket.receive()) != nil {} } }
            await group.next()
            socket.cancel(with: .normalClosure)
            group.cancelAll()
        }
    }

    private func openingRequest() throws(ControlProblem) -> OpeningRequest {
        let request = self.call.request
        var fields = request.headers.map { WebSocketProtocol.HTTPField($0.name.rawName, $0.value) }
        if let authority = request.head.authority { fields.append(WebSocketProtocol.HTTPField("Host", authority)) }
        let head = RequestHead(
            method: request.method.rawValue, target: request.head.path ?? "/",
            fields: WebSocketProtocol.HTTPFields(fields))
        switch ServerHandshake.evaluate(head) {
        case .success(let opening): return opening
        case .failure(let refusal): throw ControlProblem(refusal.status, "bad-handshake", refusal.explanation)
        }
    }
}

extension ControlCall {
    /// Whether the request offers an upgrade to WebSocket.
    var wantsWebSocket: Bool {
        self.request.headers[values: .upgrade].contains { $0.lowercased() == "websocket" }
    }
}
