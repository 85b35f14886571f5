import Foundation

extension URLSessionWebSocketTask {
    /// Why a WebSocket is closed (RFC 6455 §7.4). Any number can be one: programs have 3000 to 4999 for themselves.
    public struct CloseCode: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int

        /// Never `nil`: that it could be is what programs expect.
        public init?(rawValue: Int) { self.rawValue = rawValue }

        init(number: Int) { self.rawValue = number }

        /// There is none.
        public static let invalid = CloseCode(number: 0)
        public static let normalClosure = CloseCode(number: 1000)
        public static let goingAway = CloseCode(number: 1001)
        public static let protocolError = CloseCode(number: 1002)
        public static let unsupportedData = CloseCode(number: 1003)
        public static let noStatusReceived = CloseCode(number: 1005)
        public static let abnormalClosure = CloseCode(number: 1006)
        public static let invalidFramePayloadData = CloseCode(number: 1007)
        public static let policyViolation = CloseCode(number: 1008)
        public static let messageTooBig = CloseCode(number: 1009)
        public static let mandatoryExtensionMissing = CloseCode(number: 1010)
        public static let internalServerError = CloseCode(number: 1011)
        public static let tlsHandshakeFailure = CloseCode(number: 1015)
    }

    /// One whole message.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }
}
