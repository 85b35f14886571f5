/// Why a request cannot be sent: the caller's fault.
package enum RequestFault: Error, Sendable, Hashable {
    /// Not a token.
    case method
    /// Empty, or with a blank or control character in it.
    case target
    case fieldName
    /// A control character, as a line break is, in a value.
    case fieldValue
    /// The fields say something else about the body's length than the body does.
    case bodyLength
    /// A port of 0, an empty host, or `https` without `ExchangeOrder.secure`.
    case origin
}
