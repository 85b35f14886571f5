import ByteKernels

/// Finds where response heads end, and holds their lines to the letter.
///
/// Readers that forgive a bare line feed, a folded line or a blank before a colon disagree with those that do not; what
/// they disagree on is where one message ends and the next begins. So nothing is forgiven (RFC 9112 §11.2).
package struct HeadScanner {
    private enum Place {
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
    private var place = Place.statusLine
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
        self.place = .lineStart
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
            if run == 0, try self.take(bytes[byte: index]) {
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
        switch self.place {
        case .fieldName: while index < end, ASCIIText.isToken(bytes[byte: index]) { index += 1 }
        case .fieldValue: while index < end, (0x20..<0x7F).contains(bytes[byte: index]) { index += 1 }
        case .statusLine, .lineStart, .lineEnd, .headEnd: break
        }
        return index - start
    }

    /// - Returns: whether the head is complete.
    private mutating func take(_ byte: UInt8) throws(ResponseViolation) -> Bool {
        switch self.place {
        case .statusLine: try self.takeStatusLine(byte)
        case .lineStart: try self.takeLineStart(byte)
        case .fieldName: try self.takeFieldName(byte)
        case .fieldValue: try self.takeValue(byte)
        case .lineEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            self.place = .lineStart
        case .headEnd:
            guard byte == 0x0A else { throw .bareLineBreak }
            return true
        }
        return false
    }

    /// `HTTP/1.`, a digit, a blank, three digits, then a reason that says nothing.
    private mutating func takeStatusLine(_ byte: UInt8) throws(ResponseViolation) {
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
            if byte == 0x0D { self.place = .lineEnd }
        default:
            try self.takeValue(byte)
        }
    }

    private mutating func takeLineStart(_ byte: UInt8) throws(ResponseViolation) {
        switch byte {
        case 0x0D: self.place = .headEnd
        case 0x0A: throw .bareLineBreak
        case 0x20, 0x09: throw .foldedField
        default:
            guard ASCIIText.isToken(byte) else { throw .fieldName }
            self.place = .fieldName
        }
    }

    private mutating func takeFieldName(_ byte: UInt8) throws(ResponseViolation) {
        if byte == 0x3A {
            self.place = .fieldValue
        } else if !ASCIIText.isToken(byte) {
            throw .fieldName
        }
    }

    private mutating func takeValue(_ byte: UInt8) throws(ResponseViolation) {
        switch byte {
        case 0x0D: self.place = .lineEnd
        case 0x0A: throw .bareLineBreak
        case 0x20..., 0x09:
            guard byte != 0x7F else { throw .fieldValue }
        default: throw .fieldValue
        }
    }
}
