import ArgumentParser
import ControlAPI
import ControlClient
import GatewayCore

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
