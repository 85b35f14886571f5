import ArgumentParser

/// Loads as it is told through the library's URL loading system, and prints what came of it as JSON: for the scenarios.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Loader", abstract: "Load URLs, and tell as JSON what happened.",
        subcommands: [LoadCommand.self, SocketCommand.self])
}
