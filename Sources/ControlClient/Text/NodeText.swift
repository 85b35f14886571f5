import CommandLineText
import ControlAPI

/// Table of the nodes of a cluster.
package struct NodeTable {
    package private(set) var table = TextTable([
        TextTable.Column("NODE", minimumWidth: 6), TextTable.Column("STATE"),
        TextTable.Column("CONNECTIONS", rightAligned: true),
        TextTable.Column("ROOMS", rightAligned: true, dropOrder: 3),
        TextTable.Column("CLIENTS", rightAligned: true, dropOrder: 4),
        TextTable.Column("LOAD", rightAligned: true, dropOrder: 1), TextTable.Column("VERSION", dropOrder: 5),
        TextTable.Column("STARTED", dropOrder: 2),
        TextTable.Column("LEASE", rightAligned: true, dropOrder: 6),
        TextTable.Column("CLOCK", rightAligned: true, dropOrder: 7),
    ])

    package init(_ nodes: [Node]) {
        for node in nodes {
            self.table.add([
                TextTable.Cell(node.answering ? "\(node.name) *" : node.name),
                node.draining ? TextTable.Cell("draining", .yellow) : TextTable.Cell("serving", .green),
                TextTable.Cell("\(node.connections)"), TextTable.Cell("\(node.rooms)"),
                TextTable.Cell("\(node.clients)"), TextTable.Cell(QuantityText.percent(node.processorShare)),
                TextTable.Cell(node.version), TextTable.Cell(node.startedAt),
                TextTable.Cell(QuantityText.duration(milliseconds: node.leaseMs)),
                TextTable.Cell(node.clockDifferenceMs.map { "\($0 < 0 ? "" : "+")\($0) ms" }),
            ])
        }
    }
}
