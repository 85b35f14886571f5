import StreamTransport

/// A connection that ended before the response did, before any of its content.
package struct ConnectionLoss: Sendable, Hashable {
    /// What the system said; `nil` if the server just finished sending.
    package let cause: TransportFailure?
    /// Whether the connection had served another request before: the server may have closed it for being idle, and not
    /// have seen this one.
    package let wasReused: Bool
    /// Whether an informational head had come: the server has seen the request.
    package let responseBegan: Bool
    /// Whether this was the second try, on a fresh connection.
    package let wasRepeated: Bool

    package init(cause: TransportFailure?, wasReused: Bool, responseBegan: Bool, wasRepeated: Bool) {
        self.cause = cause
        self.wasReused = wasReused
        self.responseBegan = responseBegan
        self.wasRepeated = wasRepeated
    }
}
