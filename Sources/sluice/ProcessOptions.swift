import ArgumentParser
import GatewayCore

/// Options of a bridge about the process itself.
struct ProcessOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Form of log lines: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Option(
        help: ArgumentHelp(
            "Least severe entry to log: trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"))
    var logLevel: String?

    @Flag(help: "Print nothing on standard output, and log errors only unless --log-level says otherwise.")
    var quiet = false

    @Flag(
        help: "End with exit code 69 unless the target can be reached at start, TLS and opening handshake included.")
    var requireTarget = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options((.logFormat, [self.logFormat]), (.logLevel, [self.logLevel]))
            + (self.quiet ? [BridgeRequest.Option(.quiet)] : [])
    }
}
