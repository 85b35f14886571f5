/// The header fields of a head, in the order of the wire. Names are looked up without regard to the case of letters.
public struct HTTPFields: Equatable, Sendable {
    /// Every field line, repetitions included.
    public private(set) var all: [HTTPField]

    public init(_ all: [HTTPField] = []) {
        self.all = all
    }

    /// The value of the first field of that name.
    public subscript(_ name: String) -> String? {
        self.next(name, from: 0).map { self.all[$0].value }
    }

    /// The values of all fields of that name, in order.
    public func values(_ name: String) -> [String] {
        var values: [String] = []
        self.forEach(name) { values.append(self.all[$0].value) }
        return values
    }

    /// All fields of that name, in order and as they were received.
    package func fields(_ name: String) -> [HTTPField] {
        var fields: [HTTPField] = []
        self.forEach(name) { fields.append(self.all[$0]) }
        return fields
    }

    /// The first field of that name, and whether it is the only one: all that a field wants which may come once.
    package func only(_ name: String) -> FieldOccurrence {
        guard let index = self.next(name, from: 0) else { return FieldOccurrence(first: nil, isRepeated: false) }
        return FieldOccurrence(first: self.all[index].value, isRepeated: self.next(name, from: index + 1) != nil)
    }

    /// The elements of the comma-separated list that all fields of that name form together.
    ///
    /// Elements are trimmed, empty ones left out; a comma within a quoted string separates nothing (RFC 9110 §5.6.1).
    public func list(_ name: String) -> [String] {
        var elements: [String] = []
        self.forEach(name) { elements += Self.elements(of: self.all[$0].value) }
        return elements
    }

    /// Whether the list of that name holds `element`, without regard to the case of letters.
    public func list(_ name: String, contains element: String) -> Bool {
        var index = 0
        while let found = self.next(name, from: index) {
            let value = self.all[found].value
            if value.matchesIgnoringCase(element) { return true }
            if Self.elements(of: value).contains(where: { $0.matchesIgnoringCase(element) }) { return true }
            index = found + 1
        }
        return false
    }

    @inline(__always)
    private func forEach(_ name: String, _ body: (Int) -> Void) {
        var index = 0
        while let found = self.next(name, from: index) {
            body(found)
            index = found + 1
        }
    }

    /// Where the next field of that name is. Looked for in place: a copy of each field would count references.
    private func next(_ name: String, from start: Int) -> Int? {
        let fields = self.all.span
        let length = name.utf8.count
        for index in start..<fields.count {
            // Most names are of another length.
            guard fields[index].name.utf8.count == length else { continue }
            if fields[index].name.matchesIgnoringCase(name) { return index }
        }
        return nil
    }

    static func elements(of value: String) -> [String] {
        var scanner = FieldValueScanner(value)
        var elements: [String] = []
        while let element = scanner.listElement() { elements.append(element) }
        return elements
    }

    mutating func append(_ field: HTTPField) {
        // As many as most heads have, at once.
        if self.all.isEmpty { self.all.reserveCapacity(8) }
        self.all.append(field)
    }
}
