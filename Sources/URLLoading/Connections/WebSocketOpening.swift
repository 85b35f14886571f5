import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Finds out how a WebSocket is opened: one request after the other, until there is an answer that redirects nowhere and
/// asks for nothing. On the loop of the session, as all that decides about its requests.
final class WebSocketOpening: @unchecked Sendable {
    /// What becomes of an answer that is no 101.
    enum Judgement: Sendable {
        /// Begins anew; with the request as it is sent, and how many redirects led there.
        case open(ClientOpening, URLRequest, redirects: Int)
        case refused
        case failed(URLError)
    }

    let core: SessionCore
    let session: URLSession
    let task: URLSessionTask
    /// As the program made it, or as redirects and their delegate left it.
    private(set) var request: URLRequest
    private let policy: DeflatePolicy?
    /// Completes the target of each opening: who watches it, and how it is secured.
    private let prepare: @Sendable (inout OpeningTarget, URL) throws(URLError) -> Void
    private var redirects = 0
    /// What is sent with the request, if anything.
    var authorization: Authorization?
    var refusedCredentials = 0
    var lastCredential: URLCredential?

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

    /// Why no WebSocket can be opened by this request.
    static func flaw(of request: URLRequest) -> URLError? {
        let url = request.url
        guard ["ws", "wss"].contains(url?.scheme?.withLoweredLetters) else {
            return LoadFailure.error(
                .unsupportedURL, url: url, text: "WebSockets are opened by URLs with the scheme ws or wss.")
        }
        guard let url, HTTPTransport.ServerEndpoint(url) != nil else {
            return LoadFailure.error(.badURL, url: url, text: "The URL has no host, or a port that does not exist.")
        }
        guard request.httpMethod == "GET", TaskBody(request).isNone else {
            return LoadFailure.error(
                .unsupportedURL, url: url, text: "WebSockets are opened by GET, without a body.")
        }
        return nil
    }

    // MARK: The request

    /// Gives the request as it is now, dressed for its way, once its cookies are there.
    /// - Parameter answer: called once, on any thread.
    func next(_ answer: @escaping @Sendable (Judgement) -> Void) {
        self.task.mutate(\.currentRequest) { $0.currentRequest = self.request }
        guard self.core.asksForCookies(of: self.request) else { return answer(self.dressed(nil)) }
        self.core.askForCookies(of: self.task) { cookies in
            self.core.pool.execute { answer(self.dressed(cookies)) }
        }
    }

    private func dressed(_ cookies: [HTTPCookie]?) -> Judgement {
        if let flaw = Self.flaw(of: self.request) ?? self.core.refusal(of: self.request) { return .failed(flaw) }
        guard let url = self.request.url, let origin = HTTPTransport.ServerEndpoint(url) else { return .refused }
        let fields = self.fields(url, cookies)
        do throws(URLError) {
            let socket = self.core.configuration.unixSocketPath.map { ConnectTarget.address(.unix(path: $0)) }
            var target = OpeningTarget(socket ?? .host(origin.host, port: origin.port))
            if socket == nil { target.permits = self.core.permission(for: origin.host) }
            try self.prepare(&target, url)
            let opening = ClientOpening(
                target: target, handshake: try self.handshake(url, fields), deflate: self.policy)
            let head = RequestHead(target: url.requestTarget, fields: fields)
            return .open(opening, self.request.withSentFields(head), redirects: self.redirects)
        } catch {
            return .failed(error)
        }
    }

    private func fields(_ url: URL, _ cookies: [HTTPCookie]?) -> [HeaderField] {
        var dressing = RequestBuilder(self.core.configuration)
        dressing.isAtOriginalOrigin = self.core.isAtOriginalOrigin(self.request, of: self.task)
        dressing.cookies = cookies
        if self.request.value(forHTTPHeaderField: "Authorization") == nil || self.authorization != nil {
            dressing.authorization = self.authorizationField(url)
        }
        return dressing.fields(of: self.request).filter { !Self.isReserved($0.name) }
    }

    /// What the handshake says itself: a request of the program need not, and cannot, say it.
    private static func isReserved(_ name: String) -> Bool {
        let reserved = [
            "Upgrade", "Connection", "Content-Length", "Transfer-Encoding", "Sec-WebSocket-Key",
            "Sec-WebSocket-Version", "Sec-WebSocket-Accept", "Sec-WebSocket-Extensions",
        ]
        return reserved.contains { $0.isSameFieldName(as: name) }
    }

    private func handshake(_ url: URL, _ fields: [HeaderField]) throws(URLError) -> ClientHandshake {
        do throws(HandshakeUsageError) {
            return try ClientHandshake(
                host: url.serverName ?? "", port: url.port, isSecure: url.isSecureWebSocket, target: url.requestTarget,
                offers: self.policy?.offers ?? [],
                fields: fields.map { WebSocketProtocol.HTTPField($0.name, $0.value) })
        } catch {
            throw LoadFailure.error(
                .badURL, url: url, cause: error, text: "The request cannot be an opening handshake: \(error).")
        }
    }

    // MARK: The answer

    /// - Parameter answer: called once, on any thread.
    func judge(
        _ response: HTTPURLResponse, _ lines: [HeaderField], _ answer: @escaping @Sendable (Judgement) -> Void
    ) {
        guard let url = self.request.url else { return answer(.refused) }
        self.core.storeCookies(lines, from: url, request: self.request, of: self.task)
        if response.statusCode == 401, self.authenticate(response, lines, answer) { return }
        let fields = HTTPTypes.HTTPFields(lines)
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: answer(.refused)
        case .refuse(let code, let text): answer(.failed(LoadFailure.error(code, url: url, text: text)))
        case .follow(var next, _):
            next.url = next.url?.asWebSocket
            self.core.askRedirect(response, to: next, about: self.task, of: self.session) { chosen in
                self.core.pool.execute { self.follow(chosen, answer) }
            }
        }
    }

    private func follow(_ next: URLRequest?, _ answer: @escaping @Sendable (Judgement) -> Void) {
        guard var next else { return answer(.refused) }
        next.url = next.url?.asWebSocket
        self.redirects += 1
        self.request = next
        self.authorization = nil
        self.refusedCredentials = 0
        self.lastCredential = nil
        self.next(answer)
    }
}

extension URL {
    var isSecureWebSocket: Bool { self.scheme?.withLoweredLetters == "wss" }

    /// A handshake that is redirected stays one: servers name places by the schemes of HTTP.
    fileprivate var asWebSocket: URL {
        let scheme =
            switch self.scheme?.withLoweredLetters {
            case "http": "ws"
            case "https": "wss"
            default: self.scheme
            }
        var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        return parts?.url ?? self
    }
}

extension WebSocketOpening {
    /// The value of `Authorization` for the request that is about to be sent; `nil` for none.
    func authorizationField(_ url: URL) -> String? {
        guard let origin = HTTPSemantics.Origin(url) else { return nil }
        let path = url.path(percentEncoded: true)
        self.authorization = self.authorization ?? self.core.authorizations.value.find(origin, path: path)
        // Of no content.
        let hash = self.authorization?.contentHasher.map { $0.finalize() }
        return self.authorization?.fieldValue(method: "GET", target: url.requestTarget, contentHash: hash)
    }

    /// What an accepting server told for the next request.
    func accepted(_ lines: [HeaderField]) {
        self.authorization?.received(
            authenticationLines: lines.filter { $0.isNamed("authentication-info") }.map(\.value))
    }

    /// - Returns: whether the answer is taken care of.
    func authenticate(
        _ response: HTTPURLResponse, _ lines: [HeaderField], _ answer: @escaping @Sendable (Judgement) -> Void
    ) -> Bool {
        let wanted = lines.filter { $0.isNamed("www-authenticate") }.map(\.value)
        let challenges = Challenge.answerable(in: wanted)
        guard !challenges.isEmpty else { return false }
        if let authorization = self.authorization {
            if challenges.contains(where: authorization.canRetry) {
                self.next(answer)
                return true
            }
            self.core.authorizations.value.remove(authorization)
            self.lastCredential = authorization.credential
            self.refusedCredentials += 1
            self.authorization = nil
        }
        self.ask(challenges[...], response, answer)
        return true
    }

    private func ask(
        _ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse,
        _ answer: @escaping @Sendable (Judgement) -> Void
    ) {
        guard let challenge = challenges.first, let url = self.request.url else { return answer(.refused) }
        let space = URLProtectionSpace(challenge, at: url)
        let proposed = self.lastCredential ?? self.core.proposedCredential(for: space, at: url)
        let question = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: self.refusedCredentials,
            failureResponse: response, error: nil, sender: ChallengeSender())
        self.core.ask(question, about: self.task, of: self.session) { told in
            self.core.pool.execute {
                switch told.disposition {
                case .useCredential: self.use(told.credential, for: challenge, space, answer)
                case .performDefaultHandling:
                    self.use(self.refusedCredentials == 0 ? proposed : nil, for: challenge, space, answer)
                case .cancelAuthenticationChallenge: answer(.failed(LoadFailure.error(.cancelled, url: url)))
                case .rejectProtectionSpace: self.ask(challenges.dropFirst(), response, answer)
                }
            }
        }
    }

    private func use(
        _ credential: URLCredential?, for challenge: Challenge, _ space: URLProtectionSpace,
        _ answer: @escaping @Sendable (Judgement) -> Void
    ) {
        do throws(URLError) {
            guard let url = self.request.url,
                let authorization = try self.core.authorize(challenge, with: credential, in: space, at: url)
            else { return answer(.refused) }
            self.authorization = authorization
            self.next(answer)
        } catch {
            answer(.failed(error))
        }
    }
}

/// Measures one opening handshake after the other, by the steps that are told of it.
struct HandshakeTimings {
    /// Of the handshake under way.
    private(set) var metrics: ExchangeMetrics?

    init(_ place: ConnectTarget) {
        let now = ContinuousClock.now
        var metrics = ExchangeMetrics(fetchStart: now)
        if case .host(let name, let port) = place, SocketAddress(literal: name, port: port) == nil {
            metrics.timings.lookupStart = now
        } else {
            metrics.timings.connectStart = now
        }
        self.metrics = metrics
    }

    /// - Parameter age: of a moment on the loop's clock.
    mutating func note(_ step: OpeningStep, _ age: (MonotonicInstant) -> Duration) {
        let now = ContinuousClock.now
        switch step {
        case .connected(let resolvedAt, let local, let peer):
            if let resolvedAt {
                self.metrics?.timings.lookupEnd = now - age(resolvedAt)
                self.metrics?.timings.connectStart = now - age(resolvedAt)
            }
            self.metrics?.timings.connectEnd = now
            var facts = ConnectionMetadata()
            facts.localAddress = local
            facts.peerAddress = peer
            self.metrics?.connection = facts
        case .securing:
            self.metrics?.timings.connectEnd = nil
            self.metrics?.timings.secureStart = now
        case .secured(let facts):
            self.metrics?.timings.secureEnd = now
            self.metrics?.timings.connectEnd = now
            self.metrics?.connection?.tls = facts
        case .requested(let bytes):
            self.metrics?.requestStart = now
            self.metrics?.requestEnd = now
            self.metrics?.requestHeadBytes = Int64(bytes)
        case .answered(let bytes):
            self.metrics?.responseStart = now
            self.metrics?.responseEnd = now
            self.metrics?.responseHeadBytes = Int64(bytes)
        case .failed: break
        }
        if let timings = self.metrics?.timings { self.metrics?.connection?.timings = timings }
    }

    /// What was measured, once.
    mutating func take() -> ExchangeMetrics? {
        defer { self.metrics = nil }
        return self.metrics
    }
}
