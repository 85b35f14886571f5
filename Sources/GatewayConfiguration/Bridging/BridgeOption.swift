/// Options of `sluice bridge` that set values of its configuration. Syntax, range, default and help come from the keys.
package enum BridgeOption: String, Sendable, CaseIterable {
    case subprotocol, framing
    case halfClose = "half-close"
    case header, origin, certificate, key
    case clientCA = "client-ca"
    case clientCRL = "client-crl"
    case ca, crl
    case clientCertificate = "client-certificate"
    case clientKey = "client-key"
    case serverName = "server-name"
    case insecure, compress
    case pingInterval = "ping-interval"
    case pongTimeout = "pong-timeout"
    case maxMessageSize = "max-message-size"
    case allowClients = "allow-clients"
    case denyClients = "deny-clients"
    case maxConnections = "max-connections"
    case idleTimeout = "idle-timeout"
    case handshakeTimeout = "handshake-timeout"
    case connectTimeout = "connect-timeout"
    case drainTimeout = "drain-timeout"
    case proxyProtocol = "proxy-protocol"
    case targets, web
    case logFormat = "log-format"
    case logLevel = "log-level"
    case quiet

    /// The mappings of a bridge's configuration.
    enum Section {
        case gateway, listener, listenerTLS, route, upstream, upstreamTLS
        /// A second route, for files.
        case web
    }

    /// The keys that the option sets. Empty for options with words of their own.
    var keys: [(section: Section, name: String)] {
        switch self {
        case .drainTimeout, .logFormat, .logLevel: [(.gateway, self.rawValue)]
        case .allowClients, .denyClients, .handshakeTimeout: [(.listener, self.rawValue)]
        case .maxConnections:
            [
                (.listener, "max-connections"), (.listener, "max-connections-per-client"),
                (.gateway, "max-connections"),
            ]
        case .certificate, .key, .clientCA, .clientCRL: [(.listenerTLS, self.rawValue)]
        case .framing, .halfClose, .compress, .pingInterval, .pongTimeout, .maxMessageSize, .idleTimeout:
            [(.route, self.rawValue)]
        case .header: [(.route, "headers")]
        case .targets: [(.route, "targets")]
        case .origin: [(.route, "origins")]
        case .subprotocol: [(.route, "subprotocols"), (.upstream, "subprotocols")]
        case .connectTimeout: [(.upstream, self.rawValue)]
        case .ca, .crl, .serverName, .insecure: [(.upstreamTLS, self.rawValue)]
        case .clientCertificate: [(.upstreamTLS, "certificate")]
        case .clientKey: [(.upstreamTLS, "key")]
        case .web: [(.web, "files")]
        case .proxyProtocol, .quiet: []
        }
    }

    /// What an option requires of LISTEN or TARGET.
    enum Requirement {
        case nothing
        case secureListener, secureTarget
        case webSocketListener, webSocketTarget
        /// Either LISTEN or TARGET is a WebSocket.
        case anyWebSocket
        /// As `anyWebSocket`, or TARGET is the chat.
        case messages
        /// One of LISTEN and TARGET is a WebSocket, the other a stream.
        case webSocketAndStream
        /// As `webSocketAndStream`, or a stream with the chat.
        case messagesAndStream
        /// A client sends something before it is connected to TARGET.
        case handshake
        /// TARGET is not built in.
        case address
    }

    var requirement: Requirement {
        switch (self, self.keys.first?.section) {
        case (.origin, _), (.targets, _), (_, .web): .webSocketListener
        case (.header, _): .webSocketTarget
        case (.subprotocol, _), (.compress, _), (.pingInterval, _), (.pongTimeout, _): .anyWebSocket
        case (.maxMessageSize, _): .messages
        case (.framing, _): .messagesAndStream
        case (.halfClose, _): .webSocketAndStream
        case (.handshakeTimeout, _): .handshake
        case (.connectTimeout, _): .address
        case (_, .listenerTLS): .secureListener
        case (_, .upstreamTLS): .secureTarget
        case (_, .gateway), (_, .listener), (_, .route), (_, .upstream), (_, nil): .nothing
        }
    }

    var argument: String { "--\(self.rawValue)" }
}

// MARK: Help

extension BridgeOption {
    /// The first key that the option sets.
    private var key: ConfigurationSchema.Key? {
        self.keys.first.flatMap { $0.section.keys?.key($0.name) }
    }

    /// The format of the option's value; `nil` for flags and for options with words of their own.
    package var format: ValueFormat? { self.key?.form.value }

    /// Whether the option may be repeated, each time with one element of a list.
    var isList: Bool { self.key?.form.isList == true }

    /// What the option sets, with syntax, range and default.
    package var help: String {
        guard let key = self.key else { return "" }
        let place =
            switch self.requirement {
            case .secureListener: "For clients: "
            case .secureTarget: "For TARGET: "
            case .nothing, .webSocketListener, .webSocketTarget, .anyWebSocket, .messages, .webSocketAndStream,
                .messagesAndStream, .handshake, .address:
                ""
            }
        let text = key.text.replacing("`", with: "")
        let end = text.firstRange(of: ". ")?.lowerBound ?? text.endIndex
        var help = place + text[..<end] + (end == text.endIndex ? "" : ".")
        guard let format = self.format, format != .boolean else { return help }
        if !format.isPath {
            let words = format.words.replacing("`", with: "")
            // Words of the configuration are not capitalized.
            help +=
                format.words.hasPrefix("`")
                ? " Value: \(words)." : " \(words.prefix(1).uppercased())\(words.dropFirst())."
        }
        if self.isList { help += " Repeatable." }
        let initial = key.defaultText.map { " (default: \($0.replacing("`", with: "")))" }
        return help + (initial ?? "")
    }
}

extension BridgeOption.Section {
    fileprivate var keys: ConfigurationSchema.Section? {
        switch self {
        case .gateway: ConfigurationSchema.whole
        case .listener: ConfigurationSchema.entry(of: .listeners).section
        case .listenerTLS: Self.listener.keys?["tls"]?.section
        case .route, .web: ConfigurationSchema.entry(of: .routes).section
        case .upstream: ConfigurationSchema.entry(of: .upstreams).section
        case .upstreamTLS: Self.upstream.keys?["tls"]?.section
        }
    }
}

extension ConfigurationSchema.Form {
    fileprivate var section: ConfigurationSchema.Section? {
        if case .section(let section) = self { section } else { nil }
    }

    /// Whether a list is one of the forms.
    fileprivate var isList: Bool {
        switch self {
        case .list: true
        case .either(let forms): forms.contains(where: \.isList)
        case .value, .map, .section: false
        }
    }

    /// The format of a single value or of a list's elements.
    fileprivate var value: ValueFormat? {
        switch self {
        case .value(let format): format
        case .list(let element): element.value
        case .either(let forms): forms.lazy.compactMap(\.value).first
        case .map, .section: nil
        }
    }
}
