import ControlAPI
import ControlClient
import Foundation
import SessionTasks
import Synchronization
import URLLoading

/// A connection that the gateway keeps, as a link of `connect`: its traffic is that of a WebSocket to the control plane.
final class AttachedLink: ConnectLink {
    private struct Outcome {
        var error: (any Error)?
        var isDetached = false
    }

    private let place: ConnectPlan.Attachment
    private let task: Result<URLSessionWebSocketTask, ControlFailure>
    private let counts = Mutex((received: UInt64(0), sent: UInt64(0)))
    private let outcome = Mutex(Outcome())

    init(_ place: ConnectPlan.Attachment) {
        self.place = place
        self.task = Result { () throws(ControlFailure) in
            let task = try place.session.webSocketTask(place.path + "/stream")
            task.maximumMessageSize = 64 << 20
            return task
        }
    }

    private var isStream: Bool { self.place.connection.kind == "stream" }

    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async {
        guard case .success(let task) = self.task else { return closed() }
        task.delegate = AttachmentDelegate(opened: opened) { error in
            self.outcome.withLock { $0.error = error }
            closed()
        }
        task.resume()
    }

    func receive() async -> [Received] {
        guard case .success(let task) = self.task, let message = try? await task.receive() else { return [.end] }
        switch message {
        case .string(let text):
            self.counts.withLock { $0.received += UInt64(text.utf8.count) }
            return [.text(text)]
        case .data(let data):
            self.counts.withLock { $0.received += UInt64(data.count) }
            return self.isStream ? [.bytes([UInt8](data))] : [.data([UInt8](data))]
        @unknown default: return [.end]
        }
    }

    func send(_ outgoing: [Outgoing]) async throws(TaskFailure) {
        guard case .success(let task) = self.task else { throw .closed }
        for one in outgoing {
            do {
                switch one {
                case .text(let text): try await task.send(.string(text))
                case .data(let bytes): try await task.send(.data(Data(bytes)))
                }
            } catch {
                throw .connectionLost(error.localizedDescription)
            }
            self.counts.withLock { $0.sent += UInt64(one.count) }
        }
    }

    /// Of the connection itself, not of the way to the gateway.
    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        do throws(ControlFailure) {
            let request = ControlRequest(.post, self.place.path + ":ping")
            let answer = try await self.place.session.send(request, for: PingAnswer.self)
            return .milliseconds(answer.rttMs)
        } catch {
            throw .usage(error.text)
        }
    }

    func end(code: UInt16, reason: String) {
        self.outcome.withLock { $0.isDetached = true }
        if case .success(let task) = self.task { task.cancel(with: .normalClosure, reason: nil) }
    }

    func leave() {}

    func abort() {
        if case .success(let task) = self.task { task.cancel() }
    }

    // MARK: What is known of it

    var facts: ConnectionFacts {
        let one = self.place.connection
        return ConnectionFacts(
            url: one.url ?? "", localAddress: one.localAddress, peerAddress: one.peerAddress,
            subprotocol: one.subprotocol)
    }

    func failure(wasOpen: Bool) -> ConnectFailure? {
        if case .failure(let failure) = self.task { return ConnectFailure(.noConnection, failure.text) }
        let (error, isDetached) = self.outcome.withLock { ($0.error, $0.isDetached) }
        guard let error, !isDetached, case .success(let task) = self.task else { return nil }
        let status = (task.response as? HTTPURLResponse)?.statusCode
        switch status {
        case nil, 101?: return ConnectFailure(wasOpen ? .outOfOrder : .noConnection, error.localizedDescription)
        case 409?:
            return ConnectFailure(
                .refused, "somebody else is attached to \(self.place.connection.id ?? "it")",
                remedy: "'sluice tap' gives a copy", status: status)
        default:
            return ConnectFailure(.refused, "the gateway refused to attach: status \(status ?? 0)", status: status)
        }
    }

    func closingFacts(by party: ClosingFacts.Party) -> ClosingFacts {
        let counts = self.counts.withLock { $0 }
        guard case .success(let task) = self.task, party == .peer else {
            return ClosingFacts(by: party, bytesReceived: counts.received, bytesSent: counts.sent)
        }
        let code = task.closeCode
        return ClosingFacts(
            by: party, code: code == .invalid ? nil : UInt16(exactly: code.rawValue),
            reason: task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? "",
            bytesReceived: counts.received, bytesSent: counts.sent)
    }
}
