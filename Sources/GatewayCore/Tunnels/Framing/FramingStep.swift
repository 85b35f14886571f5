import WebSocketProtocol

/// What to do next with the bytes of a stream on their way into messages.
package enum FramingStep: Hashable, Sendable {
    /// Nothing more can be made of the input. Bytes from the offset on were not used: they must stand at the front of
    /// the next input.
    case exhausted
    /// Send these bytes of the input, as they are.
    case chunk(Range<Int>, ChunkMark)
    /// Send these bytes, which the input does not hold in this form.
    case made([UInt8], ChunkMark)
    /// The stream broke the framing; every later step says the same.
    case violation(FramingViolation)
}
