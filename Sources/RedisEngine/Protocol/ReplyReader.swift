import ByteKernels
import WireText

/// Incremental parser for RESP2 and RESP3. Inspects each byte once, buffers only the value that is not complete, and
/// never allocates because of a length that was announced.
package struct RedisReplyReader: Sendable {
    private enum StringKind {
        case blob, verbatim, error
        /// Part of a streamed string.
        case chunk
    }

    private enum Phase {
        case line
        case content(StringKind, remaining: Int)
        case contentEnd(StringKind)
    }

    /// Largest line buffer that is used again for the next line, in bytes.
    private static let keptLineCapacity = 128

    private let limits: RedisReplyLimits
    private var phase = Phase.line
    /// An incomplete line, with its type.
    private var line: [UInt8] = []
    private var followsCarriageReturn = false
    private var content: [UInt8] = []
    /// Whether `content` is a streamed string between two chunks.
    private var isStreamingString = false
    private var stack: [OpenAggregate] = []
    /// Whether an attribute is complete, and the value that it describes has not begun.
    private var followsAttribute = false
    /// Memory of the current value, as `RedisReplyLimits.byteCount` counts it.
    private var size = 0
    /// Bytes of the current value in former calls.
    private var offset = 0
    private var violation: RedisViolation?

    package init(limits: RedisReplyLimits = RedisReplyLimits()) {
        self.limits = limits
    }

    /// Memory that the incomplete value owns, in bytes.
    package var heldByteCount: Int {
        self.line.capacity + self.content.capacity
            + self.stack.reduce(self.stack.capacity * MemoryLayout<OpenAggregate>.stride) { $0 + $1.heldByteCount }
    }

    /// Whether a value has begun and is not complete.
    package var isInsideValue: Bool { self.offset > 0 }

    /// Parses from offset `consumed` on and advances it, at most to the end of one value.
    ///
    /// - Returns: the value; `nil` if all bytes are consumed and it is not complete. Attributes are skipped.
    /// - Throws: the first violation, at the byte that causes it; the same again for all further bytes.
    /// - Source: the RESP3 specification, version 1.6, and Redis' description of RESP2.
    package mutating func read(_ bytes: RawSpan, consumed: inout Int) throws(RedisViolation) -> RedisValue? {
        if let violation = self.violation { throw violation }
        let start = consumed
        do {
            let value = try self.readValue(bytes, &consumed)
            self.offset += consumed - start
            if value != nil { self.beginNextValue() }
            return value
        } catch {
            let violation = RedisViolation(error, at: self.offset + consumed - start)
            self.violation = violation
            self.release()
            throw violation
        }
    }

    private mutating func beginNextValue() {
        self.offset = 0
        self.size = 0
        self.followsAttribute = false
    }

    private mutating func release() {
        self.line = []
        self.content = []
        self.stack = []
    }

    private mutating func readValue(
        _ bytes: RawSpan, _ consumed: inout Int
    ) throws(RedisViolation.Rule) -> RedisValue? {
        while consumed < bytes.byteCount {
            let finished: RedisValue?
            switch self.phase {
            case .line: finished = try self.readLine(bytes, &consumed)
            case .content(let kind, let remaining):
                self.readContent(bytes, &consumed, kind, remaining)
                finished = nil
            case .contentEnd(let kind): finished = try self.readContentEnd(bytes, &consumed, kind)
            }
            if let finished, let value = try self.close(finished) { return value }
        }
        return nil
    }

    // MARK: Lines

    private mutating func readLine(
        _ bytes: RawSpan, _ consumed: inout Int
    ) throws(RedisViolation.Rule) -> RedisValue? {
        let start = consumed
        // Where the type and the longest line end.
        let end = start + self.limits.lineLength + 1 - self.line.count
        if self.line.isEmpty { try Self.checkType(bytes[byte: start], &consumed) }
        while consumed < bytes.byteCount {
            let byte = bytes[byte: consumed]
            consumed += 1
            if self.followsCarriageReturn {
                guard byte == 0x0A else { throw .bareLineEnd }
                self.followsCarriageReturn = false
                return try self.finishLine(bytes, start..<consumed)
            }
            guard byte != 0x0A else { throw .bareLineEnd }
            if byte == 0x0D {
                self.followsCarriageReturn = true
            } else if consumed > end {
                throw .lineTooLong(limit: self.limits.lineLength)
            }
        }
        self.line.append(bytes.extracting(start..<consumed))
        return nil
    }

    /// A peer that does not speak RESP is found at its first byte.
    private static func checkType(_ byte: UInt8, _ consumed: inout Int) throws(RedisViolation.Rule) {
        consumed += 1
        guard "+-:$*_#,(!=%~>|;.".utf8.contains(byte) else { throw .unknownType(byte) }
    }

    /// - Parameter range: the rest of the line in `bytes`, with CR LF.
    private mutating func finishLine(
        _ bytes: RawSpan, _ range: Range<Int>
    ) throws(RedisViolation.Rule) -> RedisValue? {
        var line = self.line
        self.line = []
        line.append(bytes.extracting(range))
        let value = try self.interpret(line[0], line[1..<(line.count - 2)])
        guard line.capacity <= Self.keptLineCapacity else { return value }
        line.removeAll(keepingCapacity: true)
        self.line = line
        return value
    }

    private mutating func interpret(
        _ type: UInt8, _ text: ArraySlice<UInt8>
    ) throws(RedisViolation.Rule) -> RedisValue? {
        if self.isStreamingString, type != UInt8(ascii: ";") { throw .misplacedChunk }
        switch type {
        case UInt8(ascii: "$"): return try self.openString(.blob, text)
        case UInt8(ascii: "="): return try self.openString(.verbatim, text)
        case UInt8(ascii: "!"): return try self.openString(.error, text)
        case UInt8(ascii: ";"): return try self.openChunk(text)
        case UInt8(ascii: "*"): return try self.openAggregate(.array, text)
        case UInt8(ascii: "%"): return try self.openAggregate(.map, text)
        case UInt8(ascii: "~"): return try self.openAggregate(.set, text)
        case UInt8(ascii: ">"): return try self.openAggregate(.push, text)
        case UInt8(ascii: "|"): return try self.openAggregate(.attribute, text)
        case UInt8(ascii: "."): return try self.endStreamedAggregate(text)
        default:
            // An error owns a code and a message.
            let values = type == UInt8(ascii: "-") ? 3 : 1
            try self.charge(text.count + values * RedisReplyLimits.bytesPerValue)
            return try Self.scalar(type, text)
        }
    }

    private static func scalar(
        _ type: UInt8, _ text: ArraySlice<UInt8>
    ) throws(RedisViolation.Rule) -> RedisValue {
        switch type {
        case UInt8(ascii: "+"): return .simpleString(Array(text))
        case UInt8(ascii: "-"): return .error(RedisServerError(text))
        case UInt8(ascii: ":"):
            guard Self.isInteger(text), let number = Int64(String(decoding: text, as: UTF8.self)) else {
                throw .malformedNumber
            }
            return .number(number)
        case UInt8(ascii: "("):
            guard Self.isInteger(text) else { throw .malformedNumber }
            return .bigNumber(String(decoding: text, as: UTF8.self))
        case UInt8(ascii: ","):
            guard let double = DoubleText.value(text) else { throw .malformedDouble }
            return .double(double)
        case UInt8(ascii: "#"):
            guard text.count == 1, let letter = text.first, letter == UInt8(ascii: "t") || letter == UInt8(ascii: "f")
            else { throw .malformedBoolean }
            return .boolean(letter == UInt8(ascii: "t"))
        case UInt8(ascii: "_"):
            guard text.isEmpty else { throw .malformedNull }
            return .null
        default: throw .unknownType(type)
        }
    }

    private static func isInteger(_ text: ArraySlice<UInt8>) -> Bool {
        let sign = text.first == UInt8(ascii: "-") || text.first == UInt8(ascii: "+")
        let digits = sign ? text.dropFirst() : text
        return !digits.isEmpty && digits.allSatisfy(\.isDigit)
    }

    /// A length that was announced.
    private enum Length {
        case known(Int)
        /// `?`: the value is streamed.
        case streamed
        /// `-1`: null in RESP2.
        case null
    }

    private static func length(_ text: ArraySlice<UInt8>) throws(RedisViolation.Rule) -> Length {
        if text.count == 1, text.first == UInt8(ascii: "?") { return .streamed }
        if text.elementsEqual("-1".utf8) { return .null }
        // Nineteen digits can exceed an integer: `decimal` is nil then.
        guard let length = String(decoding: text, as: UTF8.self).decimal else { throw .malformedLength }
        return .known(Int(length))
    }

    private mutating func charge(_ byteCount: Int) throws(RedisViolation.Rule) {
        guard byteCount <= self.limits.byteCount - self.size else {
            throw .valueTooLarge(limit: self.limits.byteCount)
        }
        self.size += byteCount
    }

    // MARK: Strings

    private mutating func openString(
        _ kind: StringKind, _ text: ArraySlice<UInt8>
    ) throws(RedisViolation.Rule) -> RedisValue? {
        try self.charge(RedisReplyLimits.bytesPerValue)
        switch try Self.length(text) {
        case .known(let length):
            try self.charge(length)
            self.phase = length == 0 ? .contentEnd(kind) : .content(kind, remaining: length)
        case .streamed:
            guard kind == .blob else { throw .unsupportedStreaming }
            self.isStreamingString = true
        case .null:
            guard kind == .blob else { throw .malformedLength }
            return .null
        }
        return nil
    }

    private mutating func openChunk(_ text: ArraySlice<UInt8>) throws(RedisViolation.Rule) -> RedisValue? {
        guard self.isStreamingString else { throw .misplacedChunk }
        guard case .known(let length) = try Self.length(text) else { throw .malformedLength }
        guard length > 0 else {
            self.isStreamingString = false
            return .blobString(self.takeContent())
        }
        try self.charge(length)
        self.phase = .content(.chunk, remaining: length)
        return nil
    }

    private mutating func takeContent() -> [UInt8] {
        let content = self.content
        self.content = []
        return content
    }

    private mutating func readContent(
        _ bytes: RawSpan, _ consumed: inout Int, _ kind: StringKind, _ remaining: Int
    ) {
        let count = min(remaining, bytes.byteCount - consumed)
        self.content.append(bytes.extracting(consumed..<(consumed + count)))
        consumed += count
        self.phase = count == remaining ? .contentEnd(kind) : .content(kind, remaining: remaining - count)
    }

    private mutating func readContentEnd(
        _ bytes: RawSpan, _ consumed: inout Int, _ kind: StringKind
    ) throws(RedisViolation.Rule) -> RedisValue? {
        let byte = bytes[byte: consumed]
        consumed += 1
        guard byte == (self.followsCarriageReturn ? 0x0A : 0x0D) else { throw .stringWithoutEnd }
        self.followsCarriageReturn.toggle()
        guard !self.followsCarriageReturn else { return nil }
        self.phase = .line
        switch kind {
        case .chunk: return nil
        case .blob: return .blobString(self.takeContent())
        case .error: return .error(RedisServerError(self.takeContent()))
        case .verbatim:
            let content = self.takeContent()
            guard content.count >= 4, content[3] == UInt8(ascii: ":") else { throw .malformedVerbatimString }
            return .verbatimString(format: String(decoding: content[..<3], as: UTF8.self), Array(content[4...]))
        }
    }

    // MARK: Aggregates

    private mutating func openAggregate(
        _ kind: OpenAggregate.Kind, _ text: ArraySlice<UInt8>
    ) throws(RedisViolation.Rule) -> RedisValue? {
        try self.charge(RedisReplyLimits.bytesPerValue)
        if kind == .push, !self.stack.isEmpty { throw .misplacedPush }
        var count: Int?
        switch try Self.length(text) {
        case .known(let length):
            if kind == .push, length == 0 { throw .misplacedPush }
            count = try self.elementCount(kind, length)
        case .streamed:
            guard kind != .push, kind != .attribute else { throw .unsupportedStreaming }
        case .null:
            guard kind == .array else { throw .malformedLength }
            return .null
        }
        let aggregate = OpenAggregate(kind: kind, remaining: count)
        if count == 0 { return self.finish(aggregate) }
        guard self.stack.count < self.limits.depth else { throw .tooDeep(limit: self.limits.depth) }
        self.stack.append(aggregate)
        // An attribute of an aggregate is followed by its first element.
        self.followsAttribute = false
        return nil
    }

    /// Refuses a length before its elements arrive, if they cannot be within the limits.
    private func elementCount(_ kind: OpenAggregate.Kind, _ length: Int) throws(RedisViolation.Rule) -> Int {
        let (count, overflows) = kind.hasPairs ? length.multipliedReportingOverflow(by: 2) : (length, false)
        guard !overflows, count <= self.limits.elementCount else {
            throw .tooManyElements(limit: self.limits.elementCount)
        }
        let (smallest, exceeds) = count.multipliedReportingOverflow(by: RedisReplyLimits.bytesPerValue)
        guard !exceeds, smallest <= self.limits.byteCount - self.size else {
            throw .valueTooLarge(limit: self.limits.byteCount)
        }
        return count
    }

    /// - Returns: `nil` for an attribute.
    private mutating func finish(_ aggregate: OpenAggregate) -> RedisValue? {
        let value = aggregate.value
        if value == nil { self.followsAttribute = true }
        return value
    }

    private mutating func endStreamedAggregate(
        _ text: ArraySlice<UInt8>
    ) throws(RedisViolation.Rule) -> RedisValue? {
        guard text.isEmpty, !self.followsAttribute, let last = self.stack.last, last.mayEnd else { throw .misplacedEnd }
        self.stack.removeLast()
        return self.finish(last)
    }

    /// Adds a complete value to the aggregate that contains it, and that to its own, as far as they are complete.
    /// - Returns: the value at the top level.
    private mutating func close(_ value: RedisValue) throws(RedisViolation.Rule) -> RedisValue? {
        var value = value
        while let index = self.stack.indices.last {
            self.followsAttribute = false
            guard try self.stack[index].append(value, limit: self.limits.elementCount) else { return nil }
            guard let finished = self.finish(self.stack.removeLast()) else { return nil }
            value = finished
        }
        return value
    }
}

extension RedisViolation.Rule: Error {}

/// An aggregate whose elements arrive.
private struct OpenAggregate: Sendable {
    enum Kind {
        case array, map, set, push, attribute

        var hasPairs: Bool { self == .map || self == .attribute }
    }

    let kind: Kind
    /// Elements to come; `nil` while streamed.
    private var remaining: Int?
    private var elements: [RedisValue] = []

    init(kind: Kind, remaining: Int?) {
        self.kind = kind
        self.remaining = remaining
    }

    var heldByteCount: Int { self.elements.capacity * MemoryLayout<RedisValue>.stride }

    /// Whether the end of a streamed aggregate is allowed here.
    var mayEnd: Bool { self.remaining == nil && (!self.kind.hasPairs || self.elements.count.isMultiple(of: 2)) }

    /// - Returns: whether this was the last element.
    mutating func append(_ value: RedisValue, limit: Int) throws(RedisViolation.Rule) -> Bool {
        guard self.elements.count < limit else { throw .tooManyElements(limit: limit) }
        self.elements.append(value)
        guard let remaining = self.remaining else { return false }
        self.remaining = remaining - 1
        return remaining == 1
    }

    /// `nil` for an attribute.
    var value: RedisValue? {
        switch self.kind {
        case .array: .array(self.elements)
        case .set: .set(self.elements)
        case .push: .push(self.elements)
        case .map:
            .map(
                stride(from: 0, to: self.elements.count - 1, by: 2).map {
                    RedisValue.Entry(self.elements[$0], self.elements[$0 + 1])
                })
        case .attribute: nil
        }
    }
}
