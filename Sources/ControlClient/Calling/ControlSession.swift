import ControlAPI
import Foundation
import URLLoading

/// Sends requests to one control plane. Requests may run concurrently.
package final class ControlSession: Sendable {
    /// Maximum size of a response in bytes. A page of connections has a few megabytes at most.
    package static let answerLimit = 256 << 20
    /// Maximum size of a problem document in bytes.
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

    // MARK: Sending

    /// - Throws: `ControlFailure`, also for a status outside 200 to 299.
    package func send(_ request: ControlRequest) async throws(ControlFailure) -> ControlResponse {
        let (bytes, response) = try await self.begin(request, accept: "application/json, application/problem+json")
        let body = try await self.collect(bytes, limit: Self.answerLimit)
        let headers = ControlHeaders(response)
        guard response.statusCode == 204 || body.isEmpty || headers.isJSON else {
            throw ControlFailure(foreign: response.statusCode, at: self.address)
        }
        return ControlResponse(status: response.statusCode, headers: headers, body: body)
    }

    package func send<Model: Decodable>(
        _ request: ControlRequest, for type: Model.Type
    ) async throws(ControlFailure) -> Model {
        try await self.send(request).decoded(type)
    }

    /// Sends a request and returns its content as a stream, of any media type.
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
                throw ControlFailure(
                    .invalidResponse, "the response is longer than \(limit) bytes", remedy: "request less data")
            }
        }
        return data
    }

    // MARK: Requests

    /// - Parameter scheme: replaces the scheme of the address, for `ws` and `wss`.
    func url(_ target: String, scheme: String? = nil) throws(ControlFailure) -> URL {
        var parts = URLComponents(url: self.address.root, resolvingAgainstBaseURL: false)
        if let scheme { parts?.scheme = scheme }
        guard target.hasPrefix("/"), let root = parts?.string, let url = URL(string: root + target) else {
            throw ControlFailure(.internalError, "invalid URL: \(target)")
        }
        return url
    }

    private func urlRequest(_ request: ControlRequest, accept: String) throws(ControlFailure) -> URLRequest {
        var urlRequest = URLRequest(url: try self.url(request.target))
        urlRequest.httpMethod = request.method.rawValue
        urlRequest.httpBody = request.body
        urlRequest.timeoutInterval = request.idleTimeout / .seconds(1)
        for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
        urlRequest.setValue(accept, forHTTPHeaderField: "Accept")
        self.addHeaders(to: &urlRequest)
        return urlRequest
    }

    private func addHeaders(to request: inout URLRequest) {
        request.setValue(self.agent, forHTTPHeaderField: "User-Agent")
        if let token = self.access.token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    }
}

extension ControlSession {
    /// - Returns: a WebSocket task to a path of the control plane, not yet resumed.
    package func webSocketTask(_ target: String) throws(ControlFailure) -> URLSessionWebSocketTask {
        var request = URLRequest(url: try self.url(target, scheme: self.address.isSecure ? "wss" : "ws"))
        self.addHeaders(to: &request)
        return self.session.webSocketTask(with: request)
    }

    /// Sends a file as the body, without loading it into memory.
    package func upload(_ request: ControlRequest, file: URL) async throws(ControlFailure) -> ControlResponse {
        let urlRequest = try self.urlRequest(request, accept: "application/json, application/problem+json")
        let (body, response): (Data, URLResponse)
        do {
            (body, response) = try await self.session.upload(for: urlRequest, fromFile: file)
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

/// Handles TLS challenges, and refuses redirects: a token must not be sent to other servers.
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
