import NIOCore

/// A handler below a connection's HTTP codec that can give the bytes to somebody else, past the codec. On its event loop.
protocol RawWire: AnyObject {
    var context: ChannelHandlerContext? { get }
    /// From now on `taker` has the bytes.
    /// - Returns: those that came before.
    func becomeRaw(_ taker: any RawBytesTaker) -> ByteBuffer
}

extension WireHandler: RawWire {}
