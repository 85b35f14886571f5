import ArgumentParser
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import WebSocketProtocol

/// `sluice open`: the gateway opens a connection.
struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Let a running gateway open a connection, and keep it.",
        discussion: """
            URL is ws://, wss://, tcp://, tls:// or unix://. Prints the id of the connection once it is open; send, receive, ping, \
            attach and close take it from there. It stays when this command ends.

            EXAMPLES
              id=$(sluice open wss://echo.example/ --label team=blue)
              sluice send "$id" hello && sluice receive "$id" && sluice close "$id"

              Two that speak to each other through the gateway:
                sluice open tcp://127.0.0.1:5900 --to wss://viewer.example/join

              A mail server, and TLS later on:
                id=$(sluice open tcp://mail.example:587)
                sluice secure "$id"

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("What to open, like ws://127.0.0.1:8080/echo.", valueName: "URL"))
    var url: String

    @Option(
        help: ArgumentHelp(
            "Open this too, and join the two to a tunnel: what one side sends, the other gets. The options are for the first.",
            valueName: "URL"))
    var to: String?

    @Flag(help: "Do not wait until it is open.")
    var noWait = false

    @OptionGroup(title: "Connection")
    var options: OpenOptions

    @OptionGroup(title: "TLS of the connection")
    var security: SecurityOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, body in
            var request =
                if let upstream = self.to {
                    try ControlRequest(
                        .post, ConnectionPath.all,
                        json: TunnelRequest(downstream: body, upstream: OpenRequest(url: upstream)))
                } else {
                    try ControlRequest(.post, ConnectionPath.all, json: body)
                }
            // Name, connection, TLS and opening handshake, one after the other.
            request.patience = .milliseconds(
                (body.connectTimeoutMs ?? 10_000) + 2 * (body.handshakeTimeoutMs ?? 10_000) + 15_000)
            if self.noWait { request.headers["Prefer"] = "respond-async" }
            let answer = try await desk.session.send(request)
            if self.noWait {
                return try await desk.show(answer, as: OperationRecord.self) { [$0.connection ?? $0.id] }
            }
            try await desk.show(answer, as: Connection.self) { [$0.id ?? ""] }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> OpenRequest? {
        var request = OpenRequest(url: self.url)
        self.options.apply(to: &request, &reader)
        request.tls = try self.security.request()
        return request
    }
}

/// Options of `open` about the connection.
struct OpenOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Header field for the opening handshake. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Subprotocol to offer. Repeat for several, best first.", valueName: "name"))
    var subprotocol: [String] = []

    @Flag(help: "Offer permessage-deflate.")
    var compress = false

    @Option(
        help: ArgumentHelp(
            "A longer message fails the connection with 1009, 1B to 256MiB. (default: 1MiB)", valueName: "size"))
    var maxMessageSize: String?

    @Option(help: ArgumentHelp("Between keep-alive pings, or none. (default: none)", valueName: "duration"))
    var pingInterval: String?

    @Option(help: ArgumentHelp("How long a Pong may take. (default: 20s)", valueName: "duration"))
    var pongTimeout: String?

    @Option(help: ArgumentHelp("For name resolution and connecting. (default: 10s)", valueName: "duration"))
    var connectTimeout: String?

    @Option(help: ArgumentHelp("For TLS, and again for the opening handshake. (default: 10s)", valueName: "duration"))
    var handshakeTimeout: String?

    @Option(help: ArgumentHelp("TCP keep-alive: before the first probe.", valueName: "duration"))
    var keepAliveIdle: String?

    @Option(help: ArgumentHelp("TCP keep-alive: between probes.", valueName: "duration"))
    var keepAliveInterval: String?

    @Option(help: ArgumentHelp("TCP keep-alive: probes without an answer.", valueName: "number"))
    var keepAliveProbes: String?

    @Option(
        help: ArgumentHelp("How long sent data may go unacknowledged.", valueName: "duration"))
    var userTimeout: String?

    @OptionGroup
    var notes: NoteOptions

    func apply(to request: inout OpenRequest, _ reader: inout OptionReader) {
        request.headers = self.headers(&reader)
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
        let keepAlive = KeepAliveRequest(
            idleMs: Self.milliseconds("--keep-alive-idle", self.keepAliveIdle, &reader),
            intervalMs: Self.milliseconds("--keep-alive-interval", self.keepAliveInterval, &reader),
            probes: reader.value("--keep-alive-probes", self.keepAliveProbes, .integer(1...127)),
            userTimeoutMs: Self.milliseconds("--user-timeout", self.userTimeout, &reader))
        request.keepAlive = keepAlive == KeepAliveRequest() ? nil : keepAlive
        let notes = self.notes.patch(&reader)
        request.description = notes.description
        request.priority = notes.priority
        request.labels = notes.labels
    }

    static func milliseconds(_ option: String, _ text: String?, _ reader: inout OptionReader) -> Double? {
        reader.value(option, text, .duration(.zero ... .seconds(86400))).map { $0 / .milliseconds(1) }
    }

    /// Several of one name are one list (RFC 9110 §5.3).
    private func headers(_ reader: inout OptionReader) -> [String: String]? {
        var headers: [String: String] = [:]
        for text in self.header {
            guard let field = reader.value("--header", text, ValueSyntax<HTTPField>.headerField) else { continue }
            let name = headers.keys.first { $0.lowercased() == field.name.lowercased() } ?? field.name
            headers[name] = headers[name].map { "\($0), \(field.value)" } ?? field.value
        }
        return headers.isEmpty ? nil : headers
    }
}
