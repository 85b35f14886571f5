import NIOCore

/// Who has a connection after it left HTTP. Called on its event loop.
protocol RawBytesTaker: AnyObject {
    func rawBytesReceived(_ bytes: ByteBuffer)
    func rawReadCompleted()
    func rawInputClosed()
    func rawErrorCaught(_ error: any Error)
    func rawConnectionEnded()
}
