import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient

/// `sluice nodes`: lists the nodes of a cluster.
struct NodesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nodes",
        abstract: "List the nodes of the cluster of a running gateway.",
        discussion: """
            Prints a table: version, connections, rooms with members, clients of rooms, load as a share of one core, uptime, time \
            until the node counts as gone unless it renews its lease, and the difference of its clock. A * marks the node that \
            answers.

            EXAMPLES
              sluice nodes
              sluice nodes --json | jq -r '.items[].name'

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { context in
            let request = ControlRequest(.get, "/v1/nodes")
            try await context.perform(request, as: NodeList.self) {
                NodeTable($0.items).table.lines(cells: context.columns, colors: context.colors)
            }
        }
    }
}
