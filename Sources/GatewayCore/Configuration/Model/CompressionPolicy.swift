/// permessage-deflate (RFC 7692), where it is on.
package struct CompressionPolicy: Sendable, Equatable {
    /// zlib's effort, 1 (fast) to 9 (small).
    package var level = 6
    /// Messages of fewer bytes leave as they are. 0 to 1 MiB.
    package var minimumSize = 64
    /// The compression state lives on from message to message: smaller messages, more memory for each connection.
    package var keepsContext = true
    /// Size of our window as a power of two, 9 to 15.
    package var windowBits = 15

    package init() {}
}
