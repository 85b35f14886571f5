import ByteKernels
import StreamTransport

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
