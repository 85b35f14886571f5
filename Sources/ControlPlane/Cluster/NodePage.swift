import WireText

/// A part of one node's list, from which lists of several nodes are merged.
package struct NodePage: Sendable, Equatable {
    /// Bytes of items in one page, from which on no further item is added: a page must fit into one message.
    static let byteLimit = 768 << 10

    /// JSON objects.
    package var items: [[UInt8]] = []
    /// The sort value of each item.
    package var values: [Int64] = []
    /// For each item, the cursor of a page that follows it.
    package var cursors: [String] = []
    /// Whether there are items after the last one.
    package var hasMore = false

    package init() {}

    var bytes: Int { self.items.reduce(0) { $0 + $1.count } }

    mutating func append(_ item: [UInt8], value: Int64 = 0, cursor: String) {
        self.items.append(item)
        self.values.append(value)
        self.cursors.append(cursor)
    }

    package var encoded: [UInt8] {
        var text = JSONText(capacity: self.bytes + 256)
        text.beginObject()
        text.key("items")
        text.beginArray()
        for item in self.items { text.raw(item) }
        text.endArray()
        text.key("values")
        text.beginArray()
        for value in self.values { text.number(value) }
        text.endArray()
        text.key("cursors")
        text.beginArray()
        for cursor in self.cursors { text.string(cursor) }
        text.endArray()
        text.member("hasMore", self.hasMore)
        text.endObject()
        return text.bytes
    }

    /// - Returns: `nil` for bytes that are no page.
    package init?(_ bytes: [UInt8]) {
        var page = NodePage()
        let isDocument = JSONReader.readDocument(bytes) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "items":
                try value.readArray { (item) throws(JSONSyntaxError) in page.items.append(try item.readRaw()) }
            case "values":
                try value.readArray { (item) throws(JSONSyntaxError) in page.values.append(Int64(try item.readInt())) }
            case "cursors": page.cursors = try value.readStrings()
            case "hasMore": page.hasMore = try value.readBool()
            default: try value.skipValue()
            }
        }
        // A page without items that claims to have more would be asked for again without end.
        guard isDocument, page.values.count == page.items.count, page.cursors.count == page.items.count,
            !page.hasMore || !page.items.isEmpty
        else { return nil }
        self = page
    }
}

/// The start of a page of a list of several nodes. Opaque to clients, and valid on every node.
package struct NodeCursor: Sendable, Equatable {
    /// Cursor in the list of one node; `nil` at its beginning.
    package struct Start: Sendable, Equatable {
        package let node: String
        package let cursor: String?

        package init(_ node: String, _ cursor: String? = nil) {
            (self.node, self.cursor) = (node, cursor)
        }
    }

    /// Whether nodes that follow the last start, in the order of their names, are still to be listed.
    package var includesLaterNodes: Bool
    package var starts: [Start]

    package init(includesLaterNodes: Bool, _ starts: [Start]) {
        self.includesLaterNodes = includesLaterNodes
        self.starts = starts
    }

    package init(_ text: String) throws(ControlProblem) {
        let starts = text.dropFirst().split(separator: ",").map { part -> Start? in
            let parts = part.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, let node = PercentCoding.decodedText(parts[0]),
                let cursor = PercentCoding.decodedText(parts[1]), !node.isEmpty
            else { return nil }
            return Start(node, cursor.isEmpty ? nil : cursor)
        }
        let found = starts.compactMap(\.self)
        guard text.first == "n" || text.first == "m", !found.isEmpty, found.count == starts.count else {
            throw ControlProblem(400, "invalid-cursor", "The cursor is invalid; start without one.")
                .at(parameter: "cursor")
        }
        self.init(includesLaterNodes: text.first == "n", found)
    }

    package var text: String {
        (self.includesLaterNodes ? "n" : "m")
            + self.starts.map { "\(PercentCoding.encoded($0.node)):\(PercentCoding.encoded($0.cursor ?? ""))" }
            .joined(separator: ",")
    }

    /// Cursors in the lists of the selected nodes.
    package func starts(of nodes: [String]) -> [Start] {
        let known = self.starts.filter { nodes.contains($0.node) }
        guard self.includesLaterNodes, let last = self.starts.last else { return known }
        return known + nodes.filter { $0 > last.node }.map { Start($0) }
    }
}

/// One page that is merged from the pages of several nodes.
package struct MergedPage: Sendable, Equatable {
    package private(set) var items: [[UInt8]] = []
    package private(set) var next: [NodeCursor.Start] = []

    /// Merges by value; of equal values, those of the earlier node come first.
    /// - Parameter parts: each node's page, and where it starts.
    package init(
        _ parts: [(start: NodeCursor.Start, page: NodePage)], limit: Int, isDescending: Bool
    ) {
        var used = Array(repeating: 0, count: parts.count)
        func comesFirst(_ left: Int, _ right: Int) -> Bool {
            let (a, b) = (parts[left].page.values[used[left]], parts[right].page.values[used[right]])
            return a == b ? left < right : isDescending ? a > b : a < b
        }
        while self.items.count < limit {
            // What follows the end of a node's page is not known, and may come before all others.
            let isUnknown = parts.indices.contains { used[$0] == parts[$0].page.items.count && parts[$0].page.hasMore }
            let candidates = parts.indices.filter { used[$0] < parts[$0].page.items.count }
            guard !isUnknown, let first = candidates.min(by: comesFirst) else { break }
            self.items.append(parts[first].page.items[used[first]])
            used[first] += 1
        }
        for (index, part) in parts.enumerated() where used[index] < part.page.items.count || part.page.hasMore {
            let cursor = used[index] > 0 ? part.page.cursors[used[index] - 1] : part.start.cursor
            self.next.append(NodeCursor.Start(part.start.node, cursor))
        }
    }
}
