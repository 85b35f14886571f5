import GatewayConfiguration
import SessionTasks
import TLSEngine
import WebSocketProtocol
import WireText

/// Makes proxies ready to connect through.
package enum ProxyMaterial {
    /// Reads the password, and the system's roots for a proxy with TLS.
    package static func server(_ proxy: UpstreamProxy) throws(GatewayPlanError) -> ProxyServer {
        let password = try proxy.password.map { (password) throws(GatewayPlanError) in
            try TLSMaterial.text(of: password)
        }
        var server = ProxyServer(proxy.url.location.connectTarget, Self.method(proxy, password: password ?? ""))
        server.resolvesNames = proxy.url.scheme != .socks4 && proxy.url.scheme != .socks5
        if proxy.url.scheme == .https {
            do throws(TLSFailure) {
                server.secure = SecureSettings(
                    context: try TLSContext(.client()), serverName: proxy.url.location.hostName)
            } catch {
                throw GatewayPlanError(.tls(error))
            }
        }
        guard server.method == .connect, let user = proxy.user else { return server }
        // Sent at once: the configuration names the proxy that is to get it.
        let credential = Base64.encoded(Array("\(user):\(password ?? "")".utf8))
        let field = FieldLine("Proxy-Authorization", "Basic \(credential)")
        server.authorize = { challenge, completion in completion(challenge == nil ? [field] : nil) }
        return server
    }

    private static func method(_ proxy: UpstreamProxy, password: String) -> ProxyServer.Method {
        switch proxy.url.scheme {
        case .http, .https: .connect
        case .socks4, .socks4a: .socks4(user: proxy.user ?? "")
        case .socks5, .socks5h: .socks5(proxy.user.map { ProxyCredential(user: $0, password: password) })
        }
    }
}
