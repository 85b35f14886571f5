/// A violation of the protocol by the peer after the opening handshake; caused by received bytes only.
public struct PeerViolation: Error, Equatable, Hashable, Sendable {
    public enum Rule: String, Sendable, Hashable {
        case reservedBits = "a reserved bit is set"
        case reservedOpcode = "the opcode is reserved"
        case unmaskedClientFrame = "a client's frame is not masked"
        case maskedServerFrame = "a server's frame is masked"
        case lengthNotMinimal = "the payload length is not written in the fewest bytes"
        case lengthTooLarge = "the payload length has its highest bit set"
        case fragmentedControlFrame = "a control frame is fragmented"
        case longControlFrame = "a control frame has more than 125 bytes"
        case unexpectedContinuation = "a continuation without a message to continue"
        case unfinishedMessage = "a new message before the last one was finished"
        case invalidUTF8 = "text is not UTF-8"
        case invalidCloseFrame = "the Close frame is malformed"
        case invalidCloseCode = "the close code may not be sent"
        case invalidCompressedData = "the compressed data is corrupt"
        case messageTooLong = "the message is longer than accepted"
    }

    public let rule: Rule

    public init(_ rule: Rule) {
        self.rule = rule
    }

    /// The code for failing the connection (RFC 6455 §7.4.1).
    public var closeCode: CloseCode {
        switch self.rule {
        case .invalidUTF8, .invalidCompressedData: .invalidPayloadData
        case .messageTooLong: .messageTooBig
        case .reservedBits, .reservedOpcode, .unmaskedClientFrame, .maskedServerFrame, .lengthNotMinimal,
            .lengthTooLarge, .fragmentedControlFrame, .longControlFrame, .unexpectedContinuation, .unfinishedMessage,
            .invalidCloseFrame, .invalidCloseCode:
            .protocolError
        }
    }
}
