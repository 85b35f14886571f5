import ByteKernels
import NIOCore

/// Finds where response heads end, and holds their lines to the letter.
///
/// Readers that forgive a bare line feed, a folded line or a blank before a colon disagree with those that do not; what
/// they disagree on is where one message ends and the next begins. So nothing is forgiven (RFC 9112 §11.2).
package struct HeadScanner {
    private enum State {
        case statusLine
        case lineStart
        case fieldName
        case fieldValue
        /// Behind a carriage return that ended a line.
        case lineEnd
        /// Behind the carriage return of the empty line.
        case headEnd
    }

    private let limit: Int
    private var state = State.statusLine
    private var status = 0
    private static let versionPrefix = Array("HTTP/1.".utf8)

    /// Bytes of this head so far.
    package private(set) var count = 0

    /// - Parameter limit: largest head accepted, in bytes.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Reads trailers in place of a head: lines up to the empty one, without a status.
    package init(trailersWithin limit: Int) {
        self.limit = limit
        self.state = .lineStart
    }

    /// Reads `bytes` from `offset` on.
    /// - Returns: where the head has ended, with its status; `nil` if it goes on behind `bytes`.
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

    /// How many bytes from `start` on neither end the name or the value that they stand in nor break a rule.
    private func plainBytes(_ bytes: RawSpan, from start: Int, to end: Int) -> Int {
        var index = start
        switch self.state {
        case .fieldName: while index < end, ASCIIText.isToken(bytes[byte: index]) { index += 1 }
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

    /// `HTTP/1.`, a digit, a blank, three digits, then a reason that says nothing.
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
            guard ASCIIText.isToken(byte) else { throw .fieldName }
            self.state = .fieldName
        }
    }

    private mutating func consumeFieldName(_ byte: UInt8) throws(ResponseViolation) {
        if byte == 0x3A {
            self.state = .fieldValue
        } else if !ASCIIText.isToken(byte) {
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

/// The parts of a head that a `HeadScanner` has held to the letter: every line has its name, its colon, and its end.
struct HeaderLines {
    private let bytes: ByteBuffer

    /// - Parameter bytes: a whole head, or whole trailers, with the empty line.
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

    /// Where the carriage return of the line stands that begins at `start`.
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
    /// Compared without regard to letters' case; the spelling is kept.
    package let name: String
    /// Without surrounding blanks. Bytes that are not UTF-8 are replaced.
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether this is the field `name`, which is given in small letters.
    package func isNamed(_ name: String) -> Bool {
        ASCIIText.equal(self.name, small: name)
    }
}

/// What a response says before its content (RFC 9112 §4).
package struct ResponseHead: Sendable, Hashable {
    /// 100 to 999.
    package let status: Int
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    package let minorVersion: Int
    /// In the order received; a name may come more than once.
    package let fields: [HeaderField]

    package init(status: Int, minorVersion: Int = 1, fields: [HeaderField] = []) {
        self.status = status
        self.minorVersion = minorVersion
        self.fields = fields
    }

    /// The value of the first field called `name`, which is given in small letters.
    package func first(_ name: String) -> String? {
        self.fields.first { $0.isNamed(name) }?.value
    }

    /// Whether one of the lists in the fields called `name` has this member, both given in small letters.
    package func lists(_ member: String, in name: String) -> Bool {
        self.fields.contains { $0.isNamed(name) && ASCIIText.list($0.value, has: member) }
    }

    /// 100, 102 and so on: another head follows. 101 is final for HTTP.
    package var isInformational: Bool { (100..<200).contains(self.status) && self.status != 101 }
}

/// How the end of a response's content is told (RFC 9112 §6.3).
package enum ResponseFraming: Sendable, Hashable {
    /// There is no content, whatever the fields say.
    case none
    case length(Int64)
    case chunked
    /// The end of the connection is the end of the content.
    case untilClose

    /// - Parameter method: of the request.
    /// - Throws: where two readers could disagree over the length.
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

/// The rule that a server's bytes broke. The response is refused, never guessed at, and its connection closed.
package enum ResponseViolation: Error, Sendable, Hashable {
    /// Not a status line of HTTP/1.0 or HTTP/1.1 (RFC 9112 §4).
    case statusLine
    /// A carriage return without its line feed, or the other way round (RFC 9112 §2.2).
    case bareLineBreak
    /// A field line that begins with a blank: the obsolete folding (RFC 9112 §5.2).
    case foldedField
    /// A blank before the colon (RFC 9112 §5.1), or no name.
    case fieldName
    /// A byte that no field may hold.
    case fieldValue
    /// A length that is no number, or does not fit (RFC 9112 §6.3).
    case contentLength
    /// Two lengths, or Transfer-Encoding beside one (RFC 9112 §6.1, §6.3).
    case twoFramings
    /// A transfer coding other than chunked alone, or one in HTTP/1.0.
    case transferCoding
    /// A chunk's size or its line ends (RFC 9112 §7.1).
    case chunk
    /// 101 where nothing was asked for, or without saying which protocol (RFC 9110 §15.2.2).
    case upgrade
    /// Bytes that no request asked for.
    case unsolicited
    /// The head is larger than `MessageLimits.headBytes`, or has more fields than `fieldCount`.
    case headTooLarge
    /// More heads than `MessageLimits.informationalHeads` came before the final one.
    case tooManyInformationalHeads
    /// More bytes of chunk framing in a row than `MessageLimits.framingBytes`, with no content among them.
    case framingWithoutContent
}

/// How much a server may send that is not content. What is above a limit is refused.
package struct MessageLimits: Sendable, Hashable {
    /// Largest head, status line and fields together; also of the trailers. In bytes.
    package var headBytes = 256 << 10
    /// Most fields of one message, trailers included.
    package var fieldCount = 512
    /// Most informational heads before the final one.
    package var informationalHeads = 32
    /// Most bytes of chunk sizes, extensions and trailers in a row.
    package var framingBytes = 512 << 10

    package init() {}
}

/// Comparisons of protocol words, which are ASCII and know no case.
enum ASCIIText {
    /// - Parameter small: in small letters.
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

    /// Whether a list has this member, given in small letters.
    static func list(_ list: String, has small: String) -> Bool {
        if self.equal(list, small: small) { return true }
        // Most lists are of one; a blank beside it is rare.
        guard list.utf8.contains(where: { $0 == 0x2C || $0 == 0x20 || $0 == 0x09 }) else { return false }
        return self.members(of: list).contains { self.equal($0, small: small) }
    }

    static func lowered(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    }

    /// The members of a list separated by commas, without blanks around them and without empty ones (RFC 9110 §5.6.1).
    static func members(of list: String) -> [Substring] {
        list.split(separator: ",").compactMap { part in
            let start = part.drop { $0 == " " || $0 == "\t" }
            guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return nil }
            return start[...last]
        }
    }

    /// The value of digits alone; `nil` for anything else or one that does not fit.
    static func number(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }

    /// A character of a token (RFC 9110 §5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        // A bit for each character below 0x40, and for each from there on.
        let half: UInt64 = byte < 0x40 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 0x80 && half >> UInt64(byte & 0x3F) & 1 == 1
    }
}
