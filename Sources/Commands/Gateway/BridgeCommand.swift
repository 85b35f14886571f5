import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// `sluice bridge`: runs a gateway with one listener and one target, without a configuration file.
struct BridgeCommand: GatewayCommand {
    static let configuration = CommandConfiguration(
        commandName: "bridge",
        abstract: "Relay connections from one address to another.",
        discussion: """
            LISTEN is the address for clients: tcp://HOST:PORT, tls://HOST:PORT, ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH] or \
            unix:///SOCKET. HOST is an IP address, localhost, or * for all addresses. Port 0 selects a free port, which is \
            printed. Without a path, any path is accepted; {name} in the path matches any segment.

            TARGET is the address to connect to: tcp://HOST:PORT, tls://HOST:PORT, unix:///SOCKET, ws://HOST[:PORT][/PATH], \
            wss://HOST[:PORT][/PATH], or the built-in echo or chat. {name} in its path is replaced by the segment matched in LISTEN.

            Durations are written like 500ms, 25s, 1m30s, 1h, 7d; sizes like 65536, 64KiB, 1MiB, 16MB.

            EXAMPLES
              Plain MQTT clients, broker over WebSocket:
                sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                  --subprotocol mqtt

              Web pages of one site only, VNC server over TCP:
                sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900 \\
                  --origin https://vnc.example

              WebSocket to WebSocket with TLS:
                sluice bridge ws://127.0.0.1:8090/app wss://backend.internal/app

              Unix socket to a database with TLS:
                sluice bridge unix:///run/app.sock tls://10.0.0.5:5432

              TLS with client certificates, plain server:
                sluice bridge wss://0.0.0.0:8443/vnc tcp://127.0.0.1:5900 \\
                  --certificate cert.pem --key key.pem --client-ca ca.pem

            EXIT CODES
              0   drained after a signal
              64  invalid command line
              69  --require-target was given and the target cannot be reached
              70  internal error
              71  system error at start, like an address in use
              78  a certificate, key or other file is missing or invalid
            """)

    @Argument(help: ArgumentHelp("Address for clients, like ws://127.0.0.1:6080/vnc.", valueName: "LISTEN"))
    var listen: String

    @Argument(help: ArgumentHelp("Address to connect to, like tcp://127.0.0.1:5900.", valueName: "TARGET"))
    var target: String

    @OptionGroup(title: "Protocol")
    private var tunnel: TunnelOptions

    @OptionGroup(title: "TLS")
    private var tls: TLSOptions

    @OptionGroup(title: "Limits and timeouts")
    private var limits: LimitOptions

    @OptionGroup(title: "Process")
    private var process: ProcessOptions

    func run() async throws {
        let located = try await ErrorReporter.reporting(problemsAs: ExitStatus.usage) { try self.request.read() }
        try await ErrorReporter.reporting {
            try ConfigurationFile.audit(located)
            let options = BridgeRunOptions(requiresTarget: self.process.requireTarget, isQuiet: self.process.quiet)
            try await runGateway(located, source: .bridge(options))
        }
    }

    private var request: BridgeRequest {
        BridgeRequest(
            listen: self.listen, target: self.target,
            options: self.tunnel.options + self.tls.options + self.limits.options + self.process.options)
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
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Subprotocol to offer to a WebSocket target, or to accept from clients. Repeatable, in order of preference.",
            valueName: "name"))
    var subprotocol: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Mapping between bytes and messages: binary, text, lines, length-prefixed (4 bytes, big-endian) or base64. \
            (default: binary)
            """,
            valueName: "framing"))
    var framing: String?

    @Option(
        help: ArgumentHelp(
            """
            Action after a half-close: hold keeps the other direction open, close delivers buffered data and closes, \
            signal sends an empty binary message. (default: close)
            """,
            valueName: "policy"))
    var halfClose: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Header field for the opening handshake with a WebSocket target. Repeatable.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            Allowed Origin of web pages, like https://app.example or https://*.example; null for pages without an origin \
            (sandboxed frames, files), '*' for all. Repeatable. (default: '*')
            """,
            valueName: "origin"))
    var origin: [String] = []

    @Flag(help: "Compress WebSocket messages (permessage-deflate) if the peer supports it.")
    var compress = false

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            PROXY protocol: in accepts headers from clients on loopback, out sends a v2 header to the target; v1 and v2 send that \
            version. Separate several with commas.
            """,
            valueName: "in|out|v1|v2"))
    var proxyProtocol: [String] = []

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.subprotocol, self.subprotocol), (.framing, [self.framing]), (.halfClose, [self.halfClose]),
            (.header, self.header),
            (.origin, self.origin), (.proxyProtocol, self.proxyProtocol))
            + (self.compress ? [BridgeRequest.Option(.compress)] : [])
    }
}

/// Limits and timeouts of a bridge.
private struct LimitOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Interval between pings to WebSocket peers, 1s to 1d, or none. (default: 25s)", valueName: "duration")
    )
    var pingInterval: String?

    @Option(
        help: ArgumentHelp(
            "Time without any data after a ping until a WebSocket peer counts as dead, 1s to 1h. (default: 20s)",
            valueName: "duration"))
    var pongTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Maximum WebSocket message size, 1B to 8192TiB; larger messages are refused with 1009. (default: none)",
            valueName: "size"))
    var maxMessageSize: String?

    @Option(
        help: ArgumentHelp("Maximum number of open connections, 1 to 10000000. (default: 32768)", valueName: "number")
    )
    var maxConnections: String?

    @Option(
        help: ArgumentHelp(
            "Close a connection without data after this time, 1s to 365d, or none. (default: 1d)",
            valueName: "duration"))
    var idleTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Timeout for a client's PROXY header, TLS and opening handshake together, 100ms to 10m. (default: 10s)",
            valueName: "duration"))
    var handshakeTimeout: String?

    @Option(
        help: ArgumentHelp("Timeout for connecting to the target, 10ms to 10m. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Time from the first signal until open connections are closed, 0s to 1d. (default: 30s)",
            valueName: "duration"))
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
    @Option(
        help: ArgumentHelp("For clients: server certificate, PEM with its chain or PKCS#12.", valueName: "file"),
        completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp("For clients: private key of the server certificate, PEM.", valueName: "file"),
        completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp(
            "For clients: CA certificates, PEM; requires client certificates issued by these CAs.", valueName: "file"),
        completion: .file())
    var clientCA: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For clients: revocation lists, PEM or DER, of every CA in a client's chain; a client is refused if its certificate \
            is revoked, or a CA has no current list. Repeatable.
            """,
            valueName: "file"), completion: .file())
    var clientCRL: [String] = []

    @Option(
        help: ArgumentHelp("For the target: CA certificates to trust instead of the system's, PEM.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For the target: revocation lists, PEM or DER, of every CA in its chain; the target is refused if its certificate \
            is revoked, or a CA has no current list. Repeatable.
            """,
            valueName: "file"), completion: .file())
    var crl: [String] = []

    @Option(
        help: ArgumentHelp("For the target: client certificate, PEM or PKCS#12.", valueName: "file"),
        completion: .file())
    var clientCertificate: String?

    @Option(
        help: ArgumentHelp("For the target: private key of the client certificate, PEM.", valueName: "file"),
        completion: .file())
    var clientKey: String?

    @Option(
        help: ArgumentHelp(
            "For the target: server name for SNI and verification. (default: the host of TARGET)", valueName: "name"))
    var serverName: String?

    @Flag(help: "For the target: do not verify the certificate. For tests only: insecure.")
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
    @Option(help: ArgumentHelp("Log format: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp(
            "Minimum log level: trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"))
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
