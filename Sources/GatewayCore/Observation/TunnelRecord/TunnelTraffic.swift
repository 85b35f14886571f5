/// What one direction of a tunnel carried.
package struct TunnelTraffic: Hashable, Sendable {
    /// Payload bytes, as received from its source.
    package var bytes: UInt64
    /// Messages received; 0 from a stream.
    package var messages: UInt64

    package init(bytes: UInt64 = 0, messages: UInt64 = 0) {
        self.bytes = bytes
        self.messages = messages
    }
}
