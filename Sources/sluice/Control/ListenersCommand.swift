import ArgumentParser
import ControlClient

/// `sluice listeners`: lists, makes, changes and deletes listeners at run time.
struct ListenersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listeners",
        abstract: "List the listeners of a running gateway, or change them.",
        discussion: EntryAction.discussion("listeners", "listener"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/listeners", desk)
        }
    }
}
