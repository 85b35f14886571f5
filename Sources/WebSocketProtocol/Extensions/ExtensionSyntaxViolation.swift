/// `Sec-WebSocket-Extensions` does not follow the grammar of RFC 6455 §9.1.
public struct ExtensionSyntaxViolation: Error, Equatable, Sendable {
    /// The value of the header field at fault.
    public let value: String
    /// Where the grammar was left, in bytes from the start of `value`.
    public let offset: Int

    public init(value: String, offset: Int) {
        self.value = value
        self.offset = offset
    }
}
