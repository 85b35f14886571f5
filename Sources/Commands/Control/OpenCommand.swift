import ArgumentParser
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// `sluice open`: lets the gateway open a connection.
struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Let a running gateway open a connection and keep it.",
        discussion: """
            URL is ws://, wss://, tcp://, tls:// or unix://. Prints the ID of the connection once it is open, for use with send, \
            receive, ping, attach and close. The connection stays open when this command exits.

            EXAMPLES
              id=$(sluice open wss://echo.example/ --label team=blue)
              sluice send "$id" hello && sluice receive "$id" && sluice close "$id"

              A tunnel between two servers:
                sluice open tcp://127.0.0.1:5900 --to wss://viewer.example/join

              A mail server, upgraded to TLS later:
                id=$(sluice open tcp://mail.example:587)
                sluice secure "$id"

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("URL to open, like ws://127.0.0.1:8080/echo.", valueName: "URL"))
    var url: String

    @Option(
        help: ArgumentHelp(
            "Open this URL too, and relay data between the two connections. The other options apply to the first.",
            valueName: "URL"))
    var to: String?

    @Flag(help: "Do not wait until the connection is open.")
    var noWait = false

    @OptionGroup(title: "Connection")
    var options: OpenOptions

    @OptionGroup(title: "TLS of the connection")
    var security: SecurityOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { context, body in
            var request =
                if let upstream = self.to {
                    try ControlRequest(
                        .post, ConnectionPath.all,
                        json: TunnelRequest {
                            $0.downstream = body
                            $0.upstream.url = upstream
                        })
                } else {
                    try ControlRequest(.post, ConnectionPath.all, json: body)
                }
            // Connecting, TLS and opening handshake have one timeout each; 15 s are for the gateway's response.
            request.idleTimeout = .milliseconds(
                (body.connectTimeoutMs ?? 10_000) + 2 * (body.handshakeTimeoutMs ?? 10_000) + 15_000)
            if self.noWait { request.headers["Prefer"] = "respond-async" }
            let answer = try await context.session.send(request)
            if self.noWait {
                return try await context.show(answer, as: OperationRecord.self) { [$0.connection ?? $0.id] }
            }
            try await context.show(answer, as: Connection.self) { [$0.id ?? ""] }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> OpenRequest? {
        var request = OpenRequest { $0.url = self.url }
        self.options.apply(to: &request, &reader)
        request.tls = try self.security.request()
        return request
    }
}

/// Connection options of `open`.
struct OpenOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Header field for the opening handshake. Repeatable.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Subprotocol to offer. Repeatable, in order of preference.", valueName: "name"))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(
        help: ArgumentHelp(
            "Maximum message size, 1B to 256MiB; larger messages are refused with 1009. (default: 1MiB)",
            valueName: "size"))
    var maxMessageSize: String?

    @Option(help: ArgumentHelp("Interval between keep-alive pings, or none. (default: none)", valueName: "duration"))
    var pingInterval: String?

    @Option(help: ArgumentHelp("Timeout for a Pong. (default: 20s)", valueName: "duration"))
    var pongTimeout: String?

    @Option(help: ArgumentHelp("Timeout for name lookup and connecting. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(
        help: ArgumentHelp(
            "Timeout for TLS, and again for the opening handshake. (default: 10s)", valueName: "duration"))
    var handshakeTimeout: String?

    @Option(help: ArgumentHelp("TCP keep-alive: idle time before the first probe.", valueName: "duration"))
    var keepAliveIdle: String?

    @Option(help: ArgumentHelp("TCP keep-alive: interval between probes.", valueName: "duration"))
    var keepAliveInterval: String?

    @Option(help: ArgumentHelp("TCP keep-alive: unanswered probes until the connection fails.", valueName: "number"))
    var keepAliveProbes: String?

    @Option(
        help: ArgumentHelp(
            "TCP user timeout: maximum time that sent data may stay unacknowledged.", valueName: "duration"))
    var userTimeout: String?

    @OptionGroup
    var annotations: AnnotationOptions

    func apply(to request: inout OpenRequest, _ reader: inout OptionReader) {
        request.headers = reader.headers(self.header)
        request.subprotocols = self.subprotocol.isEmpty ? nil : self.subprotocol
        request.compress = self.compress ? true : nil
        request.maximumMessageSizeBytes = reader.value(
            "--max-message-size", self.maxMessageSize, .size(1...256 << 20))
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400))
        let ping = reader.value("--ping-interval", self.pingInterval, span.orNone)
        request.pingIntervalMs = ping.map { ($0 ?? .zero) / .milliseconds(1) }
        request.pongTimeoutMs = Self.milliseconds("--pong-timeout", self.pongTimeout, &reader)
        request.connectTimeoutMs = Self.milliseconds("--connect-timeout", self.connectTimeout, &reader)
        request.handshakeTimeoutMs = Self.milliseconds("--handshake-timeout", self.handshakeTimeout, &reader)
        let keepAlive = KeepAliveRequest {
            $0.idleMs = Self.milliseconds("--keep-alive-idle", self.keepAliveIdle, &reader)
            $0.intervalMs = Self.milliseconds("--keep-alive-interval", self.keepAliveInterval, &reader)
            $0.probes = reader.value(
                "--keep-alive-probes", self.keepAliveProbes, .integer(KeepAliveSettings.probeCounts))
            $0.userTimeoutMs = Self.milliseconds("--user-timeout", self.userTimeout, &reader)
        }
        request.keepAlive = keepAlive == KeepAliveRequest() ? nil : keepAlive
        let annotations = self.annotations.patch(&reader)
        request.description = annotations.description
        request.priority = annotations.priority
        request.labels = annotations.labels
    }

    static func milliseconds(_ option: String, _ text: String?, _ reader: inout OptionReader) -> Double? {
        reader.value(option, text, .duration(.zero ... .seconds(86400))).map { $0 / .milliseconds(1) }
    }
}
