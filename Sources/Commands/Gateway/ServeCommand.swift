import ArgumentParser
import GatewayConfiguration
import GatewayCore

/// `sluice serve`: the service.
struct ServeCommand: GatewayCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway with a configuration file, or with the built-in configuration.",
        discussion: """
            Without --config it listens on ws://127.0.0.1:8080 with /echo, which sends every message back, and /chat/{room}, which \
            sends every message to everyone else in the room.

            SIGTERM and SIGINT drain: nothing more is accepted, WebSocket peers are closed with 1001, and after the drain timeout \
            the rest is cut; a second signal ends at once. SIGHUP reads the file again and touches only what changed; a file with \
            a problem changes nothing.

            EXAMPLES
              sluice serve
              sluice serve --config /etc/sluice/sluice.yaml --log-format json

            EXIT CODES
              0   drained after a signal
              64  wrong usage
              70  a fault of sluice itself
              71  the system refused something at start, like an address in use
              78  a problem in the configuration or the files it names
            """)

    @Option(
        help: ArgumentHelp("YAML file with listeners, routes and upstreams.", valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp("Form of log lines: text or json. Wins over the file's log-format.", valueName: "format"))
    var logFormat: LogSettings.Format?

    @Option(
        help: ArgumentHelp(
            "Least severe entry to log: trace, debug, info, notice, warning, error or critical. Wins over the file's log-level.",
            valueName: "level"))
    var logLevel: LogSettings.Level?

    func run() async throws {
        try await Ending.reporting {
            let overrides = LogOverrides(format: self.logFormat, level: self.logLevel)
            let located = try self.config.map { try ConfigurationFile.load($0) } ?? .builtIn()
            let source = self.config.map { ConfigurationSource.file($0, overrides: overrides) } ?? .builtIn(overrides)
            try await runGateway(located, source: source)
        }
    }
}

/// Log settings given on the command line, which win over the file's.
struct LogOverrides: Sendable, Equatable {
    var format: LogSettings.Format?
    var level: LogSettings.Level?

    func apply(to configuration: inout GatewayConfiguration) {
        if let format { configuration.log.format = format }
        if let level { configuration.log.level = level }
    }
}

extension LogSettings.Format: ExpressibleByArgument {}

extension LogSettings.Level: ExpressibleByArgument {}
