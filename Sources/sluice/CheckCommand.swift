import ArgumentParser
import GatewayCore

/// `sluice check`: says whether a configuration would run.
struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a configuration file without starting anything.",
        discussion: """
            Prints one line when all is well:

              sluice.yaml: ok: 2 listeners, 3 routes, 1 upstream

            Else a line for each problem on standard error, all at once, in the order of the file:

              sluice.yaml:4:13: listeners[0].listen: expected a port from 0 to 65535, found "ws://127.0.0.1:99999"

            Certificates, keys and other files that the configuration names must be readable and of use; with --without-files they are not \
            looked at, for checking a file on another machine than the one it is for.

            EXAMPLES
              sluice check --config /etc/sluice/sluice.yaml
              sluice check --config draft.yaml --without-files

            EXIT CODES
              0   the configuration is right
              64  wrong usage
              78  a problem in the configuration or the files it names
            """)

    @Option(help: ArgumentHelp("YAML file to check.", valueName: "file"), completion: .file())
    var config: String

    @Flag(help: "Do not look at the certificates and other files that the configuration names.")
    var withoutFiles = false

    func run() async throws {
        try await Ending.reporting {
            let located =
                try self.withoutFiles ? ConfigurationFile.read(self.config) : ConfigurationFile.load(self.config)
            print("\(self.config): ok: \(located.configuration.summary)")
        }
    }
}
