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
                let taken = unsafe self.stream.offer(source, from: consumed)
                let room = unsafe self.stream.lend(target, from: written)
                let result = unsafe CZlib.deflate(self.stream, flush.flag)
                consumed += unsafe taken - Int(self.stream.pointee.avail_in)
                written += unsafe room - Int(self.stream.pointee.avail_out)
                unsafe self.stream.takeBack()
                return result
            }
        }
    }
}
