import StreamTransport
import TLSEngine

/// How far an opening came: for who measures it, and who tells failures apart by more than their words.
package enum OpeningStep: Sendable {
    /// The connection stands. `resolvedAt`: when the name was known; `nil` where an address was given.
    case connected(resolvedAt: MonotonicInstant?, local: SocketAddress?, peer: SocketAddress?)
    /// The TLS handshake begins, and is done.
    case securing
    case secured(TLSFacts)
    /// The opening request is on its way: so many bytes.
    case requested(bytes: Int)
    /// The head of the answer is there: so many bytes, those of interim heads included.
    case answered(bytes: Int)
    case failed(TransportFailure)
}
