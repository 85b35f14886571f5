import ByteKernels

extension WebSocketEngine {
    /// Inflates what is here of the current frame into the scratch. What there is no room for comes again, unmasked: each
    /// byte is looked at once, however often what inflates to much is offered.
    /// - Returns: `nil` when the input gave nothing (yet).
    mutating func inflateNext(
        _ buffer: inout MutableRawSpan, at position: inout Int
    ) throws(PeerViolation) -> WebSocketEvent? {
        guard let deflate = self.deflate else { throw PeerViolation(.reservedBits) }
        let start = position + (self.holdsByteBack ? 1 : 0)
        let count = min(self.frameLeft, buffer.byteCount - start, Self.mostInflatedAtOnce)
        guard count > 0 || count == 0 && (self.frameLeft == 0 || self.holdsByteBack) else { return nil }
        let range = start..<(start + count)
        self.mask(&buffer, (start + min(Int(self.unmaskedAhead), count))..<range.upperBound)
        var used = 0
        var written = 0
        var stop = deflate.inflate(buffer.bytes.extracting(range), used: &used, written: &written)
        self.unmaskedAhead = UInt32(truncatingIfNeeded: count - used)
        self.frameLeft -= used
        if stop == .needsInput, self.frameLeft == 0, self.frameIsFinal {
            var given = Int(self.tailGiven)
            stop = deflate.finishMessage(tailGiven: &given, written: &written)
            self.tailGiven = UInt8(truncatingIfNeeded: given)
        }
        self.move(&position, to: start + used, of: buffer.byteCount, stop)
        return try self.inflated(written, deflate.share, stop)
    }

    /// Bytes of input, so that they can be counted in four bytes; a buffer never holds so many.
    private static let mostInflatedAtOnce = 1 << 30

    /// Where more is to come out, but nothing is left over to be offered again, one byte stays behind for it.
    private mutating func move(_ position: inout Int, to end: Int, of count: Int, _ stop: InflateStop) {
        self.holdsByteBack = stop == .outputFull && end == count && end > position
        position = self.holdsByteBack ? end - 1 : end
    }

    private mutating func inflated(
        _ written: Int, _ share: DeflateShare, _ stop: InflateStop
    ) throws(PeerViolation) -> WebSocketEvent? {
        let room = self.messageLimit - self.messageLength
        let count = min(written, room)
        let fault: PeerViolation.Rule? =
            written > room ? .messageTooLong : stop == .corrupt ? .invalidCompressedData : nil
        let endsFrame = stop == .needsInput && self.frameLeft == 0 && fault == nil
        self.messageLength += count
        guard count > 0 || endsFrame || fault != nil else { return nil }
        let result = share.output.withRawSpan { bytes -> Result<DataChunk, PeerViolation> in
            do throws(PeerViolation) {
                let text = bytes.extracting(0..<count)
                return .success(try self.chunk(.inflated(count), text, endsFrame: endsFrame, fault: fault))
            } catch {
                return .failure(error)
            }
        }
        return .data(try result.get())
    }
}
