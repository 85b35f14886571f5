/// What becomes of a chunk of a message on its way into a byte stream.
package enum StreamDelivery: Hashable, Sendable {
    /// Write the chunk as it is.
    case unchanged
    /// Write what was appended instead of the chunk, which may be nothing yet.
    case rewritten
    /// The peer broke the framing; every later chunk gets the same answer.
    case violation(FramingViolation)
}
