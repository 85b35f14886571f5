/// What a record carries (RFC 8446 §5.1).
package enum ContentType: UInt8, Sendable {
    case alert = 21
    case handshake = 22
    case applicationData = 23
}
