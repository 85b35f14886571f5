/// What a Close frame says (RFC 6455 §5.5.1).
package struct CloseSignal: Hashable, Sendable {
    /// `nil` where the frame is empty (1005 to a reader; never on the wire).
    package var code: UInt16?
    /// UTF-8, at most 123 bytes; empty without a code.
    package var reason: [UInt8]

    package init(code: UInt16?, reason: [UInt8] = []) {
        self.code = code
        self.reason = reason
    }

    package static let normal = CloseSignal(code: 1000)
    package static let goingAway = CloseSignal(code: 1001)
    /// The other side of the tunnel ended abnormally.
    package static let otherSideFailed = CloseSignal(code: 1011)

    /// Whether the sender means a regular end. Normal, going away and no code are; so are the applications' own codes
    /// (3000 to 4999), whose meaning we cannot know. All others name a fault: 1002, 1003, 1007 to 1014.
    package var isRegular: Bool {
        switch self.code {
        case nil, 1000, 1001, .some(3000...4999): true
        default: false
        }
    }
}
