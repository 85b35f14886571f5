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
        /// Nothing more comes, and it was not us who let go.
        var isOver = false
        var isDetached = false
        /// Our direction was ended.
        var isEnded = false
    }

    /// Longest message that is taken, in bytes: what the gateway takes at most.
    private static let messageLimit = 256 << 20

    let place: ConnectPlan.Attachment
    private let task: Result<URLSessionWebSocketTask, ControlFailure>
    private let counts = Mutex((received: UInt64(0), sent: UInt64(0)))
    private let outcome = Mutex(Outcome())

    init(_ place: ConnectPlan.Attachment) {
        self.place = place
        self.task = Result { () throws(ControlFailure) in
            let task = try place.session.webSocketTask(ConnectionPath.one(place.id) + "/stream")
            task.maximumMessageSize = Self.messageLimit
            return task
        }
    }

    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async {
        guard case .success(let task) = self.task else { return closed() }
        task.delegate = AttachmentDelegate(opened: opened) { error in
            self.outcome.withLock { $0.error = error }
            closed()
        }
        task.resume()
    }

    func receive() async -> [Received] {
        guard case .success(let task) = self.task, let message = try? await task.receive() else {
            self.outcome.withLock { $0.isOver = !$0.isDetached }
            return [.end]
        }
        switch message {
        case .string(let text):
            self.counts.withLock { $0.received += UInt64(text.utf8.count) }
            return [.text(text)]
        case .data(let data):
            self.counts.withLock { $0.received += UInt64(data.count) }
            return self.place.isStream ? [.bytes([UInt8](data))] : [.data([UInt8](data))]
        @unknown default: return [.end]
        }
    }

    func send(_ outgoing: [Outgoing]) async throws(TaskFailure) {
        guard case .success(let task) = self.task else { throw .closed }
        for one in outgoing {
            // Empty, it would end our direction of a stream.
            if self.place.isStream, one.count == 0 { continue }
            do {
                switch one {
                case .text(let text): try await task.send(.string(text))
                case .data(let bytes): try await task.send(.data(Data(bytes)))
                }
            } catch {
                throw .connectionLost(TransportFault(reported: error.localizedDescription))
            }
            self.counts.withLock { $0.sent += UInt64(one.count) }
        }
    }

    /// Of the connection itself, not of the way to the gateway.
    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        do throws(ControlFailure) {
            let request = ControlRequest(.post, ConnectionPath.verb("ping", self.place.id))
            let answer = try await self.place.session.send(request, for: PingAnswer.self)
            return .milliseconds(answer.rttMs)
        } catch {
            throw .usage(error.text)
        }
    }

    /// Ends our direction of a stream, behind what was sent; a WebSocket is let go.
    func end(code: UInt16, reason: String) {
        guard self.place.isStream, self.place.endsDirection else { return self.leave() }
        let isFirst = self.outcome.withLock { outcome in
            defer { outcome.isEnded = true }
            return !outcome.isEnded && !outcome.isDetached
        }
        guard isFirst, case .success(let task) = self.task else { return }
        Task { try? await task.send(.data(Data())) }
    }

    /// Lets go of the connection, which goes on.
    func leave() {
        self.outcome.withLock { $0.isDetached = !$0.isOver }
        if case .success(let task) = self.task { task.cancel(with: .normalClosure, reason: nil) }
    }

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
        let task: URLSessionWebSocketTask
        switch self.task {
        case .success(let made): task = made
        case .failure(let failure): return ConnectFailure(.noConnection, failure.text, remedy: failure.remedy)
        }
        let (error, isDetached) = self.outcome.withLock { ($0.error, $0.isDetached) }
        guard !isDetached else { return nil }
        let status = (task.response as? HTTPURLResponse)?.statusCode
        if !wasOpen, let status, status != 101 { return self.refusal(status) }
        if task.closeCode == .internalServerError, self.place.isStream || task.closeReason?.isEmpty != false {
            return ConnectFailure(
                .outOfOrder, "the connection \(self.place.id) ended out of order",
                remedy: "'sluice show \(self.place.id)' tells how")
        }
        guard task.closeCode == .invalid else { return nil }
        let text = error.map { "the way to the gateway ended: \($0.localizedDescription)" } ?? "the gateway went away"
        return ConnectFailure(wasOpen ? .outOfOrder : .noConnection, text, remedy: "see whether the gateway still runs")
    }

    private func refusal(_ status: Int) -> ConnectFailure {
        let id = self.place.id
        switch status {
        case 401, 403:
            return ConnectFailure(
                .refused, "attaching to \(id) is not allowed", remedy: "use a token with the scope operate",
                status: status)
        case 409:
            return ConnectFailure(
                .conflict, "somebody else is attached to \(id)", remedy: "'sluice tap \(id)' gives a copy",
                status: status)
        default:
            return ConnectFailure(
                .refused, "the gateway refused to attach to \(id): status \(status)",
                remedy: "'sluice show \(id)' tells its state", status: status)
        }
    }

    func closingFacts(by party: ClosingFacts.Party) -> ClosingFacts {
        let counts = self.counts.withLock { $0 }
        var facts = ClosingFacts(by: party, bytesReceived: counts.received, bytesSent: counts.sent)
        if self.outcome.withLock({ $0.isDetached }) {
            facts.detachedFrom = self.place.id
            return facts
        }
        // A stream has no codes: those are of the way to the gateway.
        guard case .success(let task) = self.task, party == .peer, !self.place.isStream else { return facts }
        facts.code = task.closeCode == .invalid ? nil : UInt16(exactly: task.closeCode.rawValue)
        facts.reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return facts
    }
}
