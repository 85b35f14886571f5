import ByteKernels
import StreamTransport
import TLSEngine

/// Connects, sends the preamble, secures: gives a transport that is ready for the task's own bytes, paused.
final class TransportOpening {
    typealias Completion = (Result<any Transport, TransportFailure>) -> Void

    private let target: OpeningTarget
    private let record: TaskRecord
    private var attempt: ConnectAttempt?
    private var securing: SecureTransport?
    private var completion: Completion?

    /// `completion` is called once, in a later turn, unless the opening is cancelled.
    init(_ target: OpeningTarget, of record: TaskRecord, on loop: Loop, completion: @escaping Completion) {
        self.target = target
        self.record = record
        self.completion = completion
        self.attempt = ConnectAttempt(
            target.place, on: loop, options: target.socket, timeout: target.connectTimeout, permits: target.permits
        ) { result in
            let resolvedAt = self.attempt?.resolvedAt
            self.attempt = nil
            switch result {
            case .success(let connection):
                self.target.watch?(
                    .connected(
                        resolvedAt: resolvedAt, local: connection.localAddress, peer: connection.peerAddress))
                self.connected(connection)
            case .failure(let failure): self.finish(.failure(failure))
            }
        }
    }

    private func connected(_ connection: SocketConnection) {
        self.record.isConnected = true
        if !self.target.preamble.isEmpty { self.target.preamble.withRawSpan { connection.write($0) } }
        guard let settings = self.target.secure else { return self.finish(.success(connection)) }
        self.target.watch?(.securing)
        self.securing = SecureTransport.upgrade(connection, settings: settings, received: []) { result in
            self.securing = nil
            if case .success(let transport) = result, let facts = transport.facts {
                self.target.watch?(.secured(facts))
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

    func cancel() {
        self.completion = nil
        self.attempt?.cancel()
        self.attempt = nil
        self.securing?.reset()
        self.securing = nil
    }
}

/// Progress of an opening, for metrics and for classifying failures.
package enum OpeningStep: Sendable {
    /// The connection is established. `resolvedAt`: when the name was resolved; `nil` if an address was given.
    case connected(resolvedAt: MonotonicInstant?, local: SocketAddress?, peer: SocketAddress?)
    /// The TLS handshake begins, and is done.
    case securing
    case secured(TLSMetadata)
    /// The opening request is on its way: so many bytes.
    case requested(bytes: Int)
    /// The head of the answer is there: so many bytes, those of interim heads included.
    case answered(bytes: Int)
    case failed(TransportFailure)
}

/// Where a task connects to, and what happens before its own first byte.
package struct OpeningTarget: Sendable {
    package var place: ConnectTarget
    package var socket = SocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    /// Sent in the clear before everything else, such as a PROXY header.
    package var preamble: [UInt8] = []
    /// TLS from the first byte (after the preamble); `nil` for none.
    package var secure: SecureSettings?
    /// Asked of each address before it is tried; `nil` permits all.
    package var permits: ConnectAttempt.Permission?
    /// Called for each step, on the loop, before the completion.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ place: ConnectTarget) {
        self.place = place
    }
}
