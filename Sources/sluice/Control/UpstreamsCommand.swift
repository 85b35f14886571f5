import ArgumentParser
import ControlClient

/// `sluice upstreams`: lists, makes, changes and deletes upstreams at run time.
struct UpstreamsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upstreams",
        abstract: "List the upstreams of a running gateway, or change them.",
        discussion: EntryAction.discussion("upstreams", "upstream"))

    @OptionGroup
    var entry: EntryOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.entry.action) { desk, action in
            try await action.perform(at: "/v1/upstreams", desk)
        }
    }
}
