/// Decodes one content coding incrementally, with bounded output. Not thread-safe.
package protocol CodingDecoder: AnyObject {
    /// Decodes `input` from offset `consumed` on into `output` from offset `written` on, and advances both: until the input
    /// is used up, the room is full, or a stream has ended.
    /// - Throws: `written` includes the output before the failure.
    func decode(
        _ input: RawSpan, consumed: inout Int, into output: inout MutableRawSpan, written: inout Int
    ) throws(CodingFailure) -> DecodingProgress
}

/// Why a decoder has stopped.
package enum DecodingProgress: Equatable, Sendable {
    case needsInput
    /// There may be more output without further input.
    case outputFull
    /// All output of a stream has been written, and nothing of another has been read.
    case ended
}

/// Why bytes could not be decoded.
package enum CodingFailure: Error, Equatable, Sendable {
    /// The bytes are invalid, or need more memory than a decoder may use; the reason is for a log.
    case corrupt(reason: String)
    case outOfMemory
}
