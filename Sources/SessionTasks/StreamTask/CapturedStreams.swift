import StreamTransport

/// A connection taken out of its task: the receiver is now the transport's consumer and owner.
package struct CapturedStreams {
    package let transport: any Transport
    /// Received, and first in line.
    package let unread: [UInt8]
    /// The peer's end of input was seen already.
    package let inputClosed: Bool
}
