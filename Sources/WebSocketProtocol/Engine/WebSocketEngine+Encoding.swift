import ByteKernels

extension WebSocketEngine {
    /// Bytes that a frame with this payload takes on the wire.
    public func frameSize(payloadCount: Int) -> Int {
        self.role.frameSize(payloadCount: payloadCount)
    }

    /// Writes a frame to the front of `target`, which has room for `frameSize`: the header, and the payload masked on
    /// its way if we are a client.
    /// - Returns: the bytes written.
    @discardableResult
    public func encodeFrame(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool = false, _ payload: RawSpan, keys: MaskingKeys,
        into target: inout MutableRawSpan
    ) -> Int {
        self.role.encodeFrame(
            opcode, isFinal: isFinal, isCompressed: isCompressed, payload, keys: keys, into: &target)
    }

    /// Compresses the payload of one data frame where that was agreed and pays.
    ///
    /// - Returns: where the compressed payload is, to be sent in the given one's place with RSV1 on a message's first
    ///   frame; `nil` to send it as it is.
    package mutating func compress(startsMessage: Bool, endsMessage: Bool, _ payload: RawSpan) -> DeflateShare? {
        guard let deflate = self.deflate else { return nil }
        if startsMessage {
            self.sendsCompressed = deflate.isWorthIt(count: payload.byteCount, isWhole: endsMessage)
        }
        guard self.sendsCompressed else { return nil }
        guard deflate.deflate(payload, endsMessage: endsMessage) else {
            // Only the first frame can find no memory; those behind it then go as they are, too.
            self.sendsCompressed = false
            return nil
        }
        return deflate.share
    }
}
