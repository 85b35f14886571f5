/// Gives the body of a request piece by piece, as fast as the connection takes it and no faster.
///
/// Called on the exchange's event loop, so it must not block for long; one that has to wait answers `.later`.
package protocol BodySource: AnyObject, Sendable {
    /// Fills the front of `room`, which is never empty. Not called again after `.end` or `.failed`, unless rewound.
    func read(into room: inout MutableRawSpan) -> BodyRead

    /// Begins again from the first byte, because the connection was lost before the server answered.
    /// - Returns: `false` if that cannot be done; the request is then not repeated.
    func rewind() -> Bool
}
