/// A message that a bus has delivered, as far as a client that only asks and listens needs it.
///
/// - Source: D-Bus specification, "Message Protocol".
package struct BusMessage: Sendable {
    package enum Kind: Equatable, Sendable {
        case call
        case reply
        case error
        case signal
        /// Of a later version of the protocol.
        case other
    }

    /// Largest message that is accepted, in bytes. The protocol's own limit is 128 MiB.
    package static let sizeLimit = 256 << 10
    /// Length of the fixed header, which has the lengths of the other parts.
    static let fixedLength = 16

    package let kind: Kind
    /// Serial number of the call that it answers; `nil` for a call and for a signal.
    package private(set) var answers: UInt32?
    /// Interface and name of a signal.
    package private(set) var interface = ""
    package private(set) var member = ""
    /// Types of the values in the body, such as `ao`.
    private var signature = ""
    private let body: BusReader

    /// Length of the message that begins with `fixedLength` bytes.
    /// - Throws: for another version of the protocol, and above `sizeLimit`.
    static func length(_ fixed: [UInt8]) throws(BusViolation) -> Int {
        var reader = try BusReader(message: fixed)
        try reader.skip(4)
        let body = Int(try reader.word())
        try reader.skip(4)
        let fields = Int(try reader.word())
        // The body begins at a multiple of eight bytes.
        let length = (Self.fixedLength + fields + 7) & ~7 + body
        guard length <= Self.sizeLimit else { throw BusViolation.tooLong }
        return length
    }

    /// - Parameter bytes: a whole message.
    package init(_ bytes: [UInt8]) throws(BusViolation) {
        var reader = try BusReader(message: bytes)
        try reader.skip(1)
        self.kind =
            switch try reader.byte() {
            case 1: .call
            case 2: .reply
            case 3: .error
            case 4: .signal
            default: .other
            }
        try reader.skip(2)
        let length = Int(try reader.word())
        try reader.skip(4)
        let end = Int(try reader.word()) + Self.fixedLength
        var fields = Fields()
        while reader.offset < end { try fields.readNext(&reader) }
        guard reader.offset == end else { throw BusViolation.malformed }
        try reader.align(8)
        guard bytes.count - reader.offset == length else { throw BusViolation.malformed }
        self.body = reader
        (self.answers, self.interface, self.member) = (fields.answers, fields.interface, fields.member)
        self.signature = fields.signature
    }

    private struct Fields {
        var answers: UInt32?
        var interface = ""
        var member = ""
        var signature = ""

        mutating func readNext(_ reader: inout BusReader) throws(BusViolation) {
            try reader.align(8)
            let code = try reader.byte()
            switch (code, try reader.signature()) {
            case (2, "s"): self.interface = try reader.string()
            case (3, "s"): self.member = try reader.string()
            case (5, "u"): self.answers = try reader.word()
            case (8, "g"): self.signature = try reader.signature()
            // Unknown fields must be ignored.
            case (_, let type): try reader.skip(type: type)
            }
        }
    }

    // MARK: Bodies of one value

    /// - Parameter limit: further paths are not read.
    package func objectPaths(limit: Int) throws(BusViolation) -> [String] {
        var reader = try self.reader(of: "ao")
        let end = Int(try reader.word()) + reader.offset
        var paths: [String] = []
        while reader.offset < end, paths.count < limit { paths.append(try reader.string()) }
        return paths
    }

    /// A variant that holds a number.
    package func number() throws(BusViolation) -> UInt32 {
        var reader = try self.reader(of: "v")
        guard try reader.signature() == "u" else { throw BusViolation.malformed }
        return try reader.word()
    }

    /// A variant that holds a text.
    package func text() throws(BusViolation) -> String {
        var reader = try self.reader(of: "v")
        guard try reader.signature() == "s" else { throw BusViolation.malformed }
        return try reader.string()
    }

    private func reader(of signature: String) throws(BusViolation) -> BusReader {
        guard self.signature == signature else { throw BusViolation.malformed }
        return self.body
    }
}

/// Why a bus cannot be listened to any more.
package enum BusViolation: Error, Equatable, Sendable {
    /// A message that breaks the specification, or has another type than was asked for.
    case malformed
    /// A message, or the authentication, above our limit.
    case tooLong
    /// The bus does not let this user in.
    case refused
}

/// Reads values in their order, each aligned to its size (D-Bus specification, "Marshaling").
package struct BusReader: Sendable {
    private let bytes: [UInt8]
    package private(set) var offset = 0
    private let isBigEndian: Bool

    package init(_ bytes: [UInt8], isBigEndian: Bool) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
    }

    /// At the beginning of a message, which names its byte order and its version.
    init(message bytes: [UInt8]) throws(BusViolation) {
        guard bytes.count >= BusMessage.fixedLength, bytes[3] == 1 else { throw BusViolation.malformed }
        switch bytes[0] {
        case UInt8(ascii: "l"): self.init(bytes, isBigEndian: false)
        case UInt8(ascii: "B"): self.init(bytes, isBigEndian: true)
        default: throw BusViolation.malformed
        }
    }

    package mutating func skip(_ count: Int) throws(BusViolation) {
        guard count >= 0, count <= self.bytes.count - self.offset else { throw BusViolation.malformed }
        self.offset += count
    }

    /// - Parameter size: a power of two.
    package mutating func align(_ size: Int) throws(BusViolation) {
        try self.skip(-self.offset & (size - 1))
    }

    package mutating func byte() throws(BusViolation) -> UInt8 {
        try self.skip(1)
        return self.bytes[self.offset - 1]
    }

    package mutating func word() throws(BusViolation) -> UInt32 {
        try self.align(4)
        try self.skip(4)
        let bytes = self.bytes[(self.offset - 4)..<self.offset]
        let value = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return self.isBigEndian ? value : value.byteSwapped
    }

    /// A text or an object path.
    package mutating func string() throws(BusViolation) -> String { try self.text(Int(self.word())) }

    package mutating func signature() throws(BusViolation) -> String { try self.text(Int(self.byte())) }

    private mutating func text(_ length: Int) throws(BusViolation) -> String {
        let start = self.offset
        try self.skip(length)
        guard try self.byte() == 0, let text = String(validating: self.bytes[start..<start + length], as: UTF8.self)
        else { throw BusViolation.malformed }
        return text
    }

    /// Passes over a value of a type that holds no others.
    mutating func skip(type: String) throws(BusViolation) {
        switch type {
        case "y": try self.skip(1)
        case "n", "q": try self.skip(aligned: 2)
        case "b", "i", "u", "h": try self.skip(aligned: 4)
        case "x", "t", "d": try self.skip(aligned: 8)
        case "s", "o": _ = try self.string()
        case "g": _ = try self.signature()
        default: throw BusViolation.malformed
        }
    }

    private mutating func skip(aligned size: Int) throws(BusViolation) {
        try self.align(size)
        try self.skip(size)
    }
}

/// A call of a method whose arguments are texts. It starts no service.
package struct BusCall: Equatable, Sendable {
    private static let noReplyExpected: UInt8 = 1
    private static let noAutoStart: UInt8 = 2

    package var destination: String
    package var path: String
    package var interface: String
    package var member: String
    package var arguments: [String]
    package var wantsReply = true

    package init(destination: String, path: String, interface: String, member: String, arguments: [String] = []) {
        self.destination = destination
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
    }

    /// In the byte order of little-endian machines.
    package func encoded(serial: UInt32) -> [UInt8] {
        var body = BusWriter()
        for argument in self.arguments { body.append(string: argument) }
        var fields = BusWriter()
        fields.append(field: 1, "o", self.path)
        fields.append(field: 2, "s", self.interface)
        fields.append(field: 3, "s", self.member)
        fields.append(field: 6, "s", self.destination)
        if !self.arguments.isEmpty {
            fields.append(field: 8, signature: String(repeating: "s", count: self.arguments.count))
        }
        var message = BusWriter()
        let flags = Self.noAutoStart | (self.wantsReply ? 0 : Self.noReplyExpected)
        message.bytes = [UInt8(ascii: "l"), 1, flags, 1]
        message.append(word: UInt32(body.bytes.count))
        message.append(word: serial)
        message.append(word: UInt32(fields.bytes.count))
        // Both begin at multiples of eight bytes, so that they are aligned by themselves.
        message.bytes += fields.bytes
        message.align(8)
        return message.bytes + body.bytes
    }
}

private struct BusWriter {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
        self.bytes += [UInt8](repeating: 0, count: -self.bytes.count & (size - 1))
    }

    mutating func append(word: UInt32) {
        self.align(4)
        self.bytes += (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }

    mutating func append(string: String) {
        self.append(word: UInt32(string.utf8.count))
        self.bytes += Array(string.utf8) + [0]
    }

    /// A header field: a code, and a variant.
    mutating func append(field code: UInt8, _ type: Unicode.Scalar, _ value: String) {
        self.align(8)
        self.bytes += [code, 1, UInt8(ascii: type), 0]
        self.append(string: value)
    }

    mutating func append(field code: UInt8, signature: String) {
        self.align(8)
        self.bytes += [code, 1, UInt8(ascii: "g"), 0, UInt8(truncatingIfNeeded: signature.utf8.count)]
        self.bytes += Array(signature.utf8) + [0]
    }
}
