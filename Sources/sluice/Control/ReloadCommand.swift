import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient

/// `sluice reload`: a gateway reads its configuration's file again.
struct ReloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Let a running gateway read its configuration file again.",
        discussion: """
            Tells what changed, a line for each value; a file with a problem changes nothing.

            EXAMPLES
              sluice reload --dry-run
              sluice reload

            \(ControlHelp.exitCodes)
            """)

    @Flag(help: "Only tell what would change.")
    var dryRun = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let parameters = self.dryRun ? [ControlRequest.Parameter("dryRun", "true")] : []
            let answer = try await desk.session.send(
                ControlRequest(.post, "/v1/configuration:reload", parameters))
            try await desk.show(answer, as: ConfigurationDifference.self) { DifferenceText.lines($0) }
        }
    }
}
