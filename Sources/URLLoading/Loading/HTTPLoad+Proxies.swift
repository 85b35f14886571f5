import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import WireText

/// The ways to the server, through proxies or directly.
extension HTTPLoad {
    func chooseRoutes() {
        guard let url = self.request.url, let origin = self.origin else { return }
        self.core.routes(
            to: url, scheme: origin.scheme.rawValue,
            self.awaiting { (load, routes: Result<[ProxyAddress?], URLError>) in
                do throws(URLError) {
                    load.routes = try routes.get()[...]
                    load.send()
                } catch {
                    if error.code != .notConnectedToInternet || !load.waitsForProxyScript() { load.fail(error) }
                }
            })
    }

    func proxy(
        for url: URL, _ origin: HTTPTransport.ServerEndpoint, _ head: RequestHead
    ) throws(URLError) -> ProxyServer? {
        guard let address = self.routes.first ?? nil else { return nil }
        let generation = self.generation
        // A proxy that forwards the request could drop its upgrade, or speak HTTP/1.1: it is asked for a tunnel instead.
        let needsTunnel = head.fields["Upgrade"] != nil || self.assumesHTTP2(head)
        let scheme = origin.scheme == .http && needsTunnel ? "ws" : origin.scheme.rawValue
        let proxy = try self.core.server(
            address, for: url, scheme: scheme, task: self.loader.task, session: self.loader.session
        ) { error in
            self.core.executor.execute { if self.generation == generation { self.fail(error) } }
        }
        var server = proxy.server
        guard server.method == .forwarding else { return server }
        if self.proxyAuthenticator?.proxy != proxy.authenticator?.proxy {
            self.proxyAuthenticator = proxy.authenticator
        }
        self.proxyAuthenticator?.url = url
        server.authorization = self.proxyAuthenticator?.fieldValue(
            method: head.method, target: "http://\(origin.authority)\(head.target)")
        return server
    }

    /// - Returns: whether the request is sent on the next way to the server, because a proxy cannot be reached.
    func takeNextRoute(after failure: ExchangeFailure) -> Bool {
        guard case .connecting(let failure) = failure, failure.proxyFailure?.isUnreachable == true,
            self.routes.count > 1
        else { return false }
        self.routes = self.routes.dropFirst()
        self.attemptEnded()
        self.sendBody()
        return true
    }
}
