/// Bounds of one value that the server sends. A value beyond one ends the connection.
package struct RedisReplyLimits: Equatable, Sendable {
    /// Memory of one value, with its attributes: the bytes of its strings, and `bytesPerValue` for each value in it.
    /// Default: 32 MiB.
    package var byteCount: Int
    /// Values that contain another, at most 128: each level is one of the stack when a value is freed. Default: 32.
    package var depth: Int
    /// Elements of one aggregate; a pair of a map counts as two. Default: 1 048 576.
    package var elementCount: Int
    /// Bytes of a line, without its type and its end. Default: 64 KiB.
    package var lineLength: Int

    /// Memory of a value besides the bytes of its strings.
    package static let bytesPerValue = 64

    private static let allowed = 1...(1 << 40)

    /// Limits below 1 count as 1, those above 1 TiB as 1 TiB.
    package init(
        byteCount: Int = 32 << 20, depth: Int = 32, elementCount: Int = 1 << 20, lineLength: Int = 64 << 10
    ) {
        self.byteCount = min(max(byteCount, Self.allowed.lowerBound), Self.allowed.upperBound)
        self.depth = min(max(depth, 1), 128)
        self.elementCount = min(max(elementCount, Self.allowed.lowerBound), Self.allowed.upperBound)
        self.lineLength = min(max(lineLength, Self.allowed.lowerBound), Self.allowed.upperBound)
    }
}

/// Bytes of the server that break a rule of RESP, or a limit. The connection must end.
package struct RedisViolation: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Rule: Equatable, Sendable {
        case unknownType(UInt8)
        /// A carriage return without a line feed behind it, or a line feed without one before it.
        case bareLineEnd
        case lineTooLong(limit: Int)
        case malformedLength
        case malformedNumber
        case malformedDouble
        case malformedBoolean
        case malformedNull
        case malformedVerbatimString
        /// A string is not followed by a line end.
        case stringWithoutEnd
        case valueTooLarge(limit: Int)
        case tooDeep(limit: Int)
        case tooManyElements(limit: Int)
        /// Not at the top level, or empty.
        case misplacedPush
        /// Not behind the elements of a streamed aggregate, or between a key and its value.
        case misplacedEnd
        /// A chunk of no streamed string, or something else within one.
        case misplacedChunk
        /// Only strings, arrays, maps and sets are streamed.
        case unsupportedStreaming
        /// A push whose contents do not fit its kind.
        case malformedPush
        /// A reply that belongs to no command.
        case unrequestedReply
        /// A reply of another form than the command has.
        case unexpectedReply
    }

    package let rule: Rule
    /// Bytes of the value up to and including the one that breaks the rule; 0 if the value as a whole breaks it.
    package let offset: Int

    package init(_ rule: Rule, at offset: Int) {
        self.rule = rule
        self.offset = offset
    }

    package var description: String {
        self.offset == 0 ? "Redis sent \(self.text)" : "Redis sent \(self.text) at byte \(self.offset) of a value"
    }

    private var text: String {
        switch self.rule {
        case .unknownType(let byte): "a value of the unknown type \(byte)"
        case .bareLineEnd: "half a line end"
        case .lineTooLong(let limit): "a line of more than \(limit) bytes"
        case .malformedLength: "a malformed length"
        case .malformedNumber: "a malformed number"
        case .malformedDouble: "a malformed double"
        case .malformedBoolean: "a malformed boolean"
        case .malformedNull: "a malformed null"
        case .malformedVerbatimString: "a verbatim string without format"
        case .stringWithoutEnd: "a string longer than its length"
        case .valueTooLarge(let limit): "more than \(limit) bytes"
        case .tooDeep(let limit): "more than \(limit) nested values"
        case .tooManyElements(let limit): "more than \(limit) elements"
        case .misplacedPush: "a push that is empty or in another value"
        case .misplacedEnd: "the end of an aggregate that cannot end here"
        case .misplacedChunk: "a misplaced part of a streamed string"
        case .unsupportedStreaming: "a streamed value of a type that is not streamed"
        case .malformedPush: "a malformed push"
        case .unrequestedReply: "a reply to no command"
        case .unexpectedReply: "a reply that does not fit its command"
        }
    }
}
