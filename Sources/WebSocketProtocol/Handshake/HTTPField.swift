import ByteKernels

/// One header field line: a name and a value.
public struct HTTPField: Equatable, Sendable {
    /// As it was written; compare without regard to case.
    public let name: String
    /// Without the whitespace around it. Received bytes that are not valid UTF-8 are read as ISO-8859-1.
    public let value: String
    /// The value's bytes where `value` is only a reading of them: received, and not valid UTF-8 (obs-text of RFC 9110
    /// §5.5). A field that is passed on is written as these.
    private let received: [UInt8]?

    /// Takes what it is given: rendering a field that would break the head is refused there.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
        self.received = nil
    }

    /// A received field.
    init(_ name: String, received bytes: RawSpan) {
        self.name = name
        self.value = String(tolerant: bytes)
        // Every byte above ASCII has become two, so a reading is longer than what was read.
        self.received = self.value.utf8.count == bytes.byteCount ? nil : [UInt8](bytes)
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
        if let received = self.received {
            head.append(contentsOf: received)
        } else {
            head.append(contentsOf: self.value.utf8)
        }
        head.append(contentsOf: "\r\n".utf8)
    }
}
