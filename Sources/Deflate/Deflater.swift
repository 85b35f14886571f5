import CZlib

/// Compresses bytes, as many or as few at a time as there are.
///
/// Costs `DeflaterSettings.memoryCost`, 256 KiB by default. Compressing cannot fail once there is a deflater.
@safe
package final class Deflater {
    package let settings: DeflaterSettings
    /// On the heap since zlib remembers its address.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Returns: `nil` when there is no memory.
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
        // Harmless where the initializer failed: zlib then finds no state to free.
        unsafe deflateEnd(self.stream)
        unsafe self.stream.deinitialize(count: 1)
        unsafe self.stream.deallocate()
    }

    /// Back to the start of a stream, with nothing remembered; keeps its memory.
    package func reset() {
        unsafe deflateReset(self.stream)
    }

    /// Compresses `input` and appends all that the flush asks for to `output`. Behind `.finish` nothing is taken
    /// until `reset()`.
    ///
    /// Allocates only where `output` has not the capacity already.
    package func deflate(_ input: RawSpan, flush: DeflateFlush, appendingTo output: inout [UInt8]) {
        var consumed = 0
        // Room for the worst case of a small input, so that one turn does; large ones take several.
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
    /// After `.outputFull` call again with the same flush, the same input and more room, until `.done`. Each such
    /// turn needs more than six bytes of room, or the mark of a flush may appear twice (which decodes to the same).
    package func deflate(
        _ input: RawSpan, consumed: inout Int, flush: DeflateFlush, into output: inout MutableRawSpan,
        written: inout Int
    ) -> DeflateProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        while written < output.byteCount {
            // A turn takes 4 GiB at most: the flush belongs to the last of them.
            let isLastTurn = input.byteCount - consumed <= Int(UInt32.max)
            let result = self.step(input, &consumed, isLastTurn ? flush : .none, &output, &written)
            // Anything else than `Z_OK` means that there was nothing left to do.
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

/// How a deflater compresses; two deflaters of equal settings can stand in for each other.
package struct DeflaterSettings: Equatable, Sendable {
    package let format: DeflateFormat
    /// The largest distance that the output reaches back, as a power of two, 8 to 15.
    package let windowBits: Int
    /// 1 (fastest) to 9 (smallest); 0 stores without compressing.
    package let level: Int
    /// How much is spent on the search beside the window, 1 to 9: 2 to the power of this plus 9, in bytes.
    package let memoryLevel: Int

    /// Values outside of their ranges are brought into them.
    package init(format: DeflateFormat, windowBits: Int = 15, level: Int = 6, memoryLevel: Int = 8) {
        self.format = format
        self.windowBits = min(max(windowBits, 8), 15)
        self.level = min(max(level, 0), 9)
        self.memoryLevel = min(max(memoryLevel, 1), 9)
    }

    /// zlib refuses a window of 256 bytes when deflating raw, and its matches reach back 262 bytes less than its
    /// window: with 9 bits asked for, never more than 250 bytes. So 9 keeps every promise made about 8 (RFC 7692
    /// §7.1.2.1), and a peer that remembers 256 bytes can read it.
    var windowBitsForZlib: Int32 { self.format.windowBitsForZlib(max(self.windowBits, 9)) }

    /// Memory that a deflater of these settings holds, in bytes, to within a few KiB.
    package var memoryCost: Int { 1 << (max(self.windowBits, 9) + 2) + 1 << (self.memoryLevel + 9) }
}

/// What is wrapped around the compressed blocks.
package enum DeflateFormat: Equatable, Sendable {
    /// Nothing at all (RFC 1951), as permessage-deflate has it.
    case raw
    /// Two bytes of header and an Adler-32 behind (RFC 1950); HTTP's `deflate`.
    case zlib
    /// A header of ten bytes or more, a CRC-32 and the length behind (RFC 1952).
    case gzip

    /// The format and the window in the one number by which zlib knows them.
    func windowBitsForZlib(_ windowBits: Int) -> Int32 {
        switch self {
        case .raw: Int32(-windowBits)
        case .zlib: Int32(windowBits)
        case .gzip: Int32(windowBits + 16)
        }
    }
}

/// How much of what the deflater holds back must come out.
package enum DeflateFlush: Equatable, Sendable {
    /// Nothing needs to; compresses best.
    case none
    /// Everything, up to a byte boundary: the output then ends with `00 00 FF FF`, an empty stored block. A second
    /// flush with no input in between gives nothing at all; an empty message is the one byte `00` (RFC 7692
    /// §7.2.3.6).
    case sync
    /// As `sync`, and nothing behind refers to anything before.
    case full
    /// Everything, and the stream ends here. `reset()` begins the next one.
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

/// Why the deflater stopped.
package enum DeflateProgress: Equatable, Sendable {
    /// All input is taken and all that the flush asked for is written.
    case done
    /// The output has no room left: call again with the same flush and more room.
    case outputFull
}

/// Lending buffers to zlib for the length of one call. zlib counts in 32 bits, so a turn is 4 GiB at most.
extension UnsafeMutablePointer<z_stream> {
    /// Sets the input. zlib only reads it, although its declaration is older than `const`.
    /// - Returns: how many bytes are offered.
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
    /// - Returns: how many bytes of room there are.
    func setOutput(_ target: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        let count = UInt32(clamping: target.count - offset)
        unsafe self.pointee.avail_out = count
        if count > 0, let start = target.baseAddress {
            unsafe self.pointee.next_out = (start + offset).assumingMemoryBound(to: UInt8.self)
        }
        return Int(count)
    }

    /// Leaves no pointer behind to memory that was only lent.
    func clearBuffers() {
        unsafe self.pointee.next_in = nil
        unsafe self.pointee.avail_in = 0
        unsafe self.pointee.next_out = nil
        unsafe self.pointee.avail_out = 0
    }
}
