import ByteKernels

extension FrameForwarder {
    /// Takes what nearly every read brings, faster than `next`, with which it may alternate: one message in one plain
    /// frame of at most 65535 bytes, which breaks no rule and is all that there is from `position` on.
    ///
    /// - Parameter position: moved to the end of `buffer`.
    /// - Returns: `nil`, with nothing changed, where it is anything else.
    package mutating func nextWholeMessage(_ buffer: inout MutableRawSpan, at position: inout Int) -> FrameRun? {
        guard self.isAtRest,
            let frame = PlainFrame(
                buffer.bytes, at: position, from: self.scanner.sender, limit: self.scanner.messageLimit),
            frame.payload.upperBound == buffer.byteCount
        else { return nil }
        if self.scanner.sender == .client {
            guard self.changeKey(of: frame, &buffer) else { return nil }
        } else if frame.isText, !frame.isValidText(in: buffer.bytes) {
            return nil
        }
        let run = FrameRun(of: frame, from: position)
        position = frame.payload.upperBound
        return run
    }

    /// - Returns: whether the payload may go over; if not, the frame is left as it came.
    private mutating func changeKey(of frame: PlainFrame, _ buffer: inout MutableRawSpan) -> Bool {
        let old = frame.maskingKey(in: buffer.bytes)
        if frame.isText {
            frame.mask(&buffer, old)
            let isValid = frame.isValidText(in: buffer.bytes)
            guard isValid else {
                frame.mask(&buffer, old)
                return false
            }
        }
        let new = self.keys.next()
        // Both keys at once where the payload is of no use to us.
        frame.mask(&buffer, frame.isText ? new : old ^ new)
        buffer.storeBytes(of: new.littleEndian, toByteOffset: frame.payload.lowerBound - 4, as: UInt32.self)
        return true
    }
}
