/// What one side announces and bounds.
package struct HTTP2Settings: Equatable, Sendable {
    /// Bytes of each stream's body that may be sent to this side before it consumes them. 1 to 2^31 - 1.
    package var streamWindow: Int32 = 1 << 20
    /// Bytes of all streams together that may be on their way. They are released when `data` is given out, so that a
    /// stream that is not consumed does not stop the others. 65 535 to 2^31 - 1.
    package var connectionWindow: Int32 = 8 << 20
    /// Size of a head or trailer section that is accepted, counted as `HTTP2FieldBlock.listSize`. Announced too.
    package var maximumHeaderListSize = 256 << 10
    /// Streams that the peer may have open; for a server. A client accepts none: push is refused.
    package var maximumConcurrentStreams: UInt32 = 100
    /// Frames without content (SETTINGS, PING, WINDOW_UPDATE, PRIORITY, empty DATA and such) that may come in a row
    /// before the connection is ended with ENHANCE_YOUR_CALM.
    package var maximumIdleFrames = 10_000

    package init() {}
}
