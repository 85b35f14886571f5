import ArgumentParser

/// Loads URLs with the library as its options say, and prints reports as JSON for the scenarios.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Loader", abstract: "Load URLs, and tell as JSON what happened.",
        subcommands: [LoadCommand.self, SocketCommand.self, NetworkCommand.self])
}
