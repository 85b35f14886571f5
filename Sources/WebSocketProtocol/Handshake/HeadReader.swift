import ByteKernels

/// Reads a head line by line as its bytes arrive. Each byte is looked at once, and only an unfinished line is kept.
struct HeadReader {
    private let limits: HeadLimits
    private let readStartLine: StartLine.Reader
    private(set) var startLine: StartLine?
    /// Whether there is one: cheaper to ask than to take the line itself in hand.
    private var hasStartLine = false
    private(set) var fields = HTTPFields()
    /// What has come of the line under way, when its end was not in the same piece.
    private var unfinished: [UInt8] = []
    private var byteCount = 0
    private var followsCarriageReturn = false
    private var violation: HeadViolation?

    init(limits: HeadLimits, readStartLine: @escaping StartLine.Reader) {
        self.limits = limits
        self.readStartLine = readStartLine
    }

    /// Reads from offset `consumed` on and advances it, up to the byte behind the head at most.
    ///
    /// - Returns: whether the head is complete.
    /// - Throws: the first rule broken, at the byte that breaks it; then the same again for whatever comes.
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

    /// Passes over bytes that need no judgement, as nearly all do, up to the limit.
    private mutating func skipOrdinary(_ bytes: RawSpan, _ consumed: inout Int) {
        guard !self.followsCarriageReturn else { return }
        let start = consumed
        let end = start + min(self.limits.byteCount - self.byteCount, bytes.byteCount - start)
        var offset = start
        while end - offset >= 8, !Self.mayBeForbidden(bytes.unaligned(offset, as: UInt64.self)) { offset += 8 }
        while offset < end, !bytes[byte: offset].isForbiddenInHead { offset += 1 }
        self.byteCount += offset - start
        consumed = offset
    }

    /// Whether one of eight bytes is DEL or less than a space, which HTAB is too.
    private static func mayBeForbidden(_ bytes: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let deletes = bytes ^ (ones &* 0x7F)
        // A byte less than n borrows from its high bit, which it had not set.
        let small = (bytes &- ones &* 0x20) & ~bytes
        let zero = (deletes &- ones) & ~deletes
        return (small | zero) & (ones &* 0x80) != 0
    }

    /// Judges one byte by itself and by the one in front of it.
    private mutating func endsLine(_ byte: UInt8) throws(HeadViolation) -> Bool {
        self.byteCount += 1
        guard self.byteCount <= self.limits.byteCount else { throw .tooLong(limit: self.limits.byteCount) }
        switch (byte, self.followsCarriageReturn) {
        case (0x0A, true):
            self.followsCarriageReturn = false
            return true
        case (_, true): throw .bareCarriageReturn
        case (0x0D, false): self.followsCarriageReturn = true
        case (0x0A, false): throw .bareLineFeed
        case (_, false):
            if byte.isForbiddenInHead { throw .controlCharacter }
        }
        return false
    }

    /// - Parameter range: where in `bytes` the rest of the line is, its CR LF included.
    /// - Returns: whether this was the empty line at the end.
    private mutating func finishLine(_ bytes: RawSpan, _ range: Range<Int>) throws(HeadViolation) -> Bool {
        guard !self.unfinished.isEmpty else {
            return try self.interpret(bytes.extracting(range))
        }
        self.unfinished.append(bytes.extracting(range))
        let line = self.unfinished
        self.unfinished.removeAll(keepingCapacity: true)
        return try self.interpret(line.span.bytes)
    }

    private mutating func interpret(_ lineWithEnd: RawSpan) throws(HeadViolation) -> Bool {
        let line = lineWithEnd.extracting(first: lineWithEnd.byteCount - 2)
        guard self.hasStartLine else {
            guard let startLine = self.readStartLine(line) else { throw .malformedStartLine }
            self.startLine = startLine
            self.hasStartLine = true
            return false
        }
        if line.byteCount == 0 { return true }
        guard self.fields.all.count < self.limits.fieldCount else {
            throw .tooManyFields(limit: self.limits.fieldCount)
        }
        self.fields.append(try Self.field(line))
        return false
    }

    /// field-line = field-name ":" OWS field-value OWS (RFC 9112 §5)
    private static func field(_ line: RawSpan) throws(HeadViolation) -> HTTPField {
        if line[byte: 0].isFieldWhitespace { throw .foldedField }
        var colon = 0
        while colon < line.byteCount, line[byte: colon].isTokenCharacter { colon += 1 }
        guard colon > 0, colon < line.byteCount else { throw .malformedFieldName }
        if line[byte: colon].isFieldWhitespace { throw .whitespaceBeforeColon }
        guard line[byte: colon] == UInt8(ascii: ":") else { throw .malformedFieldName }
        var start = colon + 1
        var end = line.byteCount
        while start < end, line[byte: start].isFieldWhitespace { start += 1 }
        while end > start, line[byte: end - 1].isFieldWhitespace { end -= 1 }
        let name = line.extracting(0..<colon)
        return HTTPField(
            HandshakeNames.find(name) ?? String(tolerant: name), received: line.extracting(start..<end))
    }
}
