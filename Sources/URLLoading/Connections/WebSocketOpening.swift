import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import SessionTasks
import StreamTransport
import WebSocketProtocol
import WireText

/// Prepares the requests of an opening handshake, and follows redirects and authentication challenges. Confined to the
/// session's executor.
final class WebSocketOpening: ChallengedRequest, @unchecked Sendable {  // Confined to the session's executor.
    /// How the handshake continues.
    enum Decision: Sendable {
        /// Sends a request; with its form on the wire, and the number of redirects so far.
        case open(ClientOpening, URLRequest, redirects: Int)
        case refused
        case failed(URLError)
    }

    let core: SessionCore
    let session: URLSession
    let task: URLSessionTask
    /// The original request, or the one of the last redirect.
    private(set) var request: URLRequest
    private let policy: DeflatePolicy?
    /// Adds the observer and the TLS settings to the target of each handshake.
    private let prepare: @Sendable (inout OpeningTarget, URL) throws(URLError) -> Void
    private var redirects = 0
    var credentials = RequestCredentials()
    /// Each handshake has a connection of its own, to the same server.
    var handshakeConnection: HandshakeConnection { HandshakeConnection(certificate: self.certificate) }
    /// The leaf certificate of the latest connection, in DER; `nil` without TLS.
    private var certificate: [UInt8]?
    var challengedTask: (task: URLSessionTask, session: URLSession)? { (self.task, self.session) }

    init(
        _ request: URLRequest, for task: URLSessionTask, of session: URLSession, _ policy: DeflatePolicy?,
        prepare: @escaping @Sendable (inout OpeningTarget, URL) throws(URLError) -> Void
    ) {
        self.core = session.core
        self.session = session
        self.task = task
        self.request = request
        self.policy = policy
        self.prepare = prepare
    }

    /// Why this request cannot open a WebSocket.
    static func validationError(of request: URLRequest) -> URLError? {
        let url = request.url
        guard ["ws", "wss"].contains(url?.scheme?.loweredASCII) else {
            return LoadFailure.error(
                .unsupportedURL, url: url, text: "WebSocket URLs must have the scheme ws or wss.")
        }
        guard let url, HTTPTransport.ServerEndpoint(url) != nil else {
            return LoadFailure.error(.badURL, url: url, text: "The URL has no host or an invalid port.")
        }
        guard request.httpMethod == "GET", TaskBody(request).isNone else {
            return LoadFailure.error(
                .unsupportedURL, url: url, text: "The opening request of a WebSocket must be GET without a body.")
        }
        return nil
    }

    // MARK: The request

    /// Builds the next request, with cookies and authorization.
    /// - Parameter completion: called once, on any thread.
    func next(_ completion: @escaping @Sendable (Decision) -> Void) {
        self.task.mutate(\.currentRequest) { $0.currentRequest = self.request }
        guard self.core.asksForCookies(of: self.request) else { return completion(self.makeDecision(nil)) }
        self.core.askForCookies(of: self.task) { cookies in
            self.core.executor.execute { completion(self.makeDecision(cookies)) }
        }
    }

    private func makeDecision(_ cookies: [HTTPCookie]?) -> Decision {
        if let validationError = Self.validationError(of: self.request) { return .failed(validationError) }
        guard let url = self.request.url, let origin = HTTPTransport.ServerEndpoint(url) else { return .refused }
        let fields = self.fields(url, cookies)
        do throws(URLError) {
            let socket = self.core.configuration.unixSocketPath.map { ConnectTarget.address(.unix(path: $0)) }
            var target = OpeningTarget(socket ?? .host(origin.host, port: origin.port))
            if socket == nil { target.permits = self.core.permission(for: origin.host) }
            target.resolveServer = self.core.resolveServer(for: self.request)
            try self.prepare(&target, url)
            let opening = ClientOpening(
                target: target, handshake: try self.handshake(url, fields), deflate: self.policy)
            let head = RequestHead(method: "GET", target: url.requestTarget, fields: .init(fields))
            return .open(opening, self.request.withSentFields(head), redirects: self.redirects)
        } catch {
            return .failed(error)
        }
    }

    private func fields(_ url: URL, _ cookies: [HTTPCookie]?) -> [FieldLine] {
        var builder = RequestBuilder(self.core.configuration, self.core.requestSettings)
        builder.isAtOriginalOrigin = self.core.isAtOriginalOrigin(self.request, of: self.task)
        builder.cookies = cookies
        self.authorize(&builder, url, method: "GET", target: url.requestTarget, body: .none)
        return builder.fields(of: self.request).filter { !Self.isReserved($0.name) }
    }

    /// Fields that the handshake sets itself, and those for proxies, none of which gets the request: those of the program
    /// are ignored.
    private static func isReserved(_ name: String) -> Bool {
        let reserved = [
            "Upgrade", "Connection", "Content-Length", "Transfer-Encoding", "Sec-WebSocket-Key",
            "Sec-WebSocket-Version", "Sec-WebSocket-Accept", "Sec-WebSocket-Extensions",
        ]
        return reserved.contains { $0.matchesIgnoringCase(name) } || name.beginsIgnoringCase("Proxy-")
    }

    private func handshake(_ url: URL, _ fields: [FieldLine]) throws(URLError) -> ClientHandshake {
        do throws(HandshakeUsageError) {
            return try ClientHandshake(
                host: url.serverName ?? "", port: url.port, isSecure: url.isSecureWebSocket, target: url.requestTarget,
                offers: self.policy?.offers ?? [],
                fields: fields.map { WebSocketProtocol.HTTPField($0.name, $0.value) })
        } catch {
            throw LoadFailure.error(
                .badURL, url: url, cause: error, text: "The request is not a valid opening handshake: \(error).")
        }
    }

    // MARK: The response

    /// - Parameters:
    ///   - certificate: the leaf certificate of the connection, in DER; `nil` without TLS.
    ///   - completion: called once, on any thread.
    func responseReceived(
        _ response: HTTPURLResponse, _ lines: [FieldLine], certificate: [UInt8]?,
        _ completion: @escaping @Sendable (Decision) -> Void
    ) {
        guard let url = self.request.url else { return completion(.refused) }
        self.certificate = certificate
        self.core.storeCookies(lines, from: url, request: self.request, of: self.task)
        self.serverAnswered(response.statusCode)
        let challenges = response.statusCode == 401 ? lines.filter { $0.isNamed("www-authenticate") } : []
        if self.authenticate(response, challenges.map(\.value), { $0.answered($1, completion) }) { return }
        let fields = HTTPTypes.HTTPFields(lines)
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: completion(.refused)
        case .refuse(let code, let text): completion(.failed(LoadFailure.error(code, url: url, text: text)))
        case .follow(var next, _):
            next.url = next.url?.asWebSocket
            self.core.askRedirect(response, to: next, about: self.task, of: self.session) { chosen in
                self.core.executor.execute { self.follow(chosen, completion) }
            }
        }
    }

    private func follow(_ next: URLRequest?, _ completion: @escaping @Sendable (Decision) -> Void) {
        guard var next else { return completion(.refused) }
        next.url = next.url?.asWebSocket
        self.redirects += 1
        self.request = next
        self.credentials = RequestCredentials()
        self.next(completion)
    }

    // MARK: Authentication

    /// The handshake is successful: updates the authorization from its `Authentication-Info`.
    func accepted(_ lines: [FieldLine]) {
        self.credentialAccepted()
        self.credentials.authorization?.received(
            authenticationLines: lines.filter { $0.isNamed("authentication-info") }.map(\.value))
    }

    private func answered(_ outcome: ChallengeOutcome, _ completion: @escaping @Sendable (Decision) -> Void) {
        switch outcome {
        case .retry: self.next(completion)
        case .refused: completion(.refused)
        case .failed(let error): completion(.failed(error))
        }
    }

    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (WebSocketOpening, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        { answer in self.core.executor.execute { work(self, answer) } }
    }
}

extension URL {
    var isSecureWebSocket: Bool { self.scheme?.loweredASCII == "wss" }

    /// Redirects use the schemes of HTTP; the next request is still a WebSocket handshake.
    fileprivate var asWebSocket: URL {
        let scheme =
            switch self.scheme?.loweredASCII {
            case "http": "ws"
            case "https": "wss"
            default: self.scheme
            }
        var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        return parts?.url ?? self
    }
}

/// Collects the metrics of an opening handshake from its steps.
struct HandshakeTimings {
    /// `nil` after `take`.
    private(set) var metrics: ExchangeMetrics?

    private var isProxied = false

    init() {
        self.metrics = ExchangeMetrics(fetchStart: .now)
    }

    mutating func record(_ step: OpeningStep) {
        self.metrics?.timings.record(step)
        switch step {
        case .began(_, let isProxied):
            self.isProxied = isProxied
            self.metrics?.connection = nil
        case .connected(let local, let peer):
            var metadata = ConnectionMetadata()
            metadata.localAddress = local
            metadata.peerAddress = peer
            metadata.isProxied = self.isProxied
            self.metrics?.connection = metadata
        case .secured(let metadata): self.metrics?.connection?.tls = metadata
        case .requested(let bytes):
            let now = ContinuousInstant.now
            self.metrics?.requestStart = now
            self.metrics?.requestEnd = now
            self.metrics?.requestHeadBytes = Int64(bytes)
        case .answered(let bytes):
            let now = ContinuousInstant.now
            self.metrics?.responseStart = now
            self.metrics?.responseEnd = now
            self.metrics?.responseHeadBytes = Int64(bytes)
        case .took(let path): self.metrics?.connection?.path = path
        case .securedProxy, .tunnelled, .resolved, .securing, .failed, .waiting: break
        }
        if let timings = self.metrics?.timings { self.metrics?.connection?.timings = timings }
    }

    /// The metrics; `nil` on later calls.
    mutating func take() -> ExchangeMetrics? {
        defer { self.metrics = nil }
        return self.metrics
    }
}
