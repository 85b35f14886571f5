import HTTPTransport
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Makes a WebSocket of a request's connection (RFC 6455 §4.2).
struct ControlUpgrade {
    private let call: ControlCall

    init(_ call: ControlCall) {
        self.call = call
    }

    /// Answers 101 and runs `use` with the open WebSocket until it returns; then the socket is closed.
    /// - Parameters:
    ///   - loop: where the WebSocket lives.
    ///   - readsItself: `use` receives; otherwise what the peer sends is thrown away.
    /// - Throws: `ControlProblem` for a request that is no right one.
    func webSocket(
        on loop: Loop, readsItself: Bool = false, _ use: @escaping @Sendable (WebSocketTask) async -> Void
    ) async throws -> Response {
        let opening = try self.opening()
        let wire = try await self.call.upgradableWire()
        let channel = self.call.context.channel
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
        // What HTTP still writes goes nowhere; the request ends with the connection.
        return Response(
            status: .switchingProtocols,
            body: ResponseBody { writer in
                await Self.run(socket, readsItself: readsItself, use)
                try? await channel.closeFuture.get()
                try await writer.finish(nil)
            })
    }

    private static func run(
        _ socket: WebSocketTask, readsItself: Bool, _ use: @escaping @Sendable (WebSocketTask) async -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await use(socket) }
            // The peer's Close ends whatever is being sent.
            if !readsItself { group.addTask { await socket.waitUntilClosed() } }
            await group.next()
            socket.cancel(with: .normalClosure)
            group.cancelAll()
        }
    }

    private func opening() throws(ControlProblem) -> OpeningRequest {
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
    /// Whether the request asks for a WebSocket.
    var wantsWebSocket: Bool {
        self.request.headers[values: .upgrade].contains { $0.lowercased() == "websocket" }
    }
}

extension WebSocketTask {
    /// Returns when the connection is over, or the awaiting task is cancelled.
    func waitUntilClosed() async {
        while (try? await self.receive()) != nil {}
    }
}
