import ArgumentParser
import ControlAPI
import ControlClient

/// `sluice health`: whether a running gateway is well, in an exit code.
struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Tell whether a running gateway is well.",
        discussion: """
            Done (0) when it takes connections, 75 while it starts or drains, 69 when nothing answers: for the health check of a \
            container, and for scripts that wait until a gateway is up. Needs no token.

            EXAMPLES
              sluice health
              sluice health --live
              until sluice health 2> /dev/null; do sleep 1; done

            \(ControlHelp.exitCodes)
            """)

    /// How long nothing may come: more than the gateway gives its loops to answer.
    private static let patience = Duration.seconds(5)

    @Flag(help: "Only whether all of it still runs, which is so while it drains too.")
    var live = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            var request = ControlRequest(.get, self.live ? "/livez" : "/readyz")
            request.patience = Self.patience
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: ServiceHealth.self) { ["\($0.status): \($0.phase)"] }
        }
    }
}
