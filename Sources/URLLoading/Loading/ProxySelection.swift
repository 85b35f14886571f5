import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// The proxies of a session's tasks.
extension SessionCore {
    var usesProxies: Bool {
        if case .none = self.proxies { false } else { true }
    }

    /// Decides on the ways to a server.
    /// - Parameters:
    ///   - scheme: of the URL, or `stream` for a stream task.
    ///   - completion: called once, on any thread, possibly at once; with the proxies to try in their order, `nil` among
    ///     them for a direct connection.
    func routes(
        to url: URL, scheme: String, _ completion: @escaping @Sendable (Result<[ProxyAddress?], URLError>) -> Void
    ) {
        self.proxies.routes(to: url, scheme: scheme) { result in
            switch result {
            case .success(let routes) where routes.count > 1:
                completion(.success(self.state.withLock { $0.failedProxies.last(in: routes) }))
            case .success(let routes): completion(.success(routes))
            case .failure(let error):
                let code: URLError.Code = error.isOffline ? .notConnectedToInternet : .unsupportedURL
                completion(.failure(LoadFailure.error(code, url: url, text: error.text)))
            }
        }
    }

    /// Decides on the ways of a connection of a task.
    /// - Parameters:
    ///   - scheme: of the URL, or `stream` for a stream task.
    ///   - fail: called where the task is to end with another error than the proxy's refusal of a tunnel. Not called where
    ///     this machine has no way to the server of the proxy script, and the session waits for one.
    /// - Returns: `nil` for a direct connection.
    func proxySelection(
        for url: URL, scheme: String, task: URLSessionTask, session: URLSession,
        fail: @escaping @Sendable (URLError) -> Void
    ) -> OpeningTarget.SelectProxies? {
        guard self.usesProxies else { return nil }
        return { [weak task, weak session] completion in
            self.routes(to: url, scheme: scheme) { [task, session] routes in
                guard let task, let session else { return completion(.success([])) }
                if case .failure(let error) = routes, error.code == .notConnectedToInternet, self.networkSettings.waits
                {
                    return completion(.failure(.offline(.noRoute(.networkUnreachable))))
                }
                do throws(URLError) {
                    var servers: [ProxyServer?] = []
                    for proxy in try routes.get() {
                        guard let proxy else {
                            servers.append(nil)
                            continue
                        }
                        servers.append(
                            try self.server(proxy, for: url, scheme: scheme, task: task, session: session, fail: fail).0
                        )
                    }
                    completion(.success(servers))
                } catch {
                    fail(error)
                    completion(.success([]))
                }
            }
        }
    }

    /// How a proxy is used for a connection of a task.
    /// - Parameters:
    ///   - scheme: of the URL, `ws` for `http` in a tunnel, or `stream` for a stream task.
    ///   - fail: as for `proxySelection`.
    /// - Returns: `authenticator` is `nil` for SOCKS.
    func server(
        _ proxy: ProxyAddress, for url: URL, scheme: String, task: URLSessionTask, session: URLSession,
        fail: @escaping @Sendable (URLError) -> Void
    ) throws(URLError) -> (server: ProxyServer, authenticator: ProxyAuthenticator?) {
        var server = ProxyServer(proxy, scheme: scheme)
        server.permits = self.permission(for: proxy.host)
        server.didFail = { [weak self] in self?.proxyFailed(proxy) }
        guard proxy.kind == .http || proxy.kind == .https else { return (server, nil) }
        if proxy.kind == .https {
            switch self.proxyTLSContext() {
            case .success(let context):
                self.secure(&server, context, proxy, for: url, of: task, session, fail: fail)
            case .failure(let failure): throw LoadFailure.error(ofContext: failure, url: url)
            }
        }
        let authenticator = ProxyAuthenticator(proxy, for: task, of: session, at: url)
        if server.method == .connect, let host = url.serverName {
            let port = url.port ?? (scheme == "ws" || scheme == "http" ? 80 : 443)
            let target = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
            server.authorize = authenticator.authorizeTunnel(to: target, fail: fail)
            server.didTunnel = { [executor = self.executor] in
                executor.execute { authenticator.credentialAccepted() }
            }
        }
        return (server, authenticator)
    }

    /// Sets TLS settings that ask the delegate about the proxy and for a client certificate.
    private func secure(
        _ server: inout ProxyServer, _ context: TLSContext, _ proxy: ProxyAddress, for url: URL,
        of task: URLSessionTask, _ session: URLSession, fail: @escaping @Sendable (URLError) -> Void
    ) {
        var settings = SecureSettings(context: context, serverName: proxy.host)
        let reason = Mutex<TLSFailure?>(nil)
        settings.decide = { [weak self, weak task, weak session] request, answer in
            guard let self, let task, let session else { return answer(.reject) }
            self.askTrust(request, at: url, proxy: proxy, for: task, of: session) { decision, refusal in
                // An untrusted proxy may be followed by another one, but not what the delegate cancels.
                if let refusal, refusal.code == .cancelled { fail(refusal) }
                if decision == .reject, !request.result.isValid {
                    let failure = TLSFailure(.verification(request.result), reasons: [request.result.description])
                    reason.withLock { $0 = failure }
                }
                answer(decision)
            }
        }
        settings.chooseIdentity = { [weak self, weak task, weak session] issuers, answer in
            guard let self, let task, let session else { return answer(nil) }
            self.askIdentity(issuers, at: url, proxy: proxy, for: task, of: session) { identity, refusal in
                if let refusal { fail(refusal) } else { answer(identity) }
            }
        }
        server.secure = settings
        server.explain = { failure in reason.withLock { $0 } ?? failure }
    }

    func proxyFailed(_ proxy: ProxyAddress) {
        self.state.withLock { $0.failedProxies.add(proxy) }
    }
}

/// Proxies that could not be reached: they are tried after all others for a while.
struct FailedProxies {
    private static let lifetime = Duration.seconds(300)
    private static let limit = 64

    private var instants: [ProxyAddress: ContinuousInstant] = [:]

    mutating func add(_ proxy: ProxyAddress) {
        if self.instants.count >= Self.limit { self.instants = [:] }
        self.instants[proxy] = .now
    }

    /// Moves them behind the proxies and the direct way that may work.
    mutating func last(in routes: [ProxyAddress?]) -> [ProxyAddress?] {
        guard !self.instants.isEmpty else { return routes }
        self.instants = self.instants.filter { $0.value.duration(to: .now) < Self.lifetime }
        let instants = self.instants
        let hasFailed = { (proxy: ProxyAddress?) in proxy.map { instants[$0] != nil } ?? false }
        return routes.filter { !hasFailed($0) } + routes.filter(hasFailed)
    }
}

extension ProxyServer {
    /// - Parameter scheme: of the URL, or `stream`.
    fileprivate init(_ proxy: ProxyAddress, scheme: String) {
        let credential = proxy.user.map { ProxyCredential(user: $0, password: proxy.password ?? "") }
        let method: Method =
            switch proxy.kind {
            case .http, .https: scheme == "http" && !proxy.alwaysTunnels ? .forwarding : .connect
            case .socks4, .socks4a: .socks4(user: proxy.user ?? "")
            case .socks5, .socks5h: .socks5(credential)
            }
        self.init(.host(proxy.host, port: proxy.port), method)
        self.resolvesNames = proxy.kind != .socks4 && proxy.kind != .socks5
    }
}
