import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// `sluice bridge`: one listener, one target, no file.
struct BridgeCommand: GatewayCommand {
    static let configuration = CommandConfiguration(
        commandName: "bridge",
        abstract: "Join clients at one address with a target at another.",
        discussion: """
            LISTEN is where clients come in: tcp://HOST:PORT, tls://HOST:PORT, ws://HOST[:PORT][/PATH], wss://HOST[:PORT][/PATH] or \
            unix:///SOCKET. HOST is an IP address, localhost, or * for all addresses. Port 0 takes a free port and prints it. \
            Without a path every path is taken; {name} in it stands for any segment.

            TARGET is what they reach: tcp://HOST:PORT, tls://HOST:PORT, unix:///SOCKET, ws://HOST[:PORT][/PATH], \
            wss://HOST[:PORT][/PATH], or the words echo and chat. {name} in its path stands for what LISTEN's path had there.

            Durations are like 500ms, 25s, 1m30s, 1h, 7d; sizes like 65536, 64KiB, 1MiB, 16MB.

            EXAMPLES
              A plain MQTT client to a broker behind WebSocket:
                sluice bridge tcp://127.0.0.1:1883 wss://broker.example/mqtt \\
                  --subprotocol mqtt

              A VNC server for pages in a browser, from one site only:
                sluice bridge ws://127.0.0.1:6080/vnc tcp://127.0.0.1:5900 \\
                  --origin https://vnc.example

              A WebSocket server behind another:
                sluice bridge ws://127.0.0.1:8090/app wss://backend.internal/app

              A Unix socket in front of a database with TLS:
                sluice bridge unix:///run/app.sock tls://10.0.0.5:5432

              TLS with client certificates in front of a plain server:
                sluice bridge wss://0.0.0.0:8443/vnc tcp://127.0.0.1:5900 \\
                  --certificate cert.pem --key key.pem --client-ca ca.pem

            EXIT CODES
              0   drained after a signal
              64  wrong usage, or an option with a wrong value
              69  --require-target was given and the target cannot be reached
              70  a fault of sluice itself
              71  the system refused something at start, like an address in use
              78  a certificate, key or other file cannot be used
            """)

    @Argument(help: ArgumentHelp("Where clients come in, like ws://127.0.0.1:6080/vnc.", valueName: "LISTEN"))
    var listen: String

    @Argument(help: ArgumentHelp("What they reach, like tcp://127.0.0.1:5900.", valueName: "TARGET"))
    var target: String

    @OptionGroup(title: "Carrying bytes and messages")
    var carriage: TunnelOptions

    @OptionGroup(title: "TLS")
    var tls: TLSOptions

    @OptionGroup(title: "Limits and times")
    var limits: LimitOptions

    @OptionGroup(title: "Process")
    var process: ProcessOptions

    func run() async throws {
        let located = try await Ending.reporting(problemsAs: ExitStatus.usage) { try self.request.read() }
        try await Ending.reporting {
            try ConfigurationFile.audit(located)
            let terms = BridgeRunOptions(requiresTarget: self.process.requireTarget, isQuiet: self.process.quiet)
            try await runGateway(located, source: .bridge(terms))
        }
    }

    private var request: BridgeRequest {
        BridgeRequest(
            listen: self.listen, target: self.target,
            options: self.carriage.options + self.tls.options + self.limits.options + self.process.options)
    }
}

extension BridgeRequest {
    /// The options that were typed, of those there are.
    static func options(_ typed: (name: BridgeOption, texts: [String?])...) -> [Option] {
        typed.flatMap { option in option.texts.compactMap { $0 }.map { Option(option.name, $0) } }
    }
}

/// Options of `sluice bridge` besides its configuration.
struct BridgeRunOptions: Sendable, Equatable {
    /// Ends with exit code 69 unless the target can be reached at start.
    var requiresTarget: Bool
    /// Prints nothing on standard output.
    var isQuiet: Bool
}

/// Options of a bridge about what it carries.
struct TunnelOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Subprotocol to offer to a WebSocket target, or to accept from WebSocket clients. Repeat for several, best first.",
            valueName: "name"))
    var subprotocol: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            How bytes and messages stand for each other: binary, text, lines, length-prefixed (4 bytes, big-endian) or base64. \
            (default: binary)
            """,
            valueName: "framing"))
    var framing: String?

    @Option(
        help: ArgumentHelp(
            """
            What follows when one direction is finished: hold keeps the other open, close delivers what is under way and closes, \
            signal marks the end with an empty binary message. (default: close)
            """,
            valueName: "policy"))
    var halfClose: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Header for the handshake with a WebSocket target. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            Origin of pages that may connect, like https://app.example or https://*.example; null for pages without one (sandboxed \
            frames, files), '*' for all. Repeat for several. (default: '*')
            """,
            valueName: "origin"))
    var origin: [String] = []

    @Flag(help: "Compress WebSocket messages (permessage-deflate) where the peer can.")
    var compress = false

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            PROXY protocol: in accepts its header from clients on loopback, out sends one to the target (v2); v1 and v2 send that \
            version. Several with commas.
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

/// Options of a bridge about how much and how long.
struct LimitOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Between pings to WebSocket peers, 1s to 1d, or none. (default: 25s)", valueName: "duration")
    )
    var pingInterval: String?

    @Option(
        help: ArgumentHelp(
            "A WebSocket peer that answers a ping with nothing for this long counts as dead, 1s to 1h. (default: 20s)",
            valueName: "duration"))
    var pongTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Largest WebSocket message, 1B to 8192TiB; a larger one ends its connection with 1009. (default: none)",
            valueName: "size"))
    var maxMessageSize: String?

    @Option(
        help: ArgumentHelp("Open connections, 1 to 10000000; others are refused. (default: 32768)", valueName: "number")
    )
    var maxConnections: String?

    @Option(
        help: ArgumentHelp(
            "A connection that carries no data for this long ends, 1s to 365d, or none. (default: 1d)",
            valueName: "duration"))
    var idleTimeout: String?

    @Option(
        help: ArgumentHelp(
            "For a client's PROXY header, TLS and opening handshake together, 100ms to 10m. (default: 10s)",
            valueName: "duration"))
    var handshakeTimeout: String?

    @Option(
        help: ArgumentHelp("For connecting to the target, 10ms to 10m. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(
        help: ArgumentHelp(
            "From the first signal to the end of whatever is still open, 0s to 1d. (default: 30s)",
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

/// Options of a bridge about TLS, the clients' side first.
struct TLSOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("For clients: our certificate, PEM with its chain or PKCS#12.", valueName: "file"),
        completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp("For clients: the certificate's private key, PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp(
            "For clients: authorities, PEM; a client must show a certificate that they vouch for.", valueName: "file"),
        completion: .file())
    var clientCA: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For clients: revocation lists, PEM or DER, of every authority in a client's chain; a client whose certificate they \
            name, or whose authority has no current list, is refused. Repeat for several files.
            """,
            valueName: "file"), completion: .file())
    var clientCRL: [String] = []

    @Option(
        help: ArgumentHelp("For the target: trust these authorities, PEM, instead of the system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            For the target: revocation lists, PEM or DER, of every authority in its chain; a certificate that they name, or whose \
            authority has no current list, is refused. Repeat for several files.
            """,
            valueName: "file"), completion: .file())
    var crl: [String] = []

    @Option(
        help: ArgumentHelp("For the target: certificate to show when asked, PEM or PKCS#12.", valueName: "file"),
        completion: .file())
    var clientCertificate: String?

    @Option(
        help: ArgumentHelp("For the target: that certificate's private key, PEM.", valueName: "file"),
        completion: .file())
    var clientKey: String?

    @Option(
        help: ArgumentHelp(
            "For the target: name to ask for and verify. (default: the host of TARGET)", valueName: "name"))
    var serverName: String?

    @Flag(help: "For the target: take any certificate. Only for tests.")
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
