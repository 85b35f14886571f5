import ArgumentParser
import ControlClient

/// `sluice routes`: lists, makes, changes and deletes routes at run time.
struct RoutesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "routes",
        abstract: "List the routes of a running gateway, or change them.",
        discussion: EntryAction.discussion("routes", "route"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/routes", desk)
        }
    }
}
