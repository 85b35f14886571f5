import ArgumentParser
import GatewayCore

/// Options of a bridge about the process itself.
struct ProcessOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Form of log lines: text or json. (default: text)", valueName: "format"))
    var logFormat: String?

    @Flag(help: "Print nothing on standard output, and log errors only.")
    var quiet = false

    @Flag(help: "End with exit code 69 unless the target can be reached at start.")
    var requireTarget = false

    var options: [BridgeRequest.Option] {
        BridgeRequest.options((.logFormat, [self.logFormat])) + (self.quiet ? [BridgeRequest.Option(.quiet)] : [])
    }
}
