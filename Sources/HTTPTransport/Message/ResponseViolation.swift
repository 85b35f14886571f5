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
