import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One attempt to reach one endpoint, up to the point where payload can flow.
final class UpstreamAttempt {
    struct Failure: Error {
        let kind: UpstreamFailure
        /// Description for the log.
        let detail: String?
        /// The upstream's response, if it sent one.
        let response: ResponseHead?
    }

    typealias Completion = (Result<RelayEndpoint, Failure>) -> Void

    private var completion: Completion?
    private var stream: StreamTask?
    private var webSocket: WebSocketTask?

    init(
        _ upstream: UpstreamPlan, endpoint: Int, route: RoutePlan, matched: MatchedRequest?, context: ConnectionContext,
        on loop: Loop, completion: @escaping Completion
    ) {
        self.completion = completion
        let preamble = Self.preamble(route.configuration.proxyProtocol, context)
        let target = upstream.target(endpoint, settings: route.configuration.tunnel, preamble: preamble)
        if upstream.configuration.speaksWebSocket {
            self.open(upstream, endpoint, route, matched, context, target, on: loop)
        } else {
            self.open(target, on: loop)
        }
    }

    /// The PROXY header that names the client to the upstream.
    private static func preamble(_ version: ProxyProtocolVersion?, _ context: ConnectionContext) -> [UInt8] {
        guard let version else { return [] }
        guard let destination = context.destination else { return ProxyHeader.local.encoded(version) }
        return ProxyHeader.proxied(source: context.client, destination: destination).encoded(version)
    }

    private func open(_ target: OpeningTarget, on loop: Loop) {
        let task = StreamTask(to: target, on: loop)
        self.stream = task
        task.openObserver = { self.finish(.success(.stream(task))) }
        task.whenEnded { failure in
            let kind = UpstreamFailure(failure, response: nil, connected: task.record.isConnected)
            self.finish(.failure(Failure(kind: kind, detail: failure?.description, response: nil)))
        }
        task.resumeOnLoop()
    }

    private func open(
        _ upstream: UpstreamPlan, _ endpoint: Int, _ route: RoutePlan, _ matched: MatchedRequest?,
        _ context: ConnectionContext, _ target: OpeningTarget, on loop: Loop
    ) {
        var options = route.webSocketOptions
        options.handshakeTimeout = upstream.configuration.handshakeTimeout
        let handshake = UpstreamRequest.make(
            upstream, endpoint: endpoint, route: route, matched: matched, context: context)
        let task = WebSocketTask(
            opening: ClientOpening(target: target, handshake: handshake, deflate: route.deflate), on: loop,
            options: options, startsPaused: true)
        self.webSocket = task
        task.openObserver = { self.finish(.success(.webSocket(task))) }
        task.whenEnded { end in
            let kind = UpstreamFailure(end.failure, response: task.response, connected: task.record.isConnected)
            self.finish(.failure(Failure(kind: kind, detail: end.failure?.description, response: task.response)))
        }
        task.resumeOnLoop()
    }

    private func finish(_ result: Result<RelayEndpoint, Failure>) {
        let completion = self.completion
        self.completion = nil
        if case .success = result {
            self.stream?.forgetEndObservers()
            self.webSocket?.forgetEndObservers()
        }
        self.stream = nil
        self.webSocket = nil
        completion?(result)
    }

    func cancel() {
        self.completion = nil
        self.stream?.cancelOnLoop()
        self.webSocket?.cancelOnLoop()
        self.stream = nil
        self.webSocket = nil
    }
}
