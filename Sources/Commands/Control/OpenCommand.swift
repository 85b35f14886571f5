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

    @Argument(help: .value("URL", "URL to open, like ws://127.0.0.1:8080/echo."))
    var url: String

    @Option(
        help: .value(
            "URL",
            "Open this URL too, and relay data between the two connections. The other options apply to the first."))
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
            if self.noWait {
                return try await context.perform(request, as: OperationRecord.self) { [$0.connection ?? $0.id] }
            }
            try await context.perform(request, as: Connection.self) { [$0.id ?? ""] }
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
        help: .value("Name: value", "Header field for the opening handshake. Repeatable."))
    var header: [String] = []

    @Option(parsing: .singleValue, help: .value("name", "Subprotocol to offer. Repeatable, in order of preference."))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(
        help: .value(
            "size", "Maximum message size, 1B to 256MiB; larger messages are refused with 1009. (default: 1MiB)"))
    var maxMessageSize: String?

    @Option(help: .value("duration", "Interval between keep-alive pings, or none. (default: none)"))
    var pingInterval: String?

    @Option(help: .value("duration", "Timeout for a Pong. (default: 20s)"))
    var pongTimeout: String?

    @Option(help: .value("duration", "Timeout for name lookup and connecting. (default: 10s)"))
    var connectTimeout: String?

    @Option(help: .value("duration", "Timeout for TLS, and again for the opening handshake. (default: 10s)"))
    var handshakeTimeout: String?

    @Option(help: .value("duration", "TCP keep-alive: idle time before the first probe."))
    var keepAliveIdle: String?

    @Option(help: .value("duration", "TCP keep-alive: interval between probes."))
    var keepAliveInterval: String?

    @Option(help: .value("number", "TCP keep-alive: unanswered probes until the connection fails."))
    var keepAliveProbes: String?

    @Option(help: .value("duration", "TCP user timeout: maximum time that sent data may stay unacknowledged."))
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
        request.pongTimeoutMs = reader.milliseconds("--pong-timeout", self.pongTimeout)
        request.connectTimeoutMs = reader.milliseconds("--connect-timeout", self.connectTimeout)
        request.handshakeTimeoutMs = reader.milliseconds("--handshake-timeout", self.handshakeTimeout)
        let keepAlive = KeepAliveRequest {
            $0.idleMs = reader.milliseconds("--keep-alive-idle", self.keepAliveIdle)
            $0.intervalMs = reader.milliseconds("--keep-alive-interval", self.keepAliveInterval)
            $0.probes = reader.value(
                "--keep-alive-probes", self.keepAliveProbes, .integer(KeepAliveSettings.probeCounts))
            $0.userTimeoutMs = reader.milliseconds("--user-timeout", self.userTimeout)
        }
        request.keepAlive = keepAlive == KeepAliveRequest() ? nil : keepAlive
        self.annotations.apply(to: &request, &reader)
    }
}
