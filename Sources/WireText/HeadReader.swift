import ByteKernels

/// Incremental parser for message heads. Inspects each byte once and buffers only an incomplete line.
private struct HeadReader {
    private let limits: HeadLimits
    private let readStartLine: StartLine.Reader
    /// A folded field is unfolded, and a bare LF ends a line.
    private let isTolerant: Bool
    /// Whether empty lines before the start line are skipped.
    private let skipsEmptyLines: Bool
    private(set) var startLine: StartLine?
    /// Whether `startLine` is set; cheaper than copying it.
    private(set) var hasStartLine = false
    private(set) var fields = FieldLines()
    /// Lines that continued a field.
    private var foldCount = 0
    /// An incomplete line.
    private var unfinished: [UInt8] = []
    private var byteCount = 0
    private var followsCarriageReturn = false
    private var violation: HeadViolation?

    /// - Parameter readStartLine: `nil` for trailers, which have no start line.
    init(
        limits: HeadLimits, readStartLine: StartLine.Reader?, isTolerant: Bool = false, skipsEmptyLines: Bool = false
    ) {
        self.limits = limits
        self.isTolerant = isTolerant
        self.readStartLine = readStartLine ?? { _ in nil }
        self.skipsEmptyLines = skipsEmptyLines
        self.hasStartLine = readStartLine == nil
    }

    /// Whether a byte of the head was read. Skipped empty lines are no part of it, and neither is the CR of one whose LF
    /// has not arrived.
    var hasBegun: Bool { self.hasStartLine || self.unfinished.count > (self.followsCarriageReturn ? 1 : 0) }

    /// Parses from offset `consumed` on and advances it, at most to the end of the head.
    ///
    /// - Returns: whether the head is complete.
    /// - Throws: the first violation, at the byte that causes it; the same again for all further bytes.
    mutating func read(_ bytes: RawSpan, consumed: inout Int) throws(HeadViolation) -> Bool {
        if let violation = self.violation { throw violation }
        do {
            return try self.readLines(bytes, &consumed)
        } catch {
            self.violation = error
            throw error
        }
    }

    private mutating func readLines(_ bytes: RawSpan, _ consumed: inout Int) throws(HeadViolation) -> Bool {
        var lineStart = consumed
        while true {
            self.skipOrdinary(bytes, &consumed)
            guard consumed < bytes.byteCount else { break }
            let byte = bytes[byte: consumed]
            consumed += 1
            guard try self.endsLine(byte) else { continue }
            let isLast = try self.finishLine(bytes, lineStart..<consumed)
            lineStart = consumed
            if isLast { return true }
        }
        self.unfinished.append(bytes.extracting(lineStart..<consumed))
        return false
    }

    /// Skips allowed bytes within a line, up to the limit.
    private mutating func skipOrdinary(_ bytes: RawSpan, _ consumed: inout Int) {
        guard !self.followsCarriageReturn else { return }
        let start = consumed
        let end = start + min(self.limits.byteCount - self.byteCount, bytes.byteCount - start)
        var offset = start
        while end - offset >= 8, !Self.mayBeForbidden(bytes.unaligned(offset, as: UInt64.self)) { offset += 8 }
        while offset < end, !bytes[byte: offset].isControl { offset += 1 }
        self.byteCount += offset - start
        consumed = offset
    }

    /// Whether one of eight bytes is DEL or below 0x20, which includes HTAB.
    private static func mayBeForbidden(_ bytes: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let deletes = bytes ^ (ones &* 0x7F)
        // Subtracting n from a lesser byte borrows and sets its high bit.
        let small = (bytes &- ones &* 0x20) & ~bytes
        let zero = (deletes &- ones) & ~deletes
        return (small | zero) & (ones &* 0x80) != 0
    }

    /// Checks a byte and its predecessor.
    /// - Returns: whether the byte ends a line.
    private mutating func endsLine(_ byte: UInt8) throws(HeadViolation) -> Bool {
        self.byteCount += 1
        guard self.byteCount <= self.limits.byteCount else { throw .tooLong(limit: self.limits.byteCount) }
        switch (byte, self.followsCarriageReturn) {
        case (0x0A, true):
            self.followsCarriageReturn = false
            return true
        case (_, true): throw .bareCarriageReturn
        case (0x0D, false): self.followsCarriageReturn = true
        case (0x0A, false):
            guard self.isTolerant else { throw .bareLineFeed }
            return true
        case (_, false):
            if byte.isControl { throw .controlCharacter }
        }
        return false
    }

    /// - Parameter range: the rest of the line in `bytes`, including its end.
    /// - Returns: whether this was the empty line that ends the head.
    private mutating func finishLine(_ bytes: RawSpan, _ range: Range<Int>) throws(HeadViolation) -> Bool {
        guard !self.unfinished.isEmpty else {
            return try self.interpret(bytes.extracting(range))
        }
        self.unfinished.append(bytes.extracting(range))
        let line = self.unfinished
        self.unfinished.removeAll(keepingCapacity: true)
        return try line.withRawSpan { line in
            Result { () throws(HeadViolation) in try self.interpret(line) }
        }.get()
    }

    private mutating func interpret(_ lineWithEnd: RawSpan) throws(HeadViolation) -> Bool {
        let count = lineWithEnd.byteCount
        let hasCarriageReturn = count > 1 && lineWithEnd[byte: count - 2] == 0x0D
        let line = lineWithEnd.extracting(first: count - (hasCarriageReturn ? 2 : 1))
        guard self.hasStartLine else {
            if self.skipsEmptyLines, line.byteCount == 0 { return false }
            guard let startLine = self.readStartLine(line) else { throw .malformedStartLine }
            self.startLine = startLine
            self.hasStartLine = true
            return false
        }
        if line.byteCount == 0 { return true }
        guard self.fields.all.count + self.foldCount < self.limits.fieldCount else {
            throw .tooManyFields(limit: self.limits.fieldCount)
        }
        if self.isTolerant, line[byte: 0].isBlank, !self.fields.isEmpty {
            self.foldCount += 1
            self.fields.extendLast(String(tolerant: line.extracting(Self.trimmed(line, from: 0))))
            return false
        }
        self.fields.append(try Self.field(line))
        return false
    }

    /// field-line = field-name ":" OWS field-value OWS (RFC 9112 §5)
    private static func field(_ line: RawSpan) throws(HeadViolation) -> FieldLine {
        if line[byte: 0].isBlank { throw .foldedField }
        var colon = 0
        while colon < line.byteCount, line[byte: colon].isTokenCharacter { colon += 1 }
        guard colon > 0, colon < line.byteCount else { throw .malformedFieldName }
        if line[byte: colon].isBlank { throw .whitespaceBeforeColon }
        guard line[byte: colon] == UInt8(ascii: ":") else { throw .malformedFieldName }
        let name = line.extracting(0..<colon)
        return FieldLine(
            CommonNames.find(name) ?? String(tolerant: name),
            received: line.extracting(Self.trimmed(line, from: colon + 1)))
    }

    /// Without the blanks at both ends.
    private static func trimmed(_ line: RawSpan, from start: Int) -> Range<Int> {
        var start = start
        var end = line.byteCount
        while start < end, line[byte: start].isBlank { start += 1 }
        while end > start, line[byte: end - 1].isBlank { end -= 1 }
        return start..<end
    }
}

public struct HeadLimits: Equatable, Sendable {
    /// Most bytes, including the empty line at the end. Default: 16 KiB.
    public var byteCount: Int
    /// Most field lines. Default: 100.
    public var fieldCount: Int

    /// Negative limits count as 0, which refuses every head.
    public init(byteCount: Int = 16384, fieldCount: Int = 100) {
        self.byteCount = max(byteCount, 0)
        self.fieldCount = max(fieldCount, 0)
    }
}

/// A malformed or too large message head (RFC 9112 §2 to §5).
public enum HeadViolation: Error, Hashable, Sendable {
    case tooLong(limit: Int)
    case tooManyFields(limit: Int)
    /// The first line is not a request line or status line.
    case malformedStartLine
    /// A field line begins with whitespace (RFC 9112 §5.2).
    case foldedField
    /// Whitespace between the name of a field and its colon (RFC 9112 §5.1).
    case whitespaceBeforeColon
    /// A field without a colon, or with a name that is not a token.
    case malformedFieldName
    /// CR without LF (RFC 9112 §2.2).
    case bareCarriageReturn
    /// LF without CR.
    case bareLineFeed
    case controlCharacter

    /// The status of a server's refusal: 431 beyond a limit, else 400.
    public var status: Int {
        switch self {
        case .tooLong, .tooManyFields: 431
        case .malformedStartLine, .foldedField, .whitespaceBeforeColon, .malformedFieldName, .bareCarriageReturn,
            .bareLineFeed, .controlCharacter:
            400
        }
    }

    /// One sentence for a human.
    public var explanation: String {
        switch self {
        case .tooLong(let limit): "The head is longer than \(limit) bytes; send fewer or shorter header fields."
        case .tooManyFields(let limit): "The head has more than \(limit) header fields; send fewer."
        case .malformedStartLine: "The first line is not that of an HTTP/1.1 message."
        case .foldedField: "A header field is folded over several lines; write it on one."
        case .whitespaceBeforeColon: "There is whitespace between the name of a header field and its colon."
        case .malformedFieldName: "A header field has no name, no colon or a character in its name that is not allowed."
        case .bareCarriageReturn: "There is a carriage return without a line feed; end lines with both."
        case .bareLineFeed: "There is a line feed without a carriage return; end lines with both."
        case .controlCharacter: "There is a control character in the head."
        }
    }
}

/// A request line or status line.
private enum StartLine: Equatable {
    case request(method: String, target: String, version: HTTPVersion)
    case response(version: HTTPVersion, status: Int, reason: String)

    /// Parses a line; `nil` if it is malformed.
    typealias Reader = @Sendable (RawSpan) -> StartLine?

    /// request-line = method SP request-target SP HTTP-version (RFC 9112 §3), with exactly these two spaces.
    static let readRequest: Reader = { line in
        guard let first = Self.space(in: line, from: 0), let second = Self.space(in: line, from: first + 1),
            first > 0, second > first + 1, let version = HTTPVersion(line.extracting((second + 1)..<line.byteCount))
        else { return nil }
        for offset in 0..<first where !line[byte: offset].isTokenCharacter { return nil }
        for offset in (first + 1)..<second where !line[byte: offset].isVisibleASCII { return nil }
        return .request(
            method: String(tolerant: line.extracting(0..<first)),
            target: String(tolerant: line.extracting((first + 1)..<second)), version: version)
    }

    /// status-line = HTTP-version SP status-code SP [ reason-phrase ] (RFC 9112 §4). The last space may be missing, as
    /// many servers omit it together with the phrase.
    static let readResponse: Reader = { line in
        guard line.byteCount >= 12, let version = HTTPVersion(line.extracting(first: 8)), line[byte: 8] == 0x20,
            line.byteCount == 12 || line[byte: 12] == 0x20
        else { return nil }
        var status = 0
        for offset in 9..<12 {
            guard line[byte: offset].isDigit else { return nil }
            status = status * 10 + Int(line[byte: offset] - UInt8(ascii: "0"))
        }
        guard status >= 100 else { return nil }
        let reason = line.extracting(min(13, line.byteCount)..<line.byteCount)
        return .response(version: version, status: status, reason: String(tolerant: reason))
    }

    private static func space(in line: RawSpan, from start: Int) -> Int? {
        for offset in start..<max(start, line.byteCount) where line[byte: offset] == 0x20 { return offset }
        return nil
    }
}

public struct HTTPVersion: Comparable, Hashable, Sendable {
    /// 0 to 9.
    public let major: Int
    /// 0 to 9.
    public let minor: Int

    public init(_ major: Int, _ minor: Int) {
        self.major = major
        self.minor = minor
    }

    public static let http11 = HTTPVersion(1, 1)
    package static let http10 = HTTPVersion(1, 0)

    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    /// Parses `HTTP/1.1` and the like: one digit each, case-sensitive (RFC 9112 §2.3).
    init?(_ text: RawSpan) {
        guard text.byteCount == 8, text[byte: 6] == UInt8(ascii: "."), let major = Self.digit(text[byte: 5]),
            let minor = Self.digit(text[byte: 7])
        else { return nil }
        let name = "HTTP/".utf8.span
        for offset in name.indices where text[byte: offset] != name[offset] { return nil }
        self.init(major, minor)
    }

    private static func digit(_ byte: UInt8) -> Int? {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
    }
}

/// The head of a request (RFC 9112 §3).
public struct RequestHead: Hashable, Sendable {
    /// Case-sensitive.
    public package(set) var method: String
    /// The request target: visible ASCII characters, at least one.
    public package(set) var target: String
    public let version: HTTPVersion
    public package(set) var fields: FieldLines

    public init(method: String, target: String, version: HTTPVersion = .http11, fields: FieldLines = FieldLines()) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}

/// Incremental parser for request heads, strictly by RFC 9112: no folding, no bare CR or LF, no control characters, no
/// misplaced whitespace. Empty lines before a request line are skipped (§2.2); they count towards the limit of bytes.
public struct RequestParser: Sendable {
    private let limits: HeadLimits
    private var reader: HeadReader

    public init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        self.reader = HeadReader(limits: limits, readStartLine: StartLine.readRequest, skipsEmptyLines: true)
    }

    /// Whether a byte of the next head was read; `false` after empty lines alone.
    package var hasBegun: Bool { self.reader.hasBegun }

    /// Parses the next bytes from offset `consumed` on and advances it; each byte is passed once. When the head is
    /// complete, `consumed` is the offset of the first byte after it, and the parser is ready for the next head.
    /// - Returns: the head, or `nil` until it is complete; `consumed` is then the end of `bytes`.
    /// - Throws: the first violation, independent of how the bytes were split; the same for all further calls.
    public mutating func parse(_ bytes: RawSpan, consumed: inout Int) throws(HeadViolation) -> RequestHead? {
        guard try self.reader.read(bytes, consumed: &consumed),
            case .request(let method, let target, let version) = self.reader.startLine
        else { return nil }
        let head = RequestHead(method: method, target: target, version: version, fields: self.reader.fields)
        self = RequestParser(limits: self.limits)
        return head
    }
}

/// The head of a response (RFC 9112 §4).
public struct ResponseHead: Hashable, Sendable {
    public let version: HTTPVersion
    /// 100 to 999.
    public let status: Int
    /// The reason phrase; often empty and without meaning.
    public let reason: String
    public let fields: FieldLines

    public init(version: HTTPVersion = .http11, status: Int, reason: String = "", fields: FieldLines = FieldLines()) {
        self.version = version
        self.status = status
        self.reason = reason
        self.fields = fields
    }

    /// Whether another response follows: every 1xx except 101, which is final (RFC 9110 §15.2).
    public var isInterim: Bool { (100...199).contains(self.status) && self.status != 101 }
}

/// Incremental parser for response heads, as strict as `RequestParser`, but for what a user agent must accept (RFC 9112
/// §5.2), or may, as embedded servers send it (§2.2): a folded field counts as one line, with a space for the fold, and a
/// bare LF ends a line.
public struct ResponseParser: Sendable {
    private let limits: HeadLimits
    private var reader: HeadReader

    public init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        self.reader = HeadReader(limits: limits, readStartLine: StartLine.readResponse, isTolerant: true)
    }

    /// Whether the status line of the current head has been read.
    package var hasStatusLine: Bool { self.reader.hasStartLine }

    /// As `RequestParser.parse(_:consumed:)`.
    public mutating func parse(_ bytes: RawSpan, consumed: inout Int) throws(HeadViolation) -> ResponseHead? {
        guard try self.reader.read(bytes, consumed: &consumed),
            case .response(let version, let status, let reason) = self.reader.startLine
        else { return nil }
        let head = ResponseHead(version: version, status: status, reason: reason, fields: self.reader.fields)
        self = ResponseParser(limits: self.limits)
        return head
    }
}

/// Incremental parser for the trailers of chunked content (RFC 9112 §7.1.2): field lines up to an empty line.
package struct TrailerParser: Sendable {
    private var reader: HeadReader

    /// - Parameter isTolerant: as `ResponseParser`.
    package init(limits: HeadLimits, isTolerant: Bool = false) {
        self.reader = HeadReader(limits: limits, readStartLine: nil, isTolerant: isTolerant)
    }

    /// As `RequestParser.parse(_:consumed:)`.
    package mutating func parse(_ bytes: RawSpan, consumed: inout Int) throws(HeadViolation) -> FieldLines? {
        try self.reader.read(bytes, consumed: &consumed) ? self.reader.fields : nil
    }
}

/// Frequent field names in their usual spelling: a literal costs less than a string made of received bytes.
private enum CommonNames {
    /// - Returns: the name with exactly these bytes, if any.
    static func find(_ bytes: RawSpan) -> String? {
        switch bytes.byteCount {
        case 4:
            self.match(bytes, "Date") ?? self.match(bytes, "ETag") ?? self.match(bytes, "Vary")
                ?? self.match(bytes, "Host")
        case 6: self.match(bytes, "Server") ?? self.match(bytes, "Accept") ?? self.match(bytes, "Cookie")
        case 7: self.match(bytes, "Expires") ?? self.match(bytes, "Upgrade")
        case 8: self.match(bytes, "Location")
        case 10: self.match(bytes, "Connection") ?? self.match(bytes, "Keep-Alive") ?? self.match(bytes, "User-Agent")
        case 12: self.match(bytes, "Content-Type")
        case 13:
            self.match(bytes, "Last-Modified") ?? self.match(bytes, "Accept-Ranges")
                ?? self.match(bytes, "Cache-Control")
        case 14: self.match(bytes, "Content-Length")
        case 16: self.match(bytes, "Content-Encoding") ?? self.match(bytes, "WWW-Authenticate")
        case 17: self.match(bytes, "Sec-WebSocket-Key") ?? self.match(bytes, "Transfer-Encoding")
        case 19: self.match(bytes, "Content-Disposition")
        case 20: self.match(bytes, "Sec-WebSocket-Accept")
        case 21: self.match(bytes, "Sec-WebSocket-Version")
        case 22: self.match(bytes, "Sec-WebSocket-Protocol") ?? self.match(bytes, "X-Content-Type-Options")
        case 23: self.match(bytes, "Content-Security-Policy")
        case 24: self.match(bytes, "Sec-WebSocket-Extensions")
        case 25: self.match(bytes, "Strict-Transport-Security")
        default: nil
        }
    }

    private static func match(_ bytes: RawSpan, _ name: String) -> String? {
        let written = name.utf8.span
        for offset in written.indices where bytes[byte: offset] != written[offset] { return nil }
        return name
    }
}
