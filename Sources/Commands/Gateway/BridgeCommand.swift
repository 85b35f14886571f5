import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// `sluice bridge`: runs a gateway with one listener and one target, without a configuration file.
struct BridgeCommand: GatewayCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "drained after a signal",
        .usage: nil,
        .unavailable: "--require-target was given and the target cannot be reached",
        .internalError: nil, .systemError: nil,
        .configuration: "a certificate, key or other file is missing or invalid",
    ])
    static let configuration = CommandConfiguration(
        commandName: "bridge",
        abstract: "Relay connections from one address to another.",
        discussion: """
            LISTEN is the address for clients: tcp://HOST:PORT, tls://HOST:PORT, ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH] or \
            unix:///SOCKET. HOST is an IP address, localhost, or * for all addresses. Port 0 selects a free port, which is \
            printed. Without a path, any path is accepted; {name} in the path matches any segment.

            TARGET is the address to connect to: tcp://HOST:PORT, tls://HOST:PORT, unix:///SOCKET, ws://HOST[:PORT][/PATH], \
            wss://HOST[:PORT][/PATH], or the built-in echo or chat. {name} in its path is replaced by the segment matched in LISTEN. With --targets FILE it is left out: \
            clients name one of the targets in FILE, as in /websockify?token=NAME.

            Durations are written like 500ms, 25s, 1m30s, 1h, 7d; sizes like 65536, 64KiB, 1MiB, 16MB.

            EXAMPLES
              Plain MQTT clients, broker over WebSocket:
                sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                  --subprotocol mqtt

              Web pages of one site only, VNC server over TCP:
                sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900 \\
                  --origin https://vnc.example

              noVNC for browsers, as /vnc.html, and its VNC server:
                sluice bridge ws://127.0.0.1:6080/websockify tcp://127.0.0.1:5900 \\
                  --web /usr/share/novnc

              The same for several VNC servers, with lines NAME: HOST:PORT:
                sluice bridge ws://127.0.0.1:6080/websockify \\
                  --targets vnc.tokens --web /usr/share/novnc

              WebSocket to WebSocket with TLS:
                sluice bridge ws://127.0.0.1:8090/app wss://backend.internal/app

              Unix socket to a database with TLS:
                sluice bridge unix:///run/app.sock tls://10.0.0.5:5432

              TLS with client certificates, plain server:
                sluice bridge wss://0.0.0.0:8443/vnc tcp://127.0.0.1:5900 \\
                  --certificate cert.pem --key key.pem --client-ca ca.pem

            \(Self.exitCodes)
            """)

    @Argument(help: .value("LISTEN", "Address for clients, like ws://127.0.0.1:6080/vnc."))
    var listen: String

    @Argument(help: .value("TARGET", "Address to connect to, like tcp://127.0.0.1:5900."))
    var target: String?

    @OptionGroup(title: "Protocol")
    private var tunnel: TunnelOptions

    @OptionGroup(title: "TLS")
    private var tls: TLSOptions

    @OptionGroup(title: "Limits and timeouts")
    private var limits: LimitOptions

    @OptionGroup(title: "Process")
    private var process: ProcessOptions

    func run() async throws {
        let located = try await ErrorReporter.reporting(problemsAs: .usage) { try self.request().read() }
        try await ErrorReporter.reporting {
            try ConfigurationFile.audit(located)
            let options = BridgeRunOptions(requiresTarget: self.process.requireTarget, isQuiet: self.process.quiet)
            try await runGateway(located, source: .bridge(options))
        }
    }

    private func request() throws -> BridgeRequest {
        var request = BridgeRequest(
            listen: self.listen, target: self.target ?? "",
            options: self.tunnel.options + self.tls.options + self.limits.options + self.process.options)
        var reader = OptionReader()
        // The environment has nothing to say about `echo`, nor about a TARGET that is reported anyway.
        if let url = (try? EndpointURL(request.target)) ?? self.tunnel.proxy.map({ _ in EndpointURL.anywhere }),
            let option = ProxyOption(self.tunnel.proxy, to: url, reading: &reader)
        {
            request.proxy = option.proxy
            request.proxySource = option.source
        }
        if self.process.requireTarget, self.tunnel.targets != nil {
            reader.reject("--require-target", "expected TARGET with it, found --targets", remedy: "leave it out")
        }
        if self.process.requireTarget, ["echo", "chat"].contains(request.target) {
            reader.reject(
                "--require-target", "expected TARGET to be an address, found \(QuotedText.quoted(request.target))",
                remedy: "leave it out")
        }
        guard reader.problems.isEmpty else { throw UsageProblems(problems: reader.problems) }
        return request
    }
}

extension ArgumentHelp {
    /// Help of the key that `option` sets.
    fileprivate static func key(_ option: BridgeOption) -> ArgumentHelp {
        .value(option.format?.valueName, option.help)
    }
}

extension CompletionKind {
    /// Completion of the values of the key that `option` sets.
    fileprivate static func key(_ option: BridgeOption) -> CompletionKind {
        switch option.format {
        case .choice(let words)?: .list(words)
        case let format? where format.isPath: .file()
        case let format? where format.isDirectory: .directory
        default: .default
        }
    }
}

extension ValueFormat {
    /// `nil` is the option's name.
    fileprivate var valueName: String? {
        switch self {
        case .text: self.isPath ? "file" : self.isDirectory ? "directory" : nil
        case .integer: "number"
        case .size: "size"
        case .rate: "rate"
        case .duration: "duration"
        case .boolean, .choice: nil
        case .orNone(let format): format.valueName
        }
    }
}

extension BridgeRequest {
    /// The options that were given on the command line.
    static func options(_ typed: (name: BridgeOption, texts: [String?])...) -> [Option] {
        typed.flatMap { option in option.texts.compactMap { $0 }.map { Option(option.name, $0) } }
    }
}

/// Protocol options of a bridge.
private struct TunnelOptions: ParsableArguments {
    @Option(parsing: .singleValue, help: .key(.subprotocol), completion: .key(.subprotocol))
    var subprotocol: [String] = []

    @Option(help: .key(.framing), completion: .key(.framing))
    var framing: String?

    @Option(help: .key(.halfClose), completion: .key(.halfClose))
    var halfClose: String?

    @Option(parsing: .singleValue, help: .key(.header), completion: .key(.header))
    var header: [String] = []

    @Option(parsing: .singleValue, help: .key(.origin), completion: .key(.origin))
    var origin: [String] = []

    @Option(help: .key(.targets), completion: .key(.targets))
    var targets: String?

    @Option(help: .key(.web), completion: .key(.web))
    var web: String?

    @Flag(help: .key(.compress))
    var compress = false

    @Option(
        parsing: .singleValue,
        help: .value(
            "in|out|v1|v2",
            """
            PROXY protocol: in accepts headers from clients on loopback, out sends a v2 header to the target; v1 and v2 send that \
            version. Separate several with commas.
            """))
    var proxyProtocol: [String] = []

    @Option(help: .value("url", "For TARGET: \(ProxyOption.help)"))
    var proxy: String?

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.subprotocol, self.subprotocol), (.framing, [self.framing]), (.halfClose, [self.halfClose]),
            (.header, self.header),
            (.origin, self.origin), (.proxyProtocol, self.proxyProtocol), (.targets, [self.targets]), (.web, [self.web])
        )
            + (self.compress ? [BridgeRequest.Option(.compress)] : [])
    }
}

/// Limits and timeouts of a bridge.
private struct LimitOptions: ParsableArguments {
    @Option(help: .key(.pingInterval), completion: .key(.pingInterval))
    var pingInterval: String?

    @Option(help: .key(.pongTimeout), completion: .key(.pongTimeout))
    var pongTimeout: String?

    @Option(help: .key(.maxMessageSize), completion: .key(.maxMessageSize))
    var maxMessageSize: String?

    @Option(help: .key(.maxConnections), completion: .key(.maxConnections))
    var maxConnections: String?

    @Option(help: .key(.idleTimeout), completion: .key(.idleTimeout))
    var idleTimeout: String?

    @Option(help: .key(.handshakeTimeout), completion: .key(.handshakeTimeout))
    var handshakeTimeout: String?

    @Option(help: .key(.connectTimeout), completion: .key(.connectTimeout))
    var connectTimeout: String?

    @Option(help: .key(.drainTimeout), completion: .key(.drainTimeout))
    var drainTimeout: String?

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.pingInterval, [self.pingInterval]), (.pongTimeout, [self.pongTimeout]),
            (.maxMessageSize, [self.maxMessageSize]),
            (.maxConnections, [self.maxConnections]), (.idleTimeout, [self.idleTimeout]),
            (.handshakeTimeout, [self.handshakeTimeout]), (.connectTimeout, [self.connectTimeout]),
            (.drainTimeout, [self.drainTimeout]))
    }
}

/// TLS options of a bridge.
private struct TLSOptions: ParsableArguments {
    @Option(help: .key(.certificate), completion: .key(.certificate))
    var certificate: String?

    @Option(help: .key(.key), completion: .key(.key))
    var key: String?

    @Option(help: .key(.clientCA), completion: .key(.clientCA))
    var clientCA: String?

    @Option(parsing: .singleValue, help: .key(.clientCRL), completion: .key(.clientCRL))
    var clientCRL: [String] = []

    @Option(help: .key(.ca), completion: .key(.ca))
    var ca: String?

    @Option(parsing: .singleValue, help: .key(.crl), completion: .key(.crl))
    var crl: [String] = []

    @Option(help: .key(.clientCertificate), completion: .key(.clientCertificate))
    var clientCertificate: String?

    @Option(help: .key(.clientKey), completion: .key(.clientKey))
    var clientKey: String?

    @Option(help: .key(.serverName), completion: .key(.serverName))
    var serverName: String?

    @Flag(help: .key(.insecure))
    var insecure = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.certificate, [self.certificate]), (.key, [self.key]), (.clientCA, [self.clientCA]),
            (.clientCRL, self.clientCRL), (.ca, [self.ca]), (.crl, self.crl),
            (.clientCertificate, [self.clientCertificate]), (.clientKey, [self.clientKey]),
            (.serverName, [self.serverName]))
            + (self.insecure ? [BridgeRequest.Option(.insecure)] : [])
    }
}

/// Process options of a bridge.
private struct ProcessOptions: ParsableArguments {
    @Option(help: .key(.logFormat), completion: .key(.logFormat))
    var logFormat: String?

    @Option(help: .key(.logLevel), completion: .key(.logLevel))
    var logLevel: String?

    @Flag(help: "Print nothing on standard output, and log errors only unless --log-level is given.")
    var quiet = false

    @Flag(
        help: "Exit with 69 unless the target can be reached at start, including TLS and opening handshake.")
    var requireTarget = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options((.logFormat, [self.logFormat]), (.logLevel, [self.logLevel]))
            + (self.quiet ? [BridgeRequest.Option(.quiet)] : [])
    }
}
