/// The peer's bytes are no head that we would read on from (RFC 9112 §2 to §5).
public enum HeadViolation: Error, Equatable, Sendable {
    /// More bytes than `limit` without the empty line that ends a head.
    case tooLong(limit: Int)
    /// More field lines than `limit`.
    case tooManyFields(limit: Int)
    /// The first line is not what a request or a response begins with.
    case malformedStartLine
    /// A field line begins with whitespace (RFC 9112 §5.2).
    case foldedField
    /// Whitespace between the name of a field and its colon (RFC 9112 §5.1).
    case whitespaceBeforeColon
    /// A field without a colon, or with a name that is not a token.
    case malformedFieldName
    /// A carriage return without a line feed behind it (RFC 9112 §2.2).
    case bareCarriageReturn
    /// A line feed without a carriage return in front of it.
    case bareLineFeed
    /// NUL or another control character.
    case controlCharacter

    /// The status with which a server refuses such a head: 431 beyond a limit, else 400.
    public var status: Int {
        switch self {
        case .tooLong, .tooManyFields: 431
        case .malformedStartLine, .foldedField, .whitespaceBeforeColon, .malformedFieldName, .bareCarriageReturn,
            .bareLineFeed, .controlCharacter:
            400
        }
    }

    /// What is wrong, for a person, in one sentence.
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
