/// A proxy through which the endpoints of an upstream are reached.
package struct UpstreamProxy: Sendable, Equatable {
    package var url: ProxyURL
    /// `nil` for none.
    package var user: String?
    package var password: KeyPassword?

    package init(_ url: ProxyURL, user: String? = nil, password: KeyPassword? = nil) {
        self.url = url
        self.user = user
        self.password = password
    }
}

/// Address and protocol of a proxy.
package struct ProxyURL: Sendable, Hashable, CustomStringConvertible {
    package enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// `CONNECT` (RFC 9110 §9.3.6), `https` over TLS with the proxy.
        case http, https
        /// Names are resolved by the gateway.
        case socks4, socks5
        /// Names are resolved by the proxy.
        case socks4a, socks5h

        fileprivate var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            case .socks4, .socks4a, .socks5, .socks5h: 1080
            }
        }
    }

    package let scheme: Scheme
    /// A name or an address.
    package let location: EndpointURL.Location

    package init(_ text: some StringProtocol) throws(ValueSyntaxError) {
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw ValueSyntaxError(
                expected: "a proxy's URL without a user name and password",
                remedy: "write them as {url: …, user: …, password-file: …}")
        }
        let url = try URLText(String(text), like: "http://proxy.example:3128")
        guard let scheme = Scheme(rawValue: url.scheme), url.transport.isEmpty else {
            throw ValueSyntaxError(
                expected: "a URL that begins with http, https, socks4, socks4a, socks5 or socks5h",
                remedy: "write it like http://proxy.example:3128")
        }
        guard url.resource.isEmpty || url.resource == "/" else {
            throw ValueSyntaxError(
                expected: "nothing after the address of the proxy", remedy: "write it like http://proxy.example:3128")
        }
        self.scheme = scheme
        self.location = try EndpointURL.location(url, default: scheme.defaultPort)
    }

    /// The URL in its normal form.
    package var description: String {
        switch self.location {
        case .unix(let path): "\(self.scheme)+unix://\(path)"
        case .name(let name, let port): "\(self.scheme)://\(name):\(port)"
        case .address(.v6(let high, let low), let port):
            "\(self.scheme)://[\(IPAddress.v6(high: high, low: low))]:\(port)"
        case .address(let address, let port): "\(self.scheme)://\(address):\(port)"
        }
    }

    /// Used for a URL that could not be parsed; the configuration is rejected anyway.
    fileprivate static let placeholder = ProxyURL(.http, .address(.loopback, port: 1))

    private init(_ scheme: Scheme, _ location: EndpointURL.Location) {
        self.scheme = scheme
        self.location = location
    }
}

/// Keys of `proxy`.
package typealias ProxyKey = SettingsKeyName<UpstreamProxy>

extension ProxyKey {
    package static var passwordFile: Self { "password-file" }
    fileprivate static var url: Self { "url" }
    fileprivate static var user: Self { "user" }
}

extension UpstreamProxy: SettingsSection {
    static let sectionName = "Proxy"
    static let initial = UpstreamProxy(.placeholder)
    static let keys: [SettingsKey<UpstreamProxy>] =
        [
            .required(
                .url, \.url, .proxyURL,
                """
                Protocol and address of the proxy: `http` and `https` (a tunnel by `CONNECT`; `https` speaks TLS with the \
                proxy, whose certificate the system's roots must verify), `socks4` and `socks5` (the gateway resolves \
                names), `socks4a` and `socks5h` (the proxy resolves them). The default port is 80, 443 or, for SOCKS, \
                1080.
                """),
            .optional(
                .user, \.user, ValueSyntax<String>.text, example: "gateway",
                "User name for the proxy: sent by Basic authentication, or as SOCKS defines it."),
        ]
        + KeyPassword.keys(
            "password", file: .passwordFile, \.password, "Password for the proxy; requires `user`. SOCKS 4 has none")

    mutating func check(_ section: SectionReader<UpstreamProxy>) {
        if self.password != nil, self.user == nil {
            section.add(.user, expected: "a user beside the password", remedy: "add user: NAME")
        }
    }
}

extension ValueSyntax<ProxyURL> {
    package static var proxyURL: ValueSyntax {
        ValueSyntax(.text("http://proxy.example:3128", "a proxy's URL")) { text throws(ValueSyntaxError) in
            try ProxyURL(text)
        }
    }
}
