/// Settings and limits that one side announces.
package struct HTTP2Settings: Equatable, Sendable {
    /// Bytes of each stream's body that may be sent to this side before it consumes them. 1 to 2^31 - 1.
    package var streamWindow: Int32 = 1 << 20
    /// Bytes of all streams together that may be in flight. They are released when `data` is given out, so that a
    /// stream that is not consumed does not stop the others. 65 535 to 2^31 - 1.
    package var connectionWindow: Int32 = 8 << 20
    /// Size of a head or trailer section that is accepted, counted as `HTTP2FieldBlock.listSize`. Announced too.
    package var maximumHeaderListSize = 256 << 10
    /// Size of a head or trailer section that is sent, counted likewise.
    package var maximumSentHeaderListSize = 256 << 10
    /// Streams that the peer may have open; for a server. A client accepts none: push is refused.
    package var maximumConcurrentStreams: UInt32 = 100
    /// Frames that may come within a second in excess of content, before the connection is ended with
    /// ENHANCE_YOUR_CALM: SETTINGS, PING, WINDOW_UPDATE, PRIORITY, empty DATA and such. 5 bytes of content make up for
    /// a frame, their own or another one, and a head for all before it.
    package var maximumIdleFrames = 10_000
    /// Bytes that may come within a minute in excess of heads and content of open streams, before the connection is
    /// ended likewise: frames of unknown types, padding, and DATA of streams that are over. Well above the largest window
    /// that the connection is given, because the peer may have sent as much on streams that were reset meanwhile.
    package var maximumIdleBytes = 32 << 20

    package init() {}
}
