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
        guard let url, HTTPTransport.Origin(url) != nil else {
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
        self.task.change(\.currentRequest) { $0.currentRequest = self.request }
        guard self.core.asksForCookies(of: self.request) else { return answer(self.dressed(nil)) }
        self.core.askForCookies(of: self.task) { cookies in
            self.core.pool.execute { answer(self.dressed(cookies)) }
        }
    }

    private func dressed(_ cookies: [HTTPCookie]?) -> Judgement {
        if let flaw = Self.flaw(of: self.request) ?? self.core.refusal(of: self.request) { return .failed(flaw) }
        guard let url = self.request.url, let origin = HTTPTransport.Origin(url) else { return .refused }
        let fields = self.fields(url, cookies)
        do throws(URLError) {
            let socket = self.core.configuration.unixSocketPath.map { ConnectTarget.address(.unix(path: $0)) }
            var target = OpeningTarget(socket ?? .host(origin.host, port: origin.port))
            if socket == nil { target.permits = self.core.permission(for: origin.host) }
            try self.prepare(&target, url)
            let opening = ClientOpening(
                target: target, handshake: try self.handshake(url, fields), deflate: self.policy)
            let head = RequestHead(target: url.requestTarget, fields: fields)
            return .open(opening, self.request.wearing(head), redirects: self.redirects)
        } catch {
            return .failed(error)
        }
    }

    private func fields(_ url: URL, _ cookies: [HTTPCookie]?) -> [HeaderField] {
        var dressing = RequestDressing(self.core.configuration)
        dressing.isAtFirstOrigin = self.core.isAtFirstOrigin(self.request, of: self.task)
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
        self.core.keepCookies(lines, from: url, request: self.request, of: self.task)
        if response.statusCode == 401, self.authenticate(response, lines, answer) { return }
        let fields = HTTPTypes.HTTPFields(lines: lines.map { (name: $0.name, value: $0.value) })
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
