/// Reads the head of a response as its bytes arrive, strictly by RFC 9112: no folding, no bare CR or LF, no control
/// characters, no whitespace where none belongs.
public struct ResponseParser: Sendable {
    private let limits: HeadLimits
    private var reader: HeadReader

    public init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        self.reader = HeadReader(limits: limits, readStartLine: StartLine.readResponse)
    }

    /// Reads the next piece from offset `consumed` on and advances it.
    ///
    /// Every byte is given once; the parser keeps what it still needs, within its limits. With the head complete,
    /// `consumed` is the offset of what follows it, and the parser is ready for another head.
    /// - Returns: the head, or `nil` until all of it is there; `consumed` is then the end of `bytes`.
    /// - Throws: the first rule broken, the same for every split of the same bytes; from then on for every further
    ///   call.
    public mutating func parse(_ bytes: RawSpan, consumed: inout Int) throws(HeadViolation) -> ResponseHead? {
        guard try self.reader.read(bytes, consumed: &consumed),
            case .response(let version, let status, let reason) = self.reader.startLine
        else { return nil }
        let head = ResponseHead(version: version, status: status, reason: reason, fields: self.reader.fields)
        self = ResponseParser(limits: self.limits)
        return head
    }
}
