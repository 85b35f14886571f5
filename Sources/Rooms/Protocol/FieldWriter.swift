import WireText

/// Writes messages of Centrifuge's client protocol in one of its two encodings. A field with its default value is left
/// out, as the protocol's clients expect in both; but some fields JSON always has.
protocol FieldWriter {
    static var encoding: ProtocolEncoding { get }
    mutating func write(_ name: String, _ number: UInt64, _ value: String, inJSON presence: JSONPresence)
    mutating func write(_ name: String, _ number: UInt64, _ value: UInt64, inJSON presence: JSONPresence)
    mutating func write(_ name: String, _ number: UInt64, _ value: Bool)
    mutating func write(_ name: String, _ number: UInt64, _ value: Payload?)
    /// Content of a publication, or a difference to the one before: a string in JSON, else bytes.
    mutating func write(_ name: String, _ number: UInt64, content: [UInt8])
    /// A message, even an empty one.
    mutating func write(_ name: String, _ number: UInt64, message body: (inout Self) -> Void)
    /// A list of messages.
    mutating func write<Element>(
        _ name: String, _ number: UInt64, list: [Element], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void)
    /// A map from strings to messages.
    mutating func write<Element>(
        _ name: String, _ number: UInt64, map: [(key: String, value: Element)], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void)
    /// A map from strings to strings; nothing for an empty one.
    mutating func write(_ name: String, _ number: UInt64, tags: [Tag])
}

/// Whether a field with its default value, or an empty list or map, is written in JSON.
enum JSONPresence {
    case ifSet
    case always
}

extension FieldWriter {
    mutating func write(_ name: String, _ number: UInt64, _ value: String) {
        self.write(name, number, value, inJSON: .ifSet)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: UInt64) {
        self.write(name, number, value, inJSON: .ifSet)
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, list: [Element], _ body: (Element, inout Self) -> Void
    ) {
        self.write(name, number, list: list, inJSON: .ifSet, body)
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, map: [(key: String, value: Element)], _ body: (Element, inout Self) -> Void
    ) {
        self.write(name, number, map: map, inJSON: .ifSet, body)
    }
}

/// A label of a publication.
package struct Tag: Sendable, Hashable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension Payload {
    /// As a client reads it: a JSON value on one line, or bytes. Bytes that are no JSON are an object with them.
    package func content(in encoding: ProtocolEncoding) -> [UInt8] {
        switch (self, encoding) {
        case (.json(let bytes), .protobuf), (.binary(let bytes), .protobuf): bytes
        case (.json(let bytes), .json): JSONReader.onOneLine(bytes)
        case (.binary(let bytes), .json): Array(#"{"b64data":"\#(Base64.encoded(bytes))"}"#.utf8)
        }
    }

    /// Then its content is the same in both encodings.
    package var isJSONOnOneLine: Bool {
        if case .json(let bytes) = self { JSONReader.isOnOneLine(bytes) } else { false }
    }
}

struct JSONFieldWriter: FieldWriter {
    static let encoding = ProtocolEncoding.json
    private(set) var bytes: [UInt8]
    private var isFirst = true

    /// Begins an object; `finished` ends it.
    init(appendingTo bytes: [UInt8] = []) {
        self.bytes = bytes
        self.bytes.append(UInt8(ascii: "{"))
    }

    mutating func finish() -> [UInt8] {
        self.bytes.append(UInt8(ascii: "}"))
        return self.bytes
    }

    private mutating func begin(_ name: String) {
        if !self.isFirst { self.bytes.append(UInt8(ascii: ",")) }
        self.isFirst = false
        self.bytes.append(UInt8(ascii: "\""))
        self.bytes.append(contentsOf: name.utf8)
        self.bytes.append(contentsOf: "\":".utf8)
    }

    private mutating func writeObject(_ body: (inout Self) -> Void) {
        self.bytes.append(UInt8(ascii: "{"))
        self.isFirst = true
        body(&self)
        self.bytes.append(UInt8(ascii: "}"))
        self.isFirst = false
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: String, inJSON presence: JSONPresence) {
        guard !value.isEmpty || presence == .always else { return }
        self.begin(name)
        self.bytes.append(jsonString: value)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: UInt64, inJSON presence: JSONPresence) {
        guard value != 0 || presence == .always else { return }
        self.begin(name)
        self.bytes.append(contentsOf: String(value).utf8)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: Bool) {
        guard value else { return }
        self.begin(name)
        self.bytes.append(contentsOf: "true".utf8)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: Payload?) {
        guard let value else { return }
        self.begin(name)
        self.bytes.append(contentsOf: value.content(in: .json))
    }

    mutating func write(_ name: String, _ number: UInt64, content: [UInt8]) {
        self.begin(name)
        self.bytes.append(jsonString: content)
    }

    mutating func write(_ name: String, _ number: UInt64, message body: (inout Self) -> Void) {
        self.begin(name)
        self.writeObject(body)
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, list: [Element], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void
    ) {
        guard !list.isEmpty || presence == .always else { return }
        self.begin(name)
        self.bytes.append(UInt8(ascii: "["))
        for (index, element) in list.enumerated() {
            if index > 0 { self.bytes.append(UInt8(ascii: ",")) }
            self.writeObject { body(element, &$0) }
        }
        self.bytes.append(UInt8(ascii: "]"))
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, map: [(key: String, value: Element)], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void
    ) {
        guard !map.isEmpty || presence == .always else { return }
        self.begin(name)
        self.writeObject { writer in
            for (key, value) in map {
                writer.beginEntry(key)
                writer.writeObject { body(value, &$0) }
            }
        }
    }

    mutating func write(_ name: String, _ number: UInt64, tags: [Tag]) {
        guard !tags.isEmpty else { return }
        self.begin(name)
        self.writeObject { writer in
            for tag in tags {
                writer.beginEntry(tag.name)
                writer.bytes.append(jsonString: tag.value)
            }
        }
    }

    private mutating func beginEntry(_ key: String) {
        if !self.isFirst { self.bytes.append(UInt8(ascii: ",")) }
        self.isFirst = false
        self.bytes.append(jsonString: key)
        self.bytes.append(UInt8(ascii: ":"))
    }
}

struct ProtobufFieldWriter: FieldWriter {
    static let encoding = ProtocolEncoding.protobuf
    private(set) var bytes: [UInt8] = []

    mutating func write(_ name: String, _ number: UInt64, _ value: String, inJSON presence: JSONPresence) {
        guard !value.isEmpty else { return }
        self.append(number, Array(value.utf8))
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: UInt64, inJSON presence: JSONPresence) {
        guard value != 0 else { return }
        self.bytes.append(varint: number << 3)
        self.bytes.append(varint: value)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: Bool) {
        self.write(name, number, value ? 1 as UInt64 : 0)
    }

    mutating func write(_ name: String, _ number: UInt64, _ value: Payload?) {
        guard let value, !value.isEmpty else { return }
        self.append(number, value.bytes)
    }

    mutating func write(_ name: String, _ number: UInt64, content: [UInt8]) {
        guard !content.isEmpty else { return }
        self.append(number, content)
    }

    mutating func write(_ name: String, _ number: UInt64, message body: (inout Self) -> Void) {
        var inner = Self()
        body(&inner)
        self.append(number, inner.bytes)
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, list: [Element], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void
    ) {
        for element in list { self.write(name, number) { body(element, &$0) } }
    }

    mutating func write<Element>(
        _ name: String, _ number: UInt64, map: [(key: String, value: Element)], inJSON presence: JSONPresence,
        _ body: (Element, inout Self) -> Void
    ) {
        for (key, value) in map {
            self.write(name, number) { entry in
                entry.write("key", 1, key)
                entry.write("value", 2) { body(value, &$0) }
            }
        }
    }

    mutating func write(_ name: String, _ number: UInt64, tags: [Tag]) {
        for tag in tags {
            self.write(name, number) { entry in
                entry.write("key", 1, tag.name)
                entry.write("value", 2, tag.value)
            }
        }
    }

    private mutating func append(_ number: UInt64, _ content: [UInt8]) {
        self.bytes.append(varint: number << 3 | 2)
        self.bytes.append(varint: UInt64(content.count))
        self.bytes.append(contentsOf: content)
    }
}

extension [UInt8] {
    /// Appends a base-128 number, the lowest seven bits first.
    mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            self.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        self.append(UInt8(rest))
    }
}
