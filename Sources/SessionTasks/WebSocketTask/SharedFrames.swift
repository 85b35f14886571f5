import ByteKernels
import StreamTransport
import WebSocketProtocol

/// Messages for many connections of one loop, framed once, as a server sends them without compression.
package final class SharedFrames {
    let bytes: [UInt8]
    /// Payload of all messages, in bytes.
    package let payloadCount: Int
    package let messageCount: Int

    package init(_ messages: [SharedMessage]) {
        var bytes: [UInt8] = []
        var payloadCount = 0
        // A server masks nothing.
        let keys = MaskingKeys { (0, []) }
        for message in messages {
            let count = Role.server.frameSize(payloadCount: message.payload.count)
            var frame = [UInt8](repeating: 0, count: count)
            frame.withMutableRawSpan { target in
                message.payload.withRawSpan {
                    _ = Role.server.encodeFrame(
                        message.kind.opcode, isFinal: true, isCompressed: false, $0, keys: keys, into: &target)
                }
            }
            bytes += frame
            payloadCount += message.payload.count
        }
        self.bytes = bytes
        self.payloadCount = payloadCount
        self.messageCount = messages.count
    }
}

extension WebSocketTask {
    package enum SharedSend {
        case sent
        /// So many bytes are queued that nothing was sent.
        case isBehind
        /// This connection needs frames of its own, because it masks or compresses them, or its messages are observed.
        /// Nothing was sent.
        case needsOwnFrames
    }

    /// Sends the messages, as `send` would one after another, by one write of bytes that are not copied for it. Ignored
    /// unless the task is open, or has yet to answer the peer's Close.
    /// - Parameters:
    ///   - isLast: no other write follows in this turn: the bytes need not wait for its end.
    ///   - watermark: queued bytes from which on nothing is sent.
    package func send(_ frames: SharedFrames, isLast: Bool, below watermark: Int) -> SharedSend {
        self.loop.assertOnLoop()
        guard self.role == .server, self.deflateContext == nil, !self.isTapped else { return .needsOwnFrames }
        guard let transport = self.transport else { return .sent }
        guard transport.queuedBytes < watermark else { return .isBehind }
        guard self.machine.acceptsData, frames.messageCount > 0 else { return .sent }
        frames.bytes.withRawSpan { _ = isLast ? transport.writeThrough($0) : transport.write($0) }
        self.record.countSent(bytes: frames.payloadCount, messages: frames.messageCount, at: self.loop.now)
        if self.machine.pieceSent(endsMessage: true) { self.sendWaiting() }
        return .sent
    }
}
