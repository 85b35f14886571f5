import CZlib

/// Incremental decompressor with bounded output.
///
/// Uses about 7 KiB, and the window (2^windowBits bytes) once output must be remembered.
@safe
package final class Inflater {
    package let format: DeflateFormat
    /// Base-2 logarithm of the window size, 8 to 15.
    package let windowBits: Int
    /// On the heap, because zlib stores its address.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Parameter windowBits: clamped to 8...15. At least the sender's: a stream that reaches back further is corrupt.
    ///   Below 15 zlib detects that only if it also reaches back beyond the output of the same call.
    /// - Returns: `nil` without memory.
    package init?(format: DeflateFormat, windowBits: Int = 15) {
        self.format = format
        self.windowBits = min(max(windowBits, 8), 15)
        unsafe self.stream = .allocate(capacity: 1)
        unsafe self.stream.initialize(to: z_stream())
        let result = unsafe inflateInit2_(
            self.stream, format.windowBitsForZlib(self.windowBits), ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard result == Z_OK else { return nil }
    }

    deinit {
        // Harmless after a failed initializer: zlib has no state to free.
        unsafe inflateEnd(self.stream)
        unsafe self.stream.deinitialize(count: 1)
        unsafe self.stream.deallocate()
    }

    /// Starts a new stream without history; keeps its memory.
    package func reset() {
        unsafe inflateReset(self.stream)
    }

    /// After `.streamEnd` of a raw stream: accepts further blocks, which may refer to earlier data.
    ///
    /// In permessage-deflate a final block does not end the stream (RFC 7692 §7.2.3.4).
    package func continuePastEnd() {
        unsafe inflateResetKeep(self.stream)
    }

    /// Whether the input so far ends with a complete block at a byte boundary.
    package var isBetweenBlocks: Bool {
        // zlib's data_type: 128 is set right after a block; the lowest bits are the number of unused input bits.
        let state = unsafe self.stream.pointee.data_type
        return state & 0x80 != 0 && state & 0x1F == 0
    }

    /// Inflates `input` from offset `consumed` on into `output` from offset `written` on, and advances both.
    ///
    /// Call again with more input after `.needsInput`, with more room after `.outputFull`.
    /// - Throws: `.corrupt`, `.dictionaryRequired` or `.outOfMemory`; `written` includes the output before the failure.
    package func inflate(
        _ input: RawSpan, consumed: inout Int, into output: inout MutableRawSpan, written: inout Int
    ) throws(InflateFailure) -> InflateProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        while true {
            guard written < output.byteCount else { return .outputFull }
            let result = self.step(input, &consumed, &output, &written)
            switch result {
            case Z_STREAM_END: return .streamEnd
            // No progress: room is left, so input is missing.
            case Z_BUF_ERROR: return .needsInput
            case Z_OK:
                // A turn processes at most 4 GiB, so input and room may be left.
                if written < output.byteCount, consumed == input.byteCount { return .needsInput }
            default: throw self.failure(result)
            }
        }
    }

    private func step(
        _ input: RawSpan, _ consumed: inout Int, _ output: inout MutableRawSpan, _ written: inout Int
    ) -> Int32 {
        unsafe input.withUnsafeBytes { source in
            unsafe output.withUnsafeMutableBytes { target in
                let taken = unsafe self.stream.setInput(source, from: consumed)
                let room = unsafe self.stream.setOutput(target, from: written)
                let result = unsafe CZlib.inflate(self.stream, Z_SYNC_FLUSH)
                consumed += unsafe taken - Int(self.stream.pointee.avail_in)
                written += unsafe room - Int(self.stream.pointee.avail_out)
                unsafe self.stream.clearBuffers()
                return result
            }
        }
    }

    private func failure(_ result: Int32) -> InflateFailure {
        switch result {
        case Z_NEED_DICT: return .dictionaryRequired
        case Z_MEM_ERROR: return .outOfMemory
        default:
            let reason = unsafe self.stream.pointee.msg.map { unsafe String(cString: $0) }
            return .corrupt(reason: reason ?? "zlib result \(result)")
        }
    }
}

package enum InflateProgress: Equatable, Sendable {
    /// All input is consumed and its output written.
    case needsInput
    /// The output is full; there may be more, even without further input.
    case outputFull
    /// The final block is complete; input after it is not consumed. See `Inflater.continuePastEnd()`.
    case streamEnd
}

/// Why inflating failed. The inflater must be reset before further use.
package enum InflateFailure: Error, Equatable, Sendable {
    /// Invalid data, with zlib's text for a log.
    case corrupt(reason: String)
    /// The stream needs a preset dictionary, which is not supported.
    case dictionaryRequired
    /// No memory for the window.
    case outOfMemory
}
