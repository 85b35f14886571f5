import ArgumentParser

/// One measurement of what the toolchain's own URL loading does not have, told as JSON.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "SessionBenchmark",
        subcommands: [
            LinesCommand.self, SocketCommand.self, DirectCommand.self, RoundsCommand.self, SuspendedCommand.self,
        ])
}
