import ControlAPI
import Foundation
import URLLoading

/// Talks to one control plane. Requests may go out at the same time.
package final class ControlSession: Sendable {
    /// Longest answer that is taken, in bytes; a page of connections has some megabytes at most.
    package static let answerLimit = 256 << 20
    /// Longest text of a failed request that is read to find out why.
    private static let problemLimit = 1 << 20

    package let address: ControlAddress
    package let access: ControlAccess
    /// Value of `User-Agent`.
    private let agent: String
    let session: URLSession

    package init(_ address: ControlAddress, _ access: ControlAccess, agent: String) {
        self.address = address
        self.access = access
        self.agent = agent
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.connectionProxyDictionary = [:]
        configuration.unixSocketPath = address.socketPath
        configuration.certificateAuthorities = access.authorities.map { Data($0) }
        self.session = URLSession(
            configuration: configuration, delegate: AccessDelegate(access), delegateQueue: nil)
    }

    deinit {
        self.session.finishTasksAndInvalidate()
    }

    // MARK: Asking

    /// - Throws: `ControlFailure` for an answer above 299 too.
    package func send(_ request: ControlRequest) async throws(ControlFailure) -> ControlResponse {
        let (bytes, response) = try await self.begin(request, accept: "application/json, application/problem+json")
        let body = try await self.collect(bytes, limit: Self.answerLimit)
        let headers = ControlHeaders(response)
        guard response.statusCode == 204 || body.isEmpty || headers.isJSON else {
            throw ControlFailure(foreign: response.statusCode, at: self.address)
        }
        return ControlResponse(status: response.statusCode, headers: headers, body: body)
    }

    /// - Throws: `ControlFailure`.
    package func send<Model: Decodable>(
        _ request: ControlRequest, for type: Model.Type
    ) async throws(ControlFailure) -> Model {
        try await self.send(request).decoded(type)
    }

    /// Content that comes in pieces, of any type.
    package func open(
        _ request: ControlRequest, accept: String
    ) async throws(ControlFailure) -> (ControlHeaders, ControlBody) {
        let (bytes, response) = try await self.begin(request, accept: accept)
        return (ControlHeaders(response), ControlBody(bytes, at: self.address))
    }

    private func begin(
        _ request: ControlRequest, accept: String
    ) async throws(ControlFailure) -> (URLSession.AsyncBytes, HTTPURLResponse) {
        let (bytes, response) = try await self.load(try self.urlRequest(request, accept: accept))
        guard let response = response as? HTTPURLResponse else {
            throw ControlFailure(foreign: 0, at: self.address)
        }
        guard (200...299).contains(response.statusCode) else {
            let body = try await self.collect(bytes, limit: Self.problemLimit)
            throw ControlFailure(refused: response.statusCode, ControlHeaders(response), body, at: self.address)
        }
        return (bytes, response)
    }

    private func load(_ request: URLRequest) async throws(ControlFailure) -> (URLSession.AsyncBytes, URLResponse) {
        do {
            return try await self.session.bytes(for: request)
        } catch {
            throw ControlFailure(error, at: self.address)
        }
    }

    private func collect(_ bytes: URLSession.AsyncBytes, limit: Int) async throws(ControlFailure) -> Data {
        let body = ControlBody(bytes, at: self.address)
        var data = Data()
        while let run = try await body.next() {
            data.append(contentsOf: run)
            guard data.count <= limit else {
                throw ControlFailure(.nonsense, "the answer is longer than \(limit) bytes", remedy: "ask for less")
            }
        }
        return data
    }

    // MARK: Requests

    /// - Parameter scheme: another than that of the address: `ws`.
    func url(_ target: String, scheme: String? = nil) throws(ControlFailure) -> URL {
        var parts = URLComponents(url: self.address.root, resolvingAgainstBaseURL: false)
        if let scheme { parts?.scheme = scheme }
        guard target.hasPrefix("/"), let root = parts?.string, let url = URL(string: root + target) else {
            throw ControlFailure(.fault, "this makes no URL: \(target)")
        }
        return url
    }

    private func urlRequest(_ request: ControlRequest, accept: String) throws(ControlFailure) -> URLRequest {
        var made = URLRequest(url: try self.url(request.target))
        made.httpMethod = request.method.rawValue
        made.httpBody = request.body
        made.timeoutInterval = request.patience / .seconds(1)
        for (name, value) in request.headers { made.setValue(value, forHTTPHeaderField: name) }
        made.setValue(accept, forHTTPHeaderField: "Accept")
        self.dress(&made)
        return made
    }

    private func dress(_ request: inout URLRequest) {
        request.setValue(self.agent, forHTTPHeaderField: "User-Agent")
        if let token = self.access.token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    }
}

extension ControlSession {
    /// A WebSocket to a path of the control plane; to be resumed.
    package func webSocketTask(_ target: String) throws(ControlFailure) -> URLSessionWebSocketTask {
        var request = URLRequest(url: try self.url(target, scheme: self.address.isSecure ? "wss" : "ws"))
        self.dress(&request)
        return self.session.webSocketTask(with: request)
    }

    /// Sends a file as a body, without holding it in memory.
    package func upload(_ request: ControlRequest, file: URL) async throws(ControlFailure) -> ControlResponse {
        let made = try self.urlRequest(request, accept: "application/json, application/problem+json")
        let (body, response): (Data, URLResponse)
        do {
            (body, response) = try await self.session.upload(for: made, fromFile: file)
        } catch {
            throw ControlFailure(error, at: self.address)
        }
        guard let response = response as? HTTPURLResponse else { throw ControlFailure(foreign: 0, at: self.address) }
        let headers = ControlHeaders(response)
        guard (200...299).contains(response.statusCode) else {
            throw ControlFailure(refused: response.statusCode, headers, body, at: self.address)
        }
        return ControlResponse(status: response.statusCode, headers: headers, body: body)
    }
}

/// Answers TLS challenges, and follows no redirect: a token must not reach other servers.
private final class AccessDelegate: NSObject, URLSessionTaskDelegate {
    private let access: ControlAccess

    init(_ access: ControlAccess) {
        self.access = access
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust:
            guard self.access.isInsecure, let trust = space.serverTrust else { break }
            return completionHandler(.useCredential, URLCredential(trust: trust))
        case NSURLAuthenticationMethodClientCertificate:
            guard let identity = self.access.identity else { break }
            return completionHandler(
                .useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        default: break
        }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
