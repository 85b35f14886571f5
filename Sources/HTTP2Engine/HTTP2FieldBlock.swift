/// The fields of one HTTP/2 message head or trailer section in their order, pseudo-header fields included (RFC 9113 §8.2,
/// §8.3). All bytes are in one array.
package struct HTTP2FieldBlock: Sendable, Equatable {
    private struct Field: Sendable, Equatable {
        var start: Int
        var nameCount: Int
        var valueCount: Int
        /// Never put into a compression table, here or further on (RFC 7541 §7.1.3).
        var isSensitive: Bool
    }

    package private(set) var bytes: [UInt8] = []
    private var fields: [Field] = []

    package init() {}

    /// As `append` of each; for literals.
    package init(_ pairs: [(name: String, value: String)]) {
        for (name, value) in pairs { self.append(name: name, value: value) }
    }

    package var count: Int { self.fields.count }
    package var isEmpty: Bool { self.fields.isEmpty }

    /// Size as SETTINGS_MAX_HEADER_LIST_SIZE counts it: name, value and 32 bytes for each field (RFC 9113 §6.5.2).
    package var listSize: Int { self.bytes.count + 32 * self.fields.count }

    /// Appends a field. Letters of the name become lower case, as HTTP/2 demands; the value is taken as it is.
    package mutating func append(name: String, value: String, isSensitive: Bool = false) {
        self.append(name: name.utf8.span, value: value.utf8.span, isSensitive: isSensitive)
    }

    /// - Parameter limit: largest `listSize` of the block with the field.
    /// - Returns: whether the field was appended.
    @discardableResult
    package mutating func append(
        name: Span<UInt8>, value: Span<UInt8>, isSensitive: Bool = false, limit: Int = .max
    ) -> Bool {
        guard self.listSize + name.count + value.count + 32 <= limit else { return false }
        // Enough for most heads.
        if self.fields.isEmpty {
            self.bytes.reserveCapacity(512)
            self.fields.reserveCapacity(12)
        }
        let start = self.bytes.count
        self.bytes.append(copying: name)
        for index in name.indices where name[index] >= 0x41 && name[index] <= 0x5A {
            self.bytes[start + index] |= 0x20
        }
        self.bytes.append(copying: value)
        self.fields.append(
            Field(start: start, nameCount: name.count, valueCount: value.count, isSensitive: isSensitive))
        return true
    }

    /// Calls `body` with each field, in order.
    package func readFields(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        let bytes = self.bytes.span
        for field in self.fields {
            let end = field.start + field.nameCount
            body(bytes.extracting(field.start..<end), bytes.extracting(end..<end + field.valueCount))
        }
    }

    package func name(at index: Int) -> ArraySlice<UInt8> {
        let field = self.fields[index]
        return self.bytes[field.start..<field.start + field.nameCount]
    }

    package func value(at index: Int) -> ArraySlice<UInt8> {
        let field = self.fields[index]
        let start = field.start + field.nameCount
        return self.bytes[start..<start + field.valueCount]
    }

    package func isSensitive(at index: Int) -> Bool { self.fields[index].isSensitive }

    /// Value of the first field with this lower-case name.
    package func first(_ name: String) -> ArraySlice<UInt8>? {
        let wanted = name.utf8.span
        let bytes = self.bytes.span
        for (index, field) in self.fields.enumerated() where field.nameCount == wanted.count {
            let isEqual = wanted.indices.allSatisfy { bytes[field.start + $0] == wanted[$0] }
            if isEqual { return self.value(at: index) }
        }
        return nil
    }

    /// The response's `:status`; `nil` in a request and in trailers.
    package var status: Int? {
        guard let value = self.first(":status"), value.count == 3 else { return nil }
        var status = 0
        for byte in value {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            status = status * 10 + Int(byte - 0x30)
        }
        return status
    }
}

extension HTTP2FieldBlock: CustomStringConvertible {
    package var description: String {
        self.fields.indices.map { index in
            "\(String(decoding: self.name(at: index), as: UTF8.self)): "
                + (self.isSensitive(at: index) ? "…" : String(decoding: self.value(at: index), as: UTF8.self))
        }.joined(separator: "\n")
    }
}
