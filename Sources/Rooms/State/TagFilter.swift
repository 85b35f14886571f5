import WireText

/// Which publications of a room a member gets, by their tags. Comparisons are those of Centrifugo's filters by tags; of
/// texts they compare bytes.
package indirect enum TagFilter: Sendable, Hashable {
    package enum Comparison: Sendable, Hashable {
        case equal([UInt8])
        /// Also without the tag.
        case notEqual([UInt8])
        /// A missing tag has the empty value.
        case oneOf([[UInt8]])
        case noneOf([[UInt8]])
        case exists
        case missing
        case begins([UInt8])
        case ends([UInt8])
        case contains([UInt8])
        /// Of two decimal numbers; nothing holds for a text that is none.
        case greater(DecimalText?)
        case greaterOrEqual(DecimalText?)
        case less(DecimalText?)
        case lessOrEqual(DecimalText?)
    }

    case tag(String, Comparison)
    case all([TagFilter])
    case any([TagFilter])
    case not(TagFilter)

    /// Comparisons, groups and values that one filter may have, together.
    static let partLimit = 256
    /// Bytes of its names and values.
    static let sizeLimit = 4096

    package func matches(_ tags: [Tag]) -> Bool {
        switch self {
        case .tag(let name, let comparison): comparison.holds(for: tags.first { $0.name == name }?.value)
        case .all(let filters): filters.allSatisfy { $0.matches(tags) }
        case .any(let filters): filters.contains { $0.matches(tags) }
        case .not(let filter): !filter.matches(tags)
        }
    }
}

extension TagFilter.Comparison {
    fileprivate func holds(for value: String?) -> Bool {
        switch self {
        case .equal(let text): return value?.utf8.elementsEqual(text) ?? false
        case .notEqual(let text): return !(value?.utf8.elementsEqual(text) ?? false)
        case .oneOf(let texts): return texts.contains { (value ?? "").utf8.elementsEqual($0) }
        case .noneOf(let texts): return !texts.contains { (value ?? "").utf8.elementsEqual($0) }
        case .exists: return value != nil
        case .missing: return value == nil
        case .begins(let text): return value?.utf8.starts(with: text) ?? false
        case .ends(let text): return value?.utf8.reversed().starts(with: text.reversed()) ?? false
        case .contains(let text): return value.map { Array($0.utf8).contains(text) } ?? false
        case .greater(let limit): return Self.compare(value, limit) { $0 > $1 }
        case .greaterOrEqual(let limit): return Self.compare(value, limit) { $0 >= $1 }
        case .less(let limit): return Self.compare(value, limit) { $0 < $1 }
        case .lessOrEqual(let limit): return Self.compare(value, limit) { $0 <= $1 }
        }
    }

    private static func compare(
        _ value: String?, _ limit: DecimalText?, _ holds: (DecimalText, DecimalText) -> Bool
    ) -> Bool {
        guard let limit, let number = value.flatMap({ DecimalText($0) }) else { return false }
        return holds(number, limit)
    }
}

// MARK: Reading

extension TagFilter {
    /// A filter as a client sends it (Centrifuge's `FilterNode`), not yet checked.
    package struct Node: Sendable, Hashable {
        package var operation = ""
        package var key = ""
        package var comparison = ""
        package var value = ""
        package var values: [String] = []
        package var nodes: [Node] = []

        package init() {}

        private static let numbers: FieldNumbers = [
            1: "op", 2: "key", 3: "cmp", 4: "val", 5: "vals", 6: "nodes",
        ]

        init<Fields: FieldReader>(_ fields: inout Fields) throws(JSONSyntaxError) {
            var node = Self()
            try fields.readMessage(Self.numbers) { (name, value) throws(JSONSyntaxError) in
                switch name {
                case "op": node.operation = try value.readString()
                case "key": node.key = try value.readString()
                case "cmp": node.comparison = try value.readString()
                case "val": node.value = try value.readString()
                case "vals":
                    try value.readRepeated { (element) throws(JSONSyntaxError) in
                        node.values.append(try element.readString())
                    }
                case "nodes":
                    try value.readRepeated { (element) throws(JSONSyntaxError) in
                        node.nodes.append(try Node(&element))
                    }
                default: try value.skip()
                }
            }
            self = node
        }
    }

    /// - Throws: 107 for a filter that Centrifugo refuses, 106 for one above the limits.
    package init(_ node: Node) throws(CommandError) {
        var parts = 0
        var size = 0
        self = try Self.checked(node, &parts, &size)
    }

    private static func checked(_ node: Node, _ parts: inout Int, _ size: inout Int) throws(CommandError) -> TagFilter {
        parts += 1 + node.values.count
        size += node.values.reduce(node.key.utf8.count + node.value.utf8.count) { $0 + $1.utf8.count }
        guard parts <= Self.partLimit, size <= Self.sizeLimit else { throw .limitExceeded }
        switch node.operation {
        case "": return .tag(node.key, try Comparison(node))
        case "and", "or":
            guard !node.nodes.isEmpty else { throw .badRequest }
            var filters: [TagFilter] = []
            for inner in node.nodes { filters.append(try Self.checked(inner, &parts, &size)) }
            return node.operation == "and" ? .all(filters) : .any(filters)
        case "not":
            guard node.nodes.count == 1 else { throw .badRequest }
            return .not(try Self.checked(node.nodes[0], &parts, &size))
        default: throw .badRequest
        }
    }
}

extension RoomPolicy {
    /// The filter that a client asks for; `nil` if it asks for none.
    func filter(_ request: Command.SubscribeRequest) throws(CommandError) -> TagFilter? {
        guard let node = request.filter else { return nil }
        guard self.allowsFilters else { throw .badRequest }
        return try TagFilter(node)
    }
}

extension TagFilter.Comparison {
    fileprivate init(_ node: TagFilter.Node) throws(CommandError) {
        let (value, values) = (Array(node.value.utf8), node.values.map { Array($0.utf8) })
        switch node.comparison {
        case "eq": self = .equal(value)
        case "neq": self = .notEqual(value)
        case "in": self = .oneOf(values)
        case "nin": self = .noneOf(values)
        case "ex": self = .exists
        case "nex": self = .missing
        case "sw": self = .begins(value)
        case "ew": self = .ends(value)
        case "ct": self = .contains(value)
        case "gt": self = .greater(DecimalText(node.value))
        case "gte": self = .greaterOrEqual(DecimalText(node.value))
        case "lt": self = .less(DecimalText(node.value))
        case "lte": self = .lessOrEqual(DecimalText(node.value))
        default: throw .badRequest
        }
        let isComplete =
            switch self {
            case .exists, .missing: value.isEmpty && values.isEmpty
            case .oneOf, .noneOf: !node.key.isEmpty && value.isEmpty && !values.isEmpty
            default: !node.key.isEmpty && !value.isEmpty && values.isEmpty
            }
        guard isComplete else { throw .badRequest }
    }
}

/// A decimal number as text, without an exponent: `-12.50`. Compared exactly, whatever its length.
package struct DecimalText: Sendable, Hashable, Comparable {
    private static let longest = 200

    private let isNegative: Bool
    /// Digits without leading zeros, and after the point without trailing ones.
    private let whole: [UInt8]
    private let fraction: [UInt8]

    /// `nil` for other text, and above 200 bytes.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.longest else { return nil }
        var digits = Array(text.utf8)[...]
        let sign = digits.first
        if sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { digits = digits.dropFirst() }
        let pieces = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...2).contains(pieces.count),
            pieces.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        self.whole = Array(pieces[0].drop { $0 == 0x30 })
        var fraction = pieces.count > 1 ? Array(pieces[1]) : []
        while fraction.last == 0x30 { fraction.removeLast() }
        self.fraction = fraction
        self.isNegative = sign == UInt8(ascii: "-") && !(self.whole.isEmpty && fraction.isEmpty)
    }

    package static func < (left: Self, right: Self) -> Bool {
        guard left.isNegative == right.isNegative else { return left.isNegative }
        return left.isNegative ? right.isCloserToZero(than: left) : left.isCloserToZero(than: right)
    }

    private func isCloserToZero(than other: Self) -> Bool {
        guard self.whole.count == other.whole.count else { return self.whole.count < other.whole.count }
        guard self.whole == other.whole else { return self.whole.lexicographicallyPrecedes(other.whole) }
        return self.fraction.lexicographicallyPrecedes(other.fraction)
    }
}
