import CZlib

/// Incremental compressor.
///
/// Uses `DeflaterSettings.memoryCost` bytes, 256 KiB by default. Compressing cannot fail once a deflater exists.
@safe
package final class Deflater {
    package let settings: DeflaterSettings
    /// On the heap, because zlib stores its address.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Returns: `nil` without memory.
    package init?(_ settings: DeflaterSettings) {
        self.settings = settings
        unsafe self.stream = .allocate(capacity: 1)
        unsafe self.stream.initialize(to: z_stream())
        let result = unsafe deflateInit2_(
            self.stream, Int32(settings.level), Z_DEFLATED, settings.windowBitsForZlib, Int32(settings.memoryLevel),
            Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard result == Z_OK else { return nil }
    }

    deinit {
        // Harmless after a failed initializer: zlib has no state to free.
        unsafe deflateEnd(self.stream)
        unsafe self.stream.deinitialize(count: 1)
        unsafe self.stream.deallocate()
    }

    /// Starts a new stream without history; keeps its memory.
    package func reset() {
        unsafe deflateReset(self.stream)
    }

    /// Compresses `input` and appends the output to `output`. Requires `reset()` after `.finish`.
    ///
    /// Allocates only if the capacity of `output` is too small.
    package func deflate(_ input: RawSpan, flush: DeflateFlush, appendingTo output: inout [UInt8]) {
        var consumed = 0
        // Enough for the worst case of a small input, so that one turn suffices.
        var room = min(input.byteCount, 1 << 16) + 64
        while true {
            var progress = DeflateProgress.done
            output.append(addingCapacity: room) { target in
                unsafe target.withUnsafeMutableBufferPointer { buffer, initializedCount in
                    var span = unsafe MutableRawSpan(_unsafeBytes: UnsafeMutableRawBufferPointer(buffer))
                    progress = self.deflate(
                        input, consumed: &consumed, flush: flush, into: &span, written: &initializedCount)
                }
            }
            guard progress == .outputFull else { return }
            room = 1 << 15
        }
    }

    /// Compresses `input` from offset `consumed` on into `output` from offset `written` on, and advances both.
    ///
    /// After `.outputFull` call again with the same flush, the same input and more room, until `.done`. With six bytes
    /// of room or less the flush marker may appear twice (which decodes to the same).
    package func deflate(
        _ input: RawSpan, consumed: inout Int, flush: DeflateFlush, into output: inout MutableRawSpan,
        written: inout Int
    ) -> DeflateProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        while written < output.byteCount {
            // A turn processes at most 4 GiB; only the last one flushes.
            let isLastTurn = input.byteCount - consumed <= Int(UInt32.max)
            let result = self.step(input, &consumed, isLastTurn ? flush : .none, &output, &written)
            // Other results than `Z_OK` mean that nothing was left to do.
            if result != Z_OK || (isLastTurn && written < output.byteCount) { return .done }
        }
        return .outputFull
    }

    private func step(
        _ input: RawSpan, _ consumed: inout Int, _ flush: DeflateFlush, _ output: inout MutableRawSpan,
        _ written: inout Int
    ) -> Int32 {
        unsafe input.withUnsafeBytes { source in
            unsafe output.withUnsafeMutableBytes { target in
                let taken = unsafe self.stream.setInput(source, from: consumed)
                let room = unsafe self.stream.setOutput(target, from: written)
                let result = unsafe CZlib.deflate(self.stream, flush.flag)
                consumed += unsafe taken - Int(self.stream.pointee.avail_in)
                written += unsafe room - Int(self.stream.pointee.avail_out)
                unsafe self.stream.clearBuffers()
                return result
            }
        }
    }
}

/// The settings of a deflater; deflaters with equal settings are interchangeable.
package struct DeflaterSettings: Equatable, Sendable {
    package let format: DeflateFormat
    /// Base-2 logarithm of the window size, 8 to 15.
    package let windowBits: Int
    /// 1 (fastest) to 9 (smallest); 0 stores without compressing.
    package let level: Int
    /// zlib's memLevel, 1 to 9: 2^(memoryLevel + 9) bytes in addition to the window.
    package let memoryLevel: Int

    /// Values outside their ranges are clamped.
    package init(format: DeflateFormat, windowBits: Int = 15, level: Int = 6, memoryLevel: Int = 8) {
        self.format = format
        self.windowBits = min(max(windowBits, 8), 15)
        self.level = min(max(level, 0), 9)
        self.memoryLevel = min(max(memoryLevel, 1), 9)
    }

    /// zlib refuses a window of 256 bytes for raw deflate, and its matches reach back 262 bytes less than its window:
    /// with 9 bits at most 250 bytes. So 9 bits fulfil a negotiated limit of 8 (RFC 7692 §7.1.2.1).
    var windowBitsForZlib: Int32 { self.format.windowBitsForZlib(max(self.windowBits, 9)) }

    /// Memory of a deflater with these settings in bytes, to within a few KiB.
    package var memoryCost: Int { 1 << (max(self.windowBits, 9) + 2) + 1 << (self.memoryLevel + 9) }
}

/// The container format of the compressed blocks.
package enum DeflateFormat: Equatable, Sendable {
    /// No container (RFC 1951), as in permessage-deflate.
    case raw
    /// Header of two bytes, Adler-32 at the end (RFC 1950); HTTP's `deflate`.
    case zlib
    /// Header of ten bytes or more, CRC-32 and length at the end (RFC 1952).
    case gzip

    /// zlib's `windowBits` parameter, which encodes format and window.
    func windowBitsForZlib(_ windowBits: Int) -> Int32 {
        switch self {
        case .raw: Int32(-windowBits)
        case .zlib: Int32(windowBits)
        case .gzip: Int32(windowBits + 16)
        }
    }
}

/// The flush mode of a deflater.
package enum DeflateFlush: Equatable, Sendable {
    /// Buffers output; compresses best.
    case none
    /// Writes all output up to a byte boundary, ending with an empty stored block, `00 00 FF FF`. A second flush
    /// without input writes nothing; an empty message is the single byte `00` (RFC 7692 §7.2.3.6).
    case sync
    /// As `sync`, and later output does not refer to earlier data.
    case full
    /// Writes all output and ends the stream. `reset()` begins the next one.
    case finish

    var flag: Int32 {
        switch self {
        case .none: 0  // Z_NO_FLUSH
        case .sync: 2  // Z_SYNC_FLUSH
        case .full: 3  // Z_FULL_FLUSH
        case .finish: 4  // Z_FINISH
        }
    }
}

package enum DeflateProgress: Equatable, Sendable {
    /// All input is consumed and the flush is complete.
    case done
    /// No room is left: call again with the same flush and more room.
    case outputFull
}

/// Sets zlib's buffers for one call. zlib's counts have 32 bits, so a turn processes at most 4 GiB.
extension UnsafeMutablePointer<z_stream> {
    /// Sets the input. zlib only reads it, although it is not declared `const`.
    /// - Returns: the number of input bytes.
    func setInput(_ source: UnsafeRawBufferPointer, from offset: Int) -> Int {
        let count = UInt32(clamping: source.count - offset)
        unsafe self.pointee.avail_in = count
        if count > 0, let start = source.baseAddress {
            unsafe self.pointee.next_in = UnsafeMutablePointer<UInt8>(
                mutating: (start + offset).assumingMemoryBound(to: UInt8.self))
        }
        return Int(count)
    }

    /// Sets the output.
    /// - Returns: the number of bytes of room.
    func setOutput(_ target: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        let count = UInt32(clamping: target.count - offset)
        unsafe self.pointee.avail_out = count
        if count > 0, let start = target.baseAddress {
            unsafe self.pointee.next_out = (start + offset).assumingMemoryBound(to: UInt8.self)
        }
        return Int(count)
    }

    /// Removes the pointers to borrowed memory.
    func clearBuffers() {
        unsafe self.pointee.next_in = nil
        unsafe self.pointee.avail_in = 0
        unsafe self.pointee.next_out = nil
        unsafe self.pointee.avail_out = 0
    }
}
