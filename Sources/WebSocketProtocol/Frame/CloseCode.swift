import ByteKernels

/// A close code (RFC 6455 §7.4). Any number is a value, whether or not it may be sent.
public struct CloseCode: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt16

    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    public static let normalClosure = CloseCode(rawValue: 1000)
    public static let goingAway = CloseCode(rawValue: 1001)
    public static let protocolError = CloseCode(rawValue: 1002)
    public static let unsupportedData = CloseCode(rawValue: 1003)
    /// Never sent: a Close frame without a code was received.
    public static let noStatusReceived = CloseCode(rawValue: 1005)
    /// Never sent: the connection ended without a Close frame.
    public static let abnormalClosure = CloseCode(rawValue: 1006)
    public static let invalidPayloadData = CloseCode(rawValue: 1007)
    public static let policyViolation = CloseCode(rawValue: 1008)
    public static let messageTooBig = CloseCode(rawValue: 1009)
    public static let mandatoryExtension = CloseCode(rawValue: 1010)
    public static let internalError = CloseCode(rawValue: 1011)
    public static let serviceRestart = CloseCode(rawValue: 1012)
    public static let tryAgainLater = CloseCode(rawValue: 1013)
    public static let badGateway = CloseCode(rawValue: 1014)
    /// Never sent: the TLS handshake failed.
    public static let tlsHandshake = CloseCode(rawValue: 1015)

    /// Whether a Close frame may carry it: the registered codes except 1004 to 1006 and 1015, and 3000 to 4999
    /// (§7.4.2).
    public var isAllowedOnWire: Bool {
        switch self.rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// The payload of a Close frame: nothing, or a code with a reason (RFC 6455 §5.5.1).
public enum ClosePayload {
    /// Longest reason in bytes: the 125 of a control frame less 2 of the code.
    public static let reasonLimit = 123

    /// Encodes the payload of our Close frame.
    ///
    /// - Parameters:
    ///   - code: `nil` for an empty payload. A code that may not be sent is replaced by 1000.
    ///   - reason: truncated at a character to at most 123 bytes; left out if it is not UTF-8, or without a code.
    public static func encode(_ code: CloseCode?, reason: [UInt8]) -> [UInt8] {
        guard let code, code != .noStatusReceived else { return [] }
        let number = code.isAllowedOnWire ? code.rawValue : CloseCode.normalClosure.rawValue
        return [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] + Self.cut(reason)
    }

    private static func cut(_ reason: [UInt8]) -> [UInt8] {
        var end = min(reason.count, Self.reasonLimit)
        // Do not cut inside a character: the next byte must not be a continuation byte.
        while end > 0, end < reason.count, reason[end] & 0xC0 == 0x80 { end -= 1 }
        let kept = Array(reason[..<end])
        var validator = UTF8Validator()
        let isText = kept.withRawSpan { validator.validate($0) } == nil && validator.isComplete
        return isText ? kept : []
    }

    static func decode(_ payload: [UInt8]) throws(PeerViolation) -> (code: CloseCode?, reason: [UInt8]) {
        guard !payload.isEmpty else { return (nil, []) }
        guard payload.count >= 2 else { throw PeerViolation(.invalidCloseFrame) }
        let code = CloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isAllowedOnWire else { throw PeerViolation(.invalidCloseCode) }
        let reason = Array(payload.dropFirst(2))
        var validator = UTF8Validator()
        guard reason.withRawSpan({ validator.validate($0) }) == nil, validator.isComplete else {
            throw PeerViolation(.invalidUTF8)
        }
        return (code, reason)
    }
}
