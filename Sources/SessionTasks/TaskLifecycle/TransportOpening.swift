import ByteKernels
import StreamTransport
import TLSEngine

/// Connects, sends the preamble, secures: gives a transport that is ready for its owner's own bytes, paused.
package final class TransportOpening {
    package typealias Completion = (Result<any Transport, TransportFailure>) -> Void

    private let target: OpeningTarget
    private var attempt: ConnectAttempt?
    private var securing: SecureTransport?
    private var completion: Completion?

    /// `completion` is called once, in a later turn, unless the opening is cancelled.
    /// - Parameter connected: called before TLS begins.
    package init(
        _ target: OpeningTarget, on loop: Loop, connected: @escaping () -> Void = {}, completion: @escaping Completion
    ) {
        self.target = target
        self.completion = completion
        self.attempt = ConnectAttempt(
            target.place, on: loop, options: target.socket, timeout: target.connectTimeout, resolve: target.resolve,
            permits: target.permits, didResolve: { target.watch?(.resolved) }
        ) { result in
            self.attempt = nil
            switch result {
            case .success(let connection):
                connected()
                self.target.watch?(.connected(local: connection.localAddress, peer: connection.peerAddress))
                self.connected(connection)
            case .failure(let failure): self.finish(.failure(failure))
            }
        }
    }

    private func connected(_ connection: SocketConnection) {
        if !self.target.preamble.isEmpty { self.target.preamble.withRawSpan { connection.write($0) } }
        guard let settings = self.target.secure else { return self.finish(.success(connection)) }
        self.target.watch?(.securing)
        self.securing = SecureTransport.upgrade(connection, settings: settings, received: []) { result in
            self.securing = nil
            if case .success(let transport) = result, let metadata = transport.metadata {
                self.target.watch?(.secured(metadata))
            }
            self.finish(result.map { $0 as any Transport })
        }
    }

    private func finish(_ result: Result<any Transport, TransportFailure>) {
        if case .failure(let failure) = result { self.target.watch?(.failed(failure)) }
        let completion = self.completion
        self.completion = nil
        completion?(result)
    }

    /// Gives the opening up; the completion is not called.
    package func cancel() {
        self.completion = nil
        self.attempt?.cancel()
        self.attempt = nil
        self.securing?.reset()
        self.securing = nil
    }
}

/// Progress of an opening, for metrics and for classifying failures.
package enum OpeningStep: Sendable {
    /// The name is resolved. Left out where an address was given.
    case resolved
    /// The connection is established.
    case connected(local: SocketAddress?, peer: SocketAddress?)
    /// The TLS handshake begins, and is done.
    case securing
    case secured(TLSMetadata)
    /// The opening request is on its way: so many bytes.
    case requested(bytes: Int)
    /// The head of the answer is there: so many bytes, those of interim heads included.
    case answered(bytes: Int)
    case failed(TransportFailure)
}

/// Where a connection goes, and what happens before its owner's first byte.
package struct OpeningTarget: Sendable {
    package var place: ConnectTarget
    package var socket = SocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    /// Sent in the clear before everything else, such as a PROXY header.
    package var preamble: [UInt8] = []
    /// TLS from the first byte (after the preamble); `nil` for none.
    package var secure: SecureSettings?
    /// Looks the name up; `nil` asks the system.
    package var resolve: ConnectAttempt.Resolve?
    /// Asked of each address before it is tried; `nil` permits all.
    package var permits: ConnectAttempt.Permission?
    /// Called for each step, on the loop, before the completion.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ place: ConnectTarget) {
        self.place = place
    }
}
