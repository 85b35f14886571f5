/// Why a WebSocket was closed (RFC 6455 §7.4). Open: any number can be a value, whether or not it may go over the
/// wire.
public struct CloseCode: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt16

    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    public static let normalClosure = CloseCode(rawValue: 1000)
    public static let goingAway = CloseCode(rawValue: 1001)
    public static let protocolError = CloseCode(rawValue: 1002)
    public static let unsupportedData = CloseCode(rawValue: 1003)
    /// Never sent: stands for a Close frame without a code.
    public static let noStatusReceived = CloseCode(rawValue: 1005)
    /// Never sent: stands for an end without a Close frame.
    public static let abnormalClosure = CloseCode(rawValue: 1006)
    public static let invalidPayloadData = CloseCode(rawValue: 1007)
    public static let policyViolation = CloseCode(rawValue: 1008)
    public static let messageTooBig = CloseCode(rawValue: 1009)
    public static let mandatoryExtension = CloseCode(rawValue: 1010)
    public static let internalError = CloseCode(rawValue: 1011)
    public static let serviceRestart = CloseCode(rawValue: 1012)
    public static let tryAgainLater = CloseCode(rawValue: 1013)
    public static let badGateway = CloseCode(rawValue: 1014)
    /// Never sent: stands for a failed TLS handshake.
    public static let tlsHandshake = CloseCode(rawValue: 1015)

    /// Whether a Close frame may carry it: the registered codes but 1004 to 1006 and 1015, and 3000 to 4999 (§7.4.2).
    public var isAllowedOnWire: Bool {
        switch self.rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
