import ByteKernels
import NIOCore
import WireText

/// Finds the end of response heads and validates their lines strictly.
///
/// Parsers that accept a bare LF, a folded line or whitespace before a colon disagree with stricter ones about where a
/// message ends. That enables response splitting, so nothing is accepted leniently (RFC 9112 §11.2).
package struct HeadScanner {
    private enum State {
        case statusLine
        case lineStart
        case fieldName
        case fieldValue
        /// After the CR that ends a line.
        case lineEnd
        /// After the CR of the empty line.
        case headEnd
    }

    private let limit: Int
    private var state = State.statusLine
    private var status = 0
    private static let versionPrefix = Array("HTTP/1.".utf8)

    /// Bytes of the current head consumed so far.
    package private(set) var count = 0

    /// - Parameter limit: largest head accepted, in bytes.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Scans trailers: field lines up to the empty line, without a status line.
    package init(trailersWithin limit: Int) {
        self.limit = limit
        self.state = .lineStart
    }

    /// Reads `bytes` from `offset` on.
    /// - Returns: the end of the head, and its status; `nil` if `bytes` ends within the head.
    package mutating func scan(_ bytes: RawSpan, from offset: Int) throws(ResponseViolation) -> (end: Int, status: Int)?
    {
        var index = offset
        while index < bytes.byteCount {
            guard self.count < self.limit else { throw .headTooLarge }
            let run = self.plainBytes(bytes, from: index, to: min(bytes.byteCount, index + self.limit - self.count))
            self.count += max(1, run)
            if run == 0, try self.consume(bytes[byte: index]) {
                defer { self = HeadScanner(limit: self.limit) }
                return (index + 1, self.status)
            }
            index += max(1, run)
        }
        return nil
    }

    /// Number of bytes from `start` that continue the current name or value.
    private func plainBytes(_ bytes: RawSpan, from start: Int, to end: Int) -> Int {
        var index = start
        switch self.state {
        case .fieldName: while index < end, bytes[byte: index].isTokenCharacter { index += 1 }
        case .fieldValue: while index < end, (0x20..<0x7F).contains(bytes[byte: index]) { index += 1 }
        case .statusLine, .lineStart, .lineEnd, .headEnd: break
        }
        return index - start
    }

    /// - Returns: whether the head is complete.
    private mutating func consume(_ byte: UInt8) throws(ResponseViolation) -> Bool {
        switch self.state {
        case .statusLine: try self.consumeStatusLine(byte)
        case .lineStart: try self.consumeLineStart(byte)
        case .fieldName: try self.consumeFieldName(byte)
        case .fieldValue: try self.consumeValue(byte)
        case .lineEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.state = .lineStart
        case .headEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            return true
        }
        return false
    }

    /// `HTTP/1.`, a digit, a space, three digits, then a reason phrase that is ignored.
    private mutating func consumeStatusLine(_ byte: UInt8) throws(ResponseViolation) {
        switch self.count {
        case 1...7:
            guard byte == Self.versionPrefix[self.count - 1] else { throw .statusLine }
        case 8:
            guard byte == 0x30 || byte == 0x31 else { throw .statusLine }
        case 9:
            guard byte == 0x20 else { throw .statusLine }
        case 10...12:
            guard (0x30...0x39).contains(byte) else { throw .statusLine }
            self.status = self.status * 10 + Int(byte - 0x30)
        case 13:
            guard self.status >= 100, byte == 0x20 || byte == 0x0D else { throw .statusLine }
            if byte == 0x0D { self.state = .lineEnd }
        default:
            try self.consumeValue(byte)
        }
    }

    private mutating func consumeLineStart(_ byte: UInt8) throws(ResponseViolation) {
        switch byte {
        case 0x0D: self.state = .headEnd
        case 0x0A: throw .bareLineBreak
        case 0x20, 0x09: throw .foldedField
        default:
            guard byte.isTokenCharacter else { throw .fieldName }
            self.state = .fieldName
        }
    }

    private mutating func consumeFieldName(_ byte: UInt8) throws(ResponseViolation) {
        if byte == 0x3A {
            self.state = .fieldValue
        } else if !byte.isTokenCharacter {
            throw .fieldName
        }
    }

    private mutating func consumeValue(_ byte: UInt8) throws(ResponseViolation) {
        switch byte {
        case 0x0D: self.state = .lineEnd
        case 0x0A: throw .bareLineBreak
        case 0x20..., 0x09:
            guard byte != 0x7F else { throw .fieldValue }
        default: throw .fieldValue
        }
    }
}

/// Splits a head or trailers that a `HeadScanner` has validated: every line has a name, a colon and an end.
struct HeaderLines {
    private let bytes: ByteBuffer

    /// - Parameter bytes: a complete head, or complete trailers, with the empty line.
    init(_ bytes: ByteBuffer) {
        self.bytes = bytes
    }

    /// - Parameter limit: most fields.
    func head(limit: Int) throws(ResponseViolation) -> ResponseHead {
        let span = self.bytes.readableBytesSpan
        guard span.byteCount > 12 else { throw .statusLine }
        let status = (9..<12).reduce(0) { $0 * 10 + Int(span[byte: $1] &- 0x30) }
        let fields = try self.fields(from: self.lineEnd(from: 12) + 2, limit: limit)
        return ResponseHead(status: status, minorVersion: Int(span[byte: 7] &- 0x30), fields: fields)
    }

    /// The fields of the lines from `start` on.
    func fields(from start: Int = 0, limit: Int) throws(ResponseViolation) -> [HeaderField] {
        var fields: [HeaderField] = []
        fields.reserveCapacity(min(limit, 16))
        var line = start
        while true {
            let end = self.lineEnd(from: line)
            guard end > line else { return fields }
            guard fields.count < limit else { throw .headTooLarge }
            fields.append(self.field(line, end))
            line = end + 2
        }
    }

    private func field(_ line: Int, _ end: Int) -> HeaderField {
        let span = self.bytes.readableBytesSpan
        var colon = line
        while colon < end, span[byte: colon] != 0x3A { colon += 1 }
        var (start, stop) = (min(colon + 1, end), end)
        while start < stop, Self.isBlank(span[byte: start]) { start += 1 }
        while start < stop, Self.isBlank(span[byte: stop - 1]) { stop -= 1 }
        return HeaderField(self.text(line, colon), self.text(start, stop))
    }

    /// Offset of the CR that ends the line that begins at `start`.
    private func lineEnd(from start: Int) -> Int {
        let span = self.bytes.readableBytesSpan
        var index = start
        while index < span.byteCount, span[byte: index] != 0x0D { index += 1 }
        return index
    }

    private func text(_ start: Int, _ end: Int) -> String {
        self.bytes.getString(at: self.bytes.readerIndex + start, length: end - start) ?? ""
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// One field line of a message: a name and its value, both as they are on the wire (RFC 9110 §5.1).
package struct HeaderField: Sendable, Hashable {
    /// Compared case-insensitively; the spelling is kept.
    package let name: String
    /// Without surrounding whitespace. Bytes that are not UTF-8 are replaced.
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// - Parameter name: in lower case.
    package func isNamed(_ name: String) -> Bool {
        ASCIIText.equal(self.name, small: name)
    }
}

/// The status line and the fields of a response (RFC 9112 §4).
package struct ResponseHead: Sendable, Hashable {
    /// 100 to 999.
    package let status: Int
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    package let minorVersion: Int
    /// In the order received; a name may occur more than once.
    package let fields: [HeaderField]

    package init(status: Int, minorVersion: Int = 1, fields: [HeaderField] = []) {
        self.status = status
        self.minorVersion = minorVersion
        self.fields = fields
    }

    /// The value of the first field of this name, which is in lower case.
    package func first(_ name: String) -> String? {
        self.fields.first { $0.isNamed(name) }?.value
    }

    /// Whether a list field `name` has this member; both are in lower case.
    package func lists(_ member: String, in name: String) -> Bool {
        self.fields.contains { $0.isNamed(name) && ASCIIText.list($0.value, has: member) }
    }

    /// 1xx except 101: another head follows. 101 ends HTTP on the connection.
    package var isInformational: Bool { (100..<200).contains(self.status) && self.status != 101 }
}

/// How the end of a response's content is determined (RFC 9112 §6.3).
package enum ResponseFraming: Sendable, Hashable {
    /// No content, whatever the fields announce.
    case none
    case length(Int64)
    case chunked
    case untilClose

    /// - Parameter method: of the request.
    /// - Throws: if the framing is ambiguous.
    package static func of(_ head: ResponseHead, method: String) throws(ResponseViolation) -> ResponseFraming {
        let codings = head.fields.filter { $0.isNamed("transfer-encoding") }
        let lengths = head.fields.filter { $0.isNamed("content-length") }
        if !codings.isEmpty, !lengths.isEmpty { throw .twoFramings }
        guard codings.isEmpty else { return try self.coded(codings, head, method) }
        guard let first = lengths.first?.value else { return self.hasNoContent(head, method) ? .none : .untilClose }
        guard lengths.allSatisfy({ $0.value == first }) else { throw .twoFramings }
        guard let length = ASCIIText.number(first) else { throw .contentLength }
        return self.hasNoContent(head, method) ? .none : .length(length)
    }

    private static func coded(
        _ codings: [HeaderField], _ head: ResponseHead, _ method: String
    ) throws(ResponseViolation) -> ResponseFraming {
        guard head.minorVersion > 0, codings.count == 1, ASCIIText.equal(codings[0].value, small: "chunked") else {
            throw .transferCoding
        }
        return self.hasNoContent(head, method) ? .none : .chunked
    }

    private static func hasNoContent(_ head: ResponseHead, _ method: String) -> Bool {
        method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304
    }
}

/// The rule that a server's bytes broke. The exchange fails and its connection is closed.
package enum ResponseViolation: Error, Sendable, Hashable {
    /// Not a status line of HTTP/1.0 or HTTP/1.1 (RFC 9112 §4).
    case statusLine
    /// A CR without LF, or an LF without CR (RFC 9112 §2.2).
    case bareLineBreak
    /// A field line that begins with whitespace: obsolete line folding (RFC 9112 §5.2).
    case foldedField
    /// Whitespace before the colon (RFC 9112 §5.1), or an empty name.
    case fieldName
    /// A byte that is not allowed in a field value.
    case fieldValue
    /// Content-Length is not a number, or too large (RFC 9112 §6.3).
    case contentLength
    /// Different lengths, or Transfer-Encoding together with Content-Length (RFC 9112 §6.1, §6.3).
    case twoFramings
    /// A transfer coding other than chunked alone, or one in HTTP/1.0.
    case transferCoding
    /// A malformed chunk size or a missing line end (RFC 9112 §7.1).
    case chunk
    /// 101 without a request to upgrade, or without the Upgrade field (RFC 9110 §15.2.2).
    case upgrade
    /// Bytes without a request.
    case unsolicited
    /// The head is larger than `MessageLimits.headBytes`, or has more fields than `fieldCount`.
    case headTooLarge
    /// More informational heads than `MessageLimits.informationalHeads`.
    case tooManyInformationalHeads
    /// More consecutive bytes of chunk framing than `MessageLimits.framingBytes`.
    case framingWithoutContent
}

/// Limits on what a server may send besides content.
package struct MessageLimits: Sendable, Hashable {
    /// Largest head, and largest trailers, in bytes.
    package var headBytes = 256 << 10
    /// Most fields of one message, trailers included.
    package var fieldCount = 512
    /// Most informational heads before the final one.
    package var informationalHeads = 32
    /// Most consecutive bytes of chunk sizes, extensions and trailers.
    package var framingBytes = 512 << 10

    package init() {}
}

/// Case-insensitive comparison of protocol words, which are ASCII.
enum ASCIIText {
    /// - Parameter small: in lower case.
    static func equal(_ text: String, small: String) -> Bool {
        self.equal(text.utf8, small: small.utf8)
    }

    static func equal(_ text: Substring, small: String) -> Bool {
        self.equal(text.utf8, small: small.utf8)
    }

    private static func equal(_ text: some Collection<UInt8>, small: String.UTF8View) -> Bool {
        guard text.count == small.count else { return false }
        let same = text.withContiguousStorageIfAvailable { text in
            small.withContiguousStorageIfAvailable { small in
                text.indices.allSatisfy { Self.lowered(text[$0]) == small[$0] }
            }
        }
        return (same ?? nil) ?? zip(text, small).allSatisfy { Self.lowered($0) == $1 }
    }

    /// Whether a list has this member, which is in lower case.
    static func list(_ list: String, has small: String) -> Bool {
        if self.equal(list, small: small) { return true }
        // Most lists have one member and no whitespace.
        guard list.utf8.contains(where: { $0 == 0x2C || $0 == 0x20 || $0 == 0x09 }) else { return false }
        return self.members(of: list).contains { self.equal($0, small: small) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    }

    /// The members of a comma-separated list, trimmed, without empty ones (RFC 9110 §5.6.1).
    private static func members(of list: String) -> [Substring] {
        list.split(separator: ",").compactMap { part in
            let start = part.drop { $0 == " " || $0 == "\t" }
            guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return nil }
            return start[...last]
        }
    }

    /// The value of a text that consists of digits; `nil` for any other, or if it overflows.
    static func number(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }
}
