/// One header field line: a name and a value.
public struct HTTPField: Equatable, Sendable {
    /// As it was written; compare without regard to case.
    public let name: String
    /// Without the whitespace around it. Received bytes that are not valid UTF-8 are read as ISO-8859-1.
    public let value: String

    /// Takes what it is given: rendering a field that would break the head is refused there.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the field can be written as one line: the name a token, the value without control characters and
    /// without whitespace around it (RFC 9110 §5.5).
    public var isWellFormed: Bool {
        guard self.name.isToken, !self.value.utf8.contains(where: \.isForbiddenInHead) else { return false }
        let isPadded = [self.value.utf8.first, self.value.utf8.last].contains { $0?.isFieldWhitespace == true }
        return !isPadded
    }

    func append(to head: inout [UInt8]) {
        head.append(contentsOf: self.name.utf8)
        head.append(contentsOf: ": ".utf8)
        head.append(contentsOf: self.value.utf8)
        head.append(contentsOf: "\r\n".utf8)
    }
}
