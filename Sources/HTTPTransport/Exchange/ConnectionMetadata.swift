import SessionTasks
import StreamTransport
import TLSEngine

/// The connection that an exchange uses.
package struct ConnectionMetadata: Sendable, Hashable {
    package var localAddress: SocketAddress?
    /// The proxy's, if there is one.
    package var peerAddress: SocketAddress?
    package var isProxied = false
    /// The way that it took when it was opened; `nil` if that was not to be reported.
    package var path: ConnectionPath?
    /// `nil` without TLS.
    package var tls: TLSMetadata?
    /// Of the connection to the proxy itself; `nil` without TLS.
    package var proxyTLS: TLSMetadata?
    /// Whether the exchange's request is sent as early data, which the server may refuse with 425 (RFC 8470 §5.2).
    package var sendsEarlyData = false
    /// The ALPN name; `nil` if opening failed.
    package var networkProtocol: String? = "http/1.1"
    /// Whether it served another exchange before. The timings are then empty.
    package var isReused = false
    package var timings = ConnectTimings()

    package init() {}

    /// The numeric address; `nil` for a Unix socket.
    package var localHost: String? { self.localPort == nil ? nil : self.localAddress?.host }
    package var localPort: Int? { self.localAddress?.port.map(Int.init) }

    /// The numeric address; `nil` for a Unix socket.
    package var peerHost: String? { self.peerPort == nil ? nil : self.peerAddress?.host }
    package var peerPort: Int? { self.peerAddress?.port.map(Int.init) }
}

/// A connection that ended before the final response head.
package struct ConnectionLoss: Sendable, Hashable {
    /// The system's error; `nil` if the server only finished sending.
    package let cause: TransportFailure?
    /// Whether the connection had served another request before: the server may have closed it for being idle, without
    /// receiving this request.
    package let wasReused: Bool
    /// Whether an informational head was received: the server has received the request.
    package let responseBegan: Bool
    /// Whether the request had been sent before.
    package let wasRepeated: Bool

    package init(cause: TransportFailure?, wasReused: Bool, responseBegan: Bool, wasRepeated: Bool) {
        self.cause = cause
        self.wasReused = wasReused
        self.responseBegan = responseBegan
        self.wasRepeated = wasRepeated
    }
}

/// Instants of the steps of opening a connection. A step that was skipped, or did not end, is `nil`.
package struct ConnectTimings: Sendable, Hashable {
    package var lookupStart: ContinuousInstant?
    package var lookupEnd: ContinuousInstant?
    package var connectStart: ContinuousInstant?
    package var secureStart: ContinuousInstant?
    package var secureEnd: ContinuousInstant?
    /// After the TLS handshake if there is one.
    package var connectEnd: ContinuousInstant?

    package init() {}

    /// The name of `target` is about to be resolved, or its address to be connected to.
    package init(to target: ConnectTarget) {
        if case .host(let name, let port) = target, SocketAddress(literal: name, port: port) == nil {
            self.lookupStart = .now
        } else {
            self.connectStart = .now
        }
    }

    package mutating func record(_ step: OpeningStep) {
        switch step {
        case .began(let target, _): self = ConnectTimings(to: target)
        case .resolved:
            let now = ContinuousInstant.now
            self.lookupEnd = now
            self.connectStart = now
        case .connected, .securedProxy, .tunnelled: self.connectEnd = .now
        case .securing:
            self.connectEnd = nil
            self.secureStart = .now
        case .secured:
            let now = ContinuousInstant.now
            self.secureEnd = now
            self.connectEnd = now
        case .failed(.nameResolution): self.lookupEnd = .now
        case .failed, .requested, .answered, .took, .waiting: break
        }
    }
}
