import ByteKernels
import StreamTransport

/// The client of a SOCKS proxy. Replies are a few bytes and are read one by one: what follows them is the server's.
package protocol SOCKSClient: ProxyClient {
    /// Whether the proxy has connected or refused.
    var isFinished: Bool { get }
    /// Called for each byte of the proxy until the client is finished.
    mutating func received(_ byte: UInt8) -> ProxyAction
    mutating func fail(_ failure: ProxyFailure) -> ProxyAction
}

extension SOCKSClient {
    package mutating func bytesReceived(_ bytes: RawSpan, consumed: inout Int) -> ProxyAction {
        while consumed < bytes.byteCount, !self.isFinished {
            let byte = bytes[byte: consumed]
            consumed += 1
            let action = self.received(byte)
            if action != .wait { return action }
        }
        return .wait
    }

    package mutating func inputClosed() -> ProxyAction { self.isFinished ? .wait : self.fail(.closed) }

    package mutating func deadlinePassed() -> ProxyAction { self.isFinished ? .wait : self.fail(.timedOut) }
}
