/// The header fields of a head, in the order of the wire. Names are looked up without regard to the case of letters.
public struct HTTPFields: Equatable, Sendable {
    /// Every field line, repetitions included.
    public private(set) var all: [HTTPField]

    public init(_ all: [HTTPField] = []) {
        self.all = all
    }

    /// The value of the first field of that name.
    public subscript(_ name: String) -> String? {
        self.all.first { $0.name.matchesIgnoringCase(name) }?.value
    }

    /// The values of all fields of that name, in order.
    public func values(_ name: String) -> [String] {
        var values: [String] = []
        for field in self.all where field.name.matchesIgnoringCase(name) { values.append(field.value) }
        return values
    }

    /// How many fields have that name.
    public func count(_ name: String) -> Int {
        var count = 0
        for field in self.all where field.name.matchesIgnoringCase(name) { count += 1 }
        return count
    }

    /// The elements of the comma-separated list that all fields of that name form together.
    ///
    /// Elements are trimmed, empty ones left out; a comma within a quoted string separates nothing (RFC 9110 §5.6.1).
    public func list(_ name: String) -> [String] {
        var elements: [String] = []
        for field in self.all where field.name.matchesIgnoringCase(name) { elements += Self.elements(of: field.value) }
        return elements
    }

    /// Whether the list of that name holds `element`, without regard to the case of letters.
    public func list(_ name: String, contains element: String) -> Bool {
        self.all.contains { field in
            field.name.matchesIgnoringCase(name)
                && (field.value.matchesIgnoringCase(element)
                    || Self.elements(of: field.value).contains { $0.matchesIgnoringCase(element) })
        }
    }

    static func elements(of value: String) -> [String] {
        var scanner = FieldValueScanner(value)
        var elements: [String] = []
        while let element = scanner.listElement() { elements.append(element) }
        return elements
    }

    mutating func append(_ field: HTTPField) {
        self.all.append(field)
    }
}
