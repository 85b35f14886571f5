import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// `sluice serve`: runs the gateway as a service.
struct ServeCommand: GatewayCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "drained after a signal",
        .usage: nil, .internalError: nil, .systemError: nil, .configuration: nil,
    ])
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway with a configuration file, or with the built-in configuration.",
        discussion: """
            Without --config, it listens on ws://127.0.0.1:8080 with /echo, which sends every message back, and /chat/{room}, which \
            sends every message to all other clients in the room. /connection/websocket, /connection/uni_sse and \
            /connection/uni_http_stream serve the same rooms to programs; / is a page for browsers, and /sluice-chat.js its client.

            SIGTERM and SIGINT drain: listeners are closed, WebSocket peers are closed with 1001, and connections still open after \
            the drain timeout are reset; a second signal exits at once. SIGHUP reloads the file and applies only what changed; \
            a file with problems changes nothing.

            EXAMPLES
              sluice serve
              sluice serve --config /etc/sluice/sluice.yaml --log-format json

            \(Self.exitCodes)
            """)

    @Option(help: .value("file", "YAML file with listeners, routes and upstreams."), completion: .file())
    var config: String?

    @Option(help: .value("format", "Log format: text or json. Overrides log-format of the file."))
    var logFormat: LogSettings.Format?

    @Option(
        help: .value(
            "level",
            "Minimum log level: trace, debug, info, notice, warning, error or critical. Overrides log-level of the file."
        ))
    var logLevel: LogSettings.Level?

    func run() async throws {
        try await ErrorReporter.reporting {
            let overrides = LogOverrides(format: self.logFormat, level: self.logLevel)
            let located = try self.config.map { try ConfigurationFile.load($0) } ?? .builtIn()
            let source = self.config.map { ConfigurationSource.file($0, overrides: overrides) } ?? .builtIn(overrides)
            try await runGateway(located, source: source)
        }
    }
}

/// Log settings of the command line, which override those of the file.
struct LogOverrides: Sendable, Equatable {
    var format: LogSettings.Format?
    var level: LogSettings.Level?

    func apply(to configuration: inout Configuration) {
        if let format { configuration.log.format = format }
        if let level { configuration.log.level = level }
    }
}

extension LogSettings.Format: ExpressibleByArgument {}

extension LogSettings.Level: ExpressibleByArgument {}
