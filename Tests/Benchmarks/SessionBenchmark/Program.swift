import ArgumentParser

/// One measurement, as JSON, of features that FoundationNetworking does not have.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "SessionBenchmark",
        subcommands: [
            LinesCommand.self, SocketCommand.self, DirectCommand.self, RoundsCommand.self, SuspendedCommand.self,
        ])
}
