/// An error that answers one command. Numbers and words are those of Centrifugo, so that its clients act on them.
package struct CommandError: Error, Sendable, Hashable {
    package let code: UInt32
    package let message: String
    /// The same command may succeed later.
    package let isTemporary: Bool

    private init(_ code: UInt32, _ message: String, isTemporary: Bool = false) {
        self.code = code
        self.message = message
        self.isTemporary = isTemporary
    }

    package static let `internal` = CommandError(100, "internal server error", isTemporary: true)
    package static let unauthorized = CommandError(101, "unauthorized")
    package static let unknownChannel = CommandError(102, "unknown channel")
    package static let permissionDenied = CommandError(103, "permission denied")
    package static let methodNotFound = CommandError(104, "method not found")
    package static let alreadySubscribed = CommandError(105, "already subscribed")
    package static let limitExceeded = CommandError(106, "limit exceeded")
    package static let badRequest = CommandError(107, "bad request")
    package static let notAvailable = CommandError(108, "not available")
    package static let tokenExpired = CommandError(109, "token expired")
    package static let expired = CommandError(110, "expired")
    package static let tooManyRequests = CommandError(111, "too many requests", isTemporary: true)
    package static let unrecoverablePosition = CommandError(112, "unrecoverable position")
}

/// The end of a connection by the server, as the code and reason of the Close frame. Clients connect again unless the
/// code is in 3500...3999 or 4500...4999.
package struct Disconnect: Error, Sendable, Hashable {
    package let code: UInt16
    /// At most 123 bytes.
    package let reason: String

    package init(_ code: UInt16, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Whether clients connect again.
    package var isTemporary: Bool { !(3500..<4000).contains(self.code) && !(4500..<5000).contains(self.code) }

    package static let shutdown = Disconnect(3001, "shutdown")
    package static let expired = Disconnect(3005, "connection expired")
    package static let subscriptionExpired = Disconnect(3006, "subscription expired")
    package static let slow = Disconnect(3008, "slow")
    package static let insufficientState = Disconnect(3010, "insufficient state")
    package static let noPong = Disconnect(3012, "no pong")
    package static let tooManyRequests = Disconnect(3013, "too many requests")
    package static let invalidToken = Disconnect(3500, "invalid token")
    package static let badRequest = Disconnect(3501, "bad request")
    package static let stale = Disconnect(3502, "stale")
    package static let forceNoReconnect = Disconnect(3503, "force disconnect")
    package static let connectionLimit = Disconnect(3504, "connection limit")
    package static let channelLimit = Disconnect(3505, "channel limit")
    package static let notAvailable = Disconnect(3508, "not available")
    package static let tooManyErrors = Disconnect(3509, "too many errors")
}

/// The end of a subscription by the server. Clients subscribe again from 2500 on.
package struct UnsubscribeCode: Sendable, Hashable {
    package let code: UInt32
    package let reason: String

    package static let server = UnsubscribeCode(code: 2000, reason: "server unsubscribe")
    package static let insufficient = UnsubscribeCode(code: 2500, reason: "insufficient state")
    package static let expired = UnsubscribeCode(code: 2501, reason: "subscription expired")

    /// How the connection ends instead, if the server made the subscription: its client does not subscribe again, but it
    /// connects again. `nil` if the client is not wanted back.
    var disconnect: Disconnect? {
        switch self {
        case .insufficient: .insufficientState
        case .expired: .subscriptionExpired
        default: nil
        }
    }
}
