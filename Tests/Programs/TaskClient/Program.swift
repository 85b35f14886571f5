import ArgumentParser

/// The library's tasks, driven through their asynchronous interface as a program of a user's would.
@main
struct Program: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TaskClient",
        abstract: "Clients built from the library, for the scenario tests.",
        subcommands: [MailCommand.self, EchoCommand.self])
}
