import ByteKernels

/// The header fields of a head in wire order. Lookup by name is case-insensitive.
public struct FieldLines: Hashable, Sendable {
    /// Every field line, repetitions included.
    public private(set) var all: [FieldLine]

    public init(_ all: [FieldLine] = []) {
        self.all = all
    }

    /// The value of the first field of that name.
    public subscript(_ name: String) -> String? {
        self.next(name, from: 0).map { self.all[$0].value }
    }

    public func values(_ name: String) -> [String] {
        var values: [String] = []
        self.forEach(name) { values.append(self.all[$0].value) }
        return values
    }

    package func fields(_ name: String) -> [FieldLine] {
        var fields: [FieldLine] = []
        self.forEach(name) { fields.append(self.all[$0]) }
        return fields
    }

    /// The first field of that name, and whether it is repeated; for fields that must occur at most once.
    package func single(_ name: String) -> FieldOccurrence {
        guard let index = self.next(name, from: 0) else { return FieldOccurrence(first: nil, isRepeated: false) }
        return FieldOccurrence(first: self.all[index].value, isRepeated: self.next(name, from: index + 1) != nil)
    }

    /// The elements of the comma-separated list in all fields of that name.
    ///
    /// Elements are trimmed, and empty ones left out; commas in quoted strings do not separate (RFC 9110 §5.6.1).
    public func list(_ name: String) -> [String] {
        var elements: [String] = []
        self.forEach(name) { elements += Self.elements(of: self.all[$0].value) }
        return elements
    }

    /// Whether the list of that name contains `element`, case-insensitive.
    public func list(_ name: String, contains element: String) -> Bool {
        var index = 0
        while let found = self.next(name, from: index) {
            let value = self.all[found].value
            if value.matchesIgnoringCase(element) { return true }
            if Self.mayHaveSeveralElements(value),
                Self.elements(of: value).contains(where: { $0.matchesIgnoringCase(element) })
            {
                return true
            }
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

    /// The index of the next field of that name. Searches in place, to avoid reference counting for copies of fields.
    private func next(_ name: String, from start: Int) -> Int? {
        let fields = self.all.span
        let length = FieldLine.length(of: name)
        for index in start..<fields.count where fields[index].nameLength == length {
            if fields[index].name.matchesIgnoringCase(name) { return index }
        }
        return nil
    }

    /// Whether the value is not simply a token, as most are.
    private static func mayHaveSeveralElements(_ value: String) -> Bool {
        let bytes = value.utf8.span
        for index in bytes.indices where !bytes[index].isTokenCharacter { return true }
        return false
    }

    private static func elements(of value: String) -> [String] {
        var scanner = FieldValueScanner(value)
        var elements: [String] = []
        while let element = scanner.listElement() { elements.append(element) }
        return elements
    }

    package mutating func append(_ field: FieldLine) {
        // Enough for most heads.
        if self.all.isEmpty { self.all.reserveCapacity(8) }
        self.all.append(field)
    }

    /// Appends text to the value of the last field, after a space (RFC 9112 §5.2).
    mutating func extendLast(_ text: String) {
        guard let last = self.all.popLast() else { return }
        let value = last.value.isEmpty || text.isEmpty ? last.value + text : last.value + " " + text
        self.all.append(FieldLine(last.name, value))
    }
}

extension FieldLines: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { self.all.count }

    public subscript(index: Int) -> FieldLine { self.all[index] }
}

/// A header field line.
public struct FieldLine: Hashable, Sendable {
    /// As received; compare without regard to case.
    public let name: String
    /// Without surrounding whitespace. Received bytes that are not valid UTF-8 are decoded as ISO-8859-1.
    public let value: String
    /// Whether the value was received as bytes that are not valid UTF-8 (obs-text of RFC 9110 §5.5). Each character stands
    /// for one byte then, so that the value can be forwarded unchanged.
    private let isLatin1: Bool
    /// Most names differ in length: comparing it first makes lookups fast.
    fileprivate let nameLength: UInt8

    /// Does not validate; see `isWellFormed`.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
        self.isLatin1 = false
        self.nameLength = Self.length(of: name)
    }

    package init(_ name: String, received bytes: RawSpan) {
        self.name = name
        self.value = String(tolerant: bytes)
        // Decoding ISO-8859-1 turns every byte above ASCII into two, so the string is longer than the bytes.
        self.isLatin1 = self.value.utf8.count != bytes.byteCount
        self.nameLength = Self.length(of: name)
    }

    /// Whether the name is a token, and the value has no control characters and no surrounding whitespace (RFC 9110
    /// §5.5).
    public var isWellFormed: Bool {
        guard self.name.isToken, !self.value.utf8.contains(where: \.isControl) else { return false }
        let isPadded = [self.value.utf8.first, self.value.utf8.last].contains { $0?.isBlank == true }
        return !isPadded
    }

    /// Bytes of a name; longer ones count as 255.
    fileprivate static func length(of name: String) -> UInt8 { UInt8(clamping: name.utf8.count) }

    /// Whether this is the name, in any case.
    package func isNamed(_ name: String) -> Bool {
        self.nameLength == Self.length(of: name) && self.name.matchesIgnoringCase(name)
    }

    fileprivate func append(to head: inout [UInt8]) {
        unsafe head.append(self.name.utf8.span.bytes)
        head.append(UInt8(ascii: ":"))
        head.append(UInt8(ascii: " "))
        if self.isLatin1 {
            head.append(contentsOf: self.value.unicodeScalars.lazy.map { UInt8(truncatingIfNeeded: $0.value) })
        } else {
            unsafe head.append(self.value.utf8.span.bytes)
        }
        head.append(UInt8(ascii: "\r"))
        head.append(UInt8(ascii: "\n"))
    }
}

/// Writes a message head (RFC 9112 §2.1). Checks nothing: a start line and fields from outside are validated before.
package struct HeadWriter {
    private var bytes: [UInt8]

    /// - Parameter capacity: bytes that most heads of this kind need.
    package init(method: String, target: String, capacity: Int = 256) {
        self.init(capacity)
        self.add(method, " ", target, " HTTP/1.1\r\n")
    }

    package init(status: Int, reason: String, capacity: Int = 256) {
        self.init(capacity)
        self.add("HTTP/1.1 ", String(status), " ", reason)
        self.add("\r\n")
    }

    private init(_ capacity: Int) {
        self.bytes = []
        self.bytes.reserveCapacity(capacity)
    }

    private mutating func add(_ first: String, _ second: String = "", _ third: String = "", _ fourth: String = "") {
        unsafe self.bytes.append(first.utf8.span.bytes)
        unsafe self.bytes.append(second.utf8.span.bytes)
        unsafe self.bytes.append(third.utf8.span.bytes)
        unsafe self.bytes.append(fourth.utf8.span.bytes)
    }

    package mutating func add(_ field: FieldLine) { field.append(to: &self.bytes) }

    package mutating func add(_ name: String, _ value: String) { self.add(name, ": ", value, "\r\n") }

    /// The head with the empty line at its end.
    package consuming func finished() -> [UInt8] {
        self.bytes.append(contentsOf: "\r\n".utf8)
        return self.bytes
    }
}

/// The first value of a field, and whether the field is repeated.
package struct FieldOccurrence {
    /// `nil` if the field is absent.
    package let first: String?
    package let isRepeated: Bool

    package var occursOnce: Bool { self.first != nil && !self.isRepeated }
}
