import Foundation
import GatewayConfiguration
import URLLoading

/// The proxy of a client command: that of `--proxy` or, without the option, of the environment.
struct ProxyOption {
    static let help = """
        Proxy to connect through, like http://proxy.example:3128 or socks5h://user:password@proxy.example; http, https, socks4, \
        socks4a, socks5 or socks5h, or none. (default: http_proxy for ws, https_proxy for wss, or all_proxy, unless no_proxy \
        names the host)
        """

    let proxy: UpstreamProxy
    /// The option, or the variable of the environment.
    let source: String

    /// - Returns: `nil` for a direct connection, and if there is a problem, which `reader` gets.
    init?(
        _ option: String?, to url: EndpointURL, reading reader: inout OptionReader
    ) {
        if let option {
            guard option != "none" else { return nil }
            guard let address = ProxyAddress(option) else {
                reader.reject(
                    "--proxy", "expected a proxy's URL or none, found \(QuotedText.quoted(option))",
                    remedy: "write it like http://proxy.example:3128")
                return nil
            }
            self.init(address, "--proxy", &reader)
        } else {
            guard let host = url.hostName else { return nil }
            let variables = ProxyEnvironment { HostProcess.variable($0) }
            let scheme = url.scheme.speaksWebSocket ? url.scheme.rawValue : "stream"
            guard let name = variables.variable(scheme: scheme, host: host, port: url.port) else { return nil }
            guard let address = try? variables.proxy(scheme: scheme, host: host, port: url.port) else {
                reader.reject(
                    name, "expected a proxy's URL in this variable of the environment",
                    remedy: "correct or unset it, or connect directly with --proxy none")
                return nil
            }
            self.init(address, name, &reader)
        }
    }

    private init?(_ address: ProxyAddress, _ source: String, _ reader: inout OptionReader) {
        let host = address.host.contains(":") ? "[\(address.host)]" : address.host
        do throws(ValueSyntaxError) {
            let url = try ProxyURL("\(address.kind.rawValue)://\(host):\(address.port)")
            self.proxy = UpstreamProxy(url, user: address.user, password: address.password.map { .text($0) })
            self.source = source
        } catch {
            reader.reject(source, "expected \(error.expected)", remedy: error.remedy)
            return nil
        }
    }
}

extension EndpointURL {
    /// Stands for an address that is not known.
    static let anywhere = EndpointURL(scheme: .tcp, location: .address(.loopback, port: 1))

    /// `nil` for a Unix socket.
    fileprivate var port: Int? {
        switch self.location {
        case .name(_, let port), .address(_, let port): Int(port)
        case .unix: nil
        }
    }
}
