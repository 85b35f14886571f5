import ByteKernels
import WireText

/// Reads messages of Centrifuge's client protocol from one of its two encodings. Each message is declared once, by the
/// names of its fields; Protobuf's field numbers are looked up in the message's `FieldNumbers`.
protocol FieldReader {
    /// Calls `body` for each field of a message. `body` must read or skip the field's value.
    mutating func readMessage(
        _ numbers: FieldNumbers, _ body: (_ name: MemberName, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError)

    /// Calls `body` for each entry of a map from strings to messages.
    mutating func readEntry(_ body: (_ key: String, _ value: inout Self) throws(JSONSyntaxError) -> Void)
        throws(JSONSyntaxError)

    /// Calls `body` for the elements of a repeated field. Protobuf gives each element a field of its own.
    mutating func readRepeated(_ body: (_ element: inout Self) throws(JSONSyntaxError) -> Void) throws(JSONSyntaxError)

    mutating func readString() throws(JSONSyntaxError) -> String
    mutating func readBool() throws(JSONSyntaxError) -> Bool
    mutating func readUInt64() throws(JSONSyntaxError) -> UInt64
    mutating func readInt() throws(JSONSyntaxError) -> Int
    mutating func readPayload() throws(JSONSyntaxError) -> Payload
    mutating func skip() throws(JSONSyntaxError)
}

/// Names of a message's fields by their numbers in Protobuf.
typealias FieldNumbers = [UInt64: MemberName]

/// Content of a publication, or of another field with free content.
package enum Payload: Sendable, Hashable {
    /// A JSON value, as it was received; perhaps with blanks around it.
    case json([UInt8])
    /// Bytes that are no JSON. A client that speaks JSON gets them as `{"b64data":"…"}`.
    case binary([UInt8])

    package var bytes: [UInt8] {
        switch self {
        case .json(let bytes), .binary(let bytes): bytes
        }
    }

    package var isEmpty: Bool { self.bytes.isEmpty }

    /// - Parameter bytes: JSON if they are a valid value of at most 64 levels; binary otherwise.
    package init(detecting bytes: [UInt8]) {
        self = Self.json(text: bytes) ?? .binary(bytes)
    }

    /// `nil` unless the bytes are one JSON value in UTF-8.
    package static func json(text bytes: [UInt8]) -> Payload? {
        guard bytes.isValidUTF8 else { return nil }
        var reader = JSONReader(bytes)
        guard (try? reader.skipValue()) != nil, reader.isAtEnd() else { return nil }
        return .json(bytes)
    }
}

/// JSON: a message is an object, a map too, and free content is a value of any kind.
struct JSONFields: FieldReader {
    private(set) var reader: JSONReader

    init(_ reader: JSONReader) {
        self.reader = reader
    }

    mutating func readMessage(
        _ numbers: FieldNumbers, _ body: (_ name: MemberName, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        try self.readMembers(body)
    }

    mutating func readEntry(
        _ body: (_ key: String, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        try self.readMembers { (name, value) throws(JSONSyntaxError) in try body(name.text, &value) }
    }

    private mutating func readMembers(
        _ body: (_ name: MemberName, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        guard !self.reader.skipNull() else { return }
        var reader = self.reader
        try reader.readObject { (name, value) throws(JSONSyntaxError) in
            var fields = Self(value)
            // As in Go's decoder, null leaves a field at its default. Free content may be null, too.
            if name == "data" || !fields.reader.skipNull() { try body(name, &fields) }
            value = fields.reader
        }
        self.reader = reader
    }

    mutating func readRepeated(_ body: (_ element: inout Self) throws(JSONSyntaxError) -> Void) throws(JSONSyntaxError)
    {
        var reader = self.reader
        try reader.readArray { (element) throws(JSONSyntaxError) in
            var fields = Self(element)
            try body(&fields)
            element = fields.reader
        }
        self.reader = reader
    }

    mutating func readString() throws(JSONSyntaxError) -> String { try self.reader.readString() }
    mutating func readBool() throws(JSONSyntaxError) -> Bool { try self.reader.readBool() }
    mutating func readUInt64() throws(JSONSyntaxError) -> UInt64 { try self.reader.readUInt64() }
    mutating func readInt() throws(JSONSyntaxError) -> Int { try self.reader.readInt() }
    mutating func readPayload() throws(JSONSyntaxError) -> Payload { .json(try self.reader.readRaw()) }
    mutating func skip() throws(JSONSyntaxError) { try self.reader.skipValue() }
}

/// Protobuf (proto3): only varints and length-delimited fields occur in the protocol; others are skipped.
struct ProtobufFields: FieldReader {
    private static let maximumDepth = 24

    private let bytes: [UInt8]
    private var offset: Int
    private var end: Int
    private var depth = 0
    /// Of the field that is being read.
    private var wireType: UInt64 = 2

    init(_ bytes: [UInt8], in range: Range<Int>? = nil) {
        self.bytes = bytes
        self.offset = range?.lowerBound ?? 0
        self.end = range?.upperBound ?? bytes.count
    }

    /// Reads the fields of the value at the current position. At depth 0 the message is all bytes, below it has a length.
    mutating func readMessage(
        _ numbers: FieldNumbers, _ body: (_ name: MemberName, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        guard self.depth < Self.maximumDepth else { throw self.error("more than \(Self.maximumDepth) nested messages") }
        let outerEnd = self.end
        if self.depth > 0 {
            let range = try self.readLength()
            (self.offset, self.end) = (range.lowerBound, range.upperBound)
        }
        self.depth += 1
        while self.offset < self.end {
            let tag = try self.readVarint()
            self.wireType = tag & 7
            if let name = numbers[tag >> 3] { try body(name, &self) } else { try self.skip() }
        }
        self.depth -= 1
        self.end = outerEnd
    }

    mutating func readEntry(
        _ body: (_ key: String, _ value: inout Self) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        // A map is a repeated message of a key and a value, which may come in any order.
        let range = try self.readLength()
        var key = ""
        var entry = ProtobufFields(self.bytes, in: range)
        var value: Range<Int>?
        while entry.offset < entry.end {
            let tag = try entry.readVarint()
            entry.wireType = tag & 7
            switch tag >> 3 {
            case 1: key = try entry.readString()
            case 2:
                let start = entry.offset
                try entry.skip()
                value = start..<entry.offset
            default: try entry.skip()
            }
        }
        // A missing value is an empty message.
        var fields = value.map { ProtobufFields(self.bytes, in: $0) } ?? ProtobufFields([0])
        fields.depth = self.depth
        try body(key, &fields)
        self.offset = range.upperBound
    }

    mutating func readRepeated(_ body: (_ element: inout Self) throws(JSONSyntaxError) -> Void) throws(JSONSyntaxError)
    {
        try body(&self)
    }

    mutating func readString() throws(JSONSyntaxError) -> String {
        let content = Array(self.bytes[try self.readLength()])
        guard content.isValidUTF8 else { throw self.error("a string that is not UTF-8") }
        return String(decoding: content, as: UTF8.self)
    }

    mutating func readBool() throws(JSONSyntaxError) -> Bool { try self.readUInt64() != 0 }

    mutating func readUInt64() throws(JSONSyntaxError) -> UInt64 {
        guard self.wireType == 0 else { throw self.error("a number with wire type \(self.wireType)") }
        return try self.readVarint()
    }

    mutating func readInt() throws(JSONSyntaxError) -> Int { Int(Int64(bitPattern: try self.readUInt64())) }

    mutating func readPayload() throws(JSONSyntaxError) -> Payload { Payload(detecting: try self.readBytes()) }

    mutating func readBytes() throws(JSONSyntaxError) -> [UInt8] { Array(self.bytes[try self.readLength()]) }

    mutating func skip() throws(JSONSyntaxError) {
        switch self.wireType {
        case 0: _ = try self.readVarint()
        case 1: try self.advance(8)
        case 2: _ = try self.readLength()
        case 5: try self.advance(4)
        default: throw self.error("wire type \(self.wireType)")
        }
    }

    /// Reads the length of a field and skips its content.
    mutating func readLength() throws(JSONSyntaxError) -> Range<Int> {
        guard self.wireType == 2 else { throw self.error("a value with wire type \(self.wireType)") }
        let length = try self.readVarint()
        let start = self.offset
        try self.advance(length)
        return start..<self.offset
    }

    private mutating func advance(_ count: UInt64) throws(JSONSyntaxError) {
        guard count <= UInt64(self.end - self.offset) else { throw self.error("a value beyond the end") }
        self.offset += Int(count)
    }

    private mutating func readVarint() throws(JSONSyntaxError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: 0 as UInt64, to: 64, by: 7) {
            guard self.offset < self.end else { throw self.error("a number beyond the end") }
            let byte = self.bytes[self.offset]
            self.offset += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw self.error("a number of more than ten bytes")
    }

    private func error(_ text: String) -> JSONSyntaxError { JSONSyntaxError(.invalid(text), at: self.offset) }
}
