import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import SessionTasks
import StreamTransport
import Synchronization
import URLLoading
import WebSocketProtocol

/// `sluice attach`: a terminal or a pipe becomes the other end of a connection of the gateway.
struct AttachCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Talk on a connection that a running gateway keeps.",
        discussion: """
            As 'sluice connect', on a connection that is open already: what it receives is written to standard output, and what is \
            read from standard input is sent. Of a WebSocket each line is a message; bytes of a stream go through as they are. On a \
            terminal lines are edited, and /help lists commands.

            At the end of standard input a stream is closed for writing (--keep leaves it open), and what the peer still sends is \
            written until its own end; a WebSocket is let go once nothing has come for 1s. --wait is another time for either. What \
            was let go goes on in the gateway: 'sluice close' ends it. Ctrl-C lets go, too.

            One at a time can be attached; others take a copy with 'sluice tap'. A token needs the scopes read and operate.

            EXAMPLES
              id=$(sluice open tcp://mail.example:25)
              sluice attach "$id"

              echo hello | sluice attach 17 --wait 5s
              tar c files | sluice attach 18 > answer

            EXIT CODES
              0    ended in order, or let go
              64   wrong usage
              65   standard input cannot be sent: no UTF-8, or a line beyond 16MiB
              66   there is no such connection, or it is over
              69   no control plane answers there
              70   a fault of sluice or of the gateway
              74   standard input or output failed
              75   not now: try again
              76   ended out of order; or what answers is no control plane
              77   not allowed: no token, or one without the scope
              78   a certificate, token or other file cannot be used
              79   TLS with the control plane failed
              80   the peer closed with another code than 1000 and 1001, which is shown
              81   its data is passed on, or somebody else is attached
              130  interrupted twice
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Flag(help: "On a WebSocket, send binary messages, and write what comes without an end of line.")
    var binary = false

    @Flag(help: "On a stream, send lines with CRLF at their end.")
    var crlf = false

    @Option(
        help: ArgumentHelp(
            "After the end of standard input, how long nothing may come, or none. (default: 1s; none for a stream)",
            valueName: "duration"))
    var wait: String?

    @Flag(help: "At the end of standard input, leave a stream open for writing, and let go as of a WebSocket.")
    var keep = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Wishes {
        /// The inner one: `none`; the outer one: nothing was said.
        var patience: Duration??
    }

    func run() async throws {
        try await self.control.run(reading: self.wishes) { desk, wishes in
            let one = try await desk.session.send(
                ControlRequest(.get, ConnectionPath.one(self.id)), for: Connection.self)
            try self.check(one)
            let place = ConnectPlan.Attachment(
                session: desk.session, id: self.id, connection: one, endsDirection: !self.keep)
            let plan = try self.plan(place, wishes, desk)
            let group: LoopGroup
            do throws(SystemError) {
                group = try LoopGroup(count: 1)
            } catch {
                throw StartFailure.refusedBySystem("\(error)")
            }
            let code = try await ConnectRun(plan: plan, loop: group.loops[0]).untilEnd()
            group.stop()
            throw code
        }
    }

    private func wishes(_ reader: inout OptionReader) -> Wishes? {
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone
        return Wishes(patience: reader.value("--wait", self.wait, span))
    }

    private func check(_ one: Connection) throws(ControlFailure) {
        guard one.relayed != true else {
            throw ControlFailure(
                .conflict, "the data of \(self.id) is passed on, nobody can attach to it",
                remedy: "'sluice tap \(self.id)' gives a copy")
        }
        guard one.kind == "stream" || !self.crlf && !self.keep else {
            throw ControlFailure(
                .wrongRequest, "\(self.id) is a WebSocket: \(self.crlf ? "--crlf" : "--keep") is for streams",
                remedy: "leave it out")
        }
    }

    private func plan(
        _ place: ConnectPlan.Attachment, _ wishes: Wishes, _ desk: CommandContext
    ) throws(ControlFailure) -> ConnectPlan {
        let standIn = place.isStream ? "tcp://gateway.invalid:1" : "ws://gateway.invalid/"
        guard let url = try? EndpointURL(place.connection.url ?? standIn) else {
            throw ControlFailure(.nonsense, "the connection \(self.id) has no URL: \(place.connection.url ?? "")")
        }
        var terms = Conversation.Terms(carriesMessages: !place.isStream || self.keep)
        terms.staysWithoutUs = true
        terms.patience = wishes.patience ?? (terms.carriesMessages ? .seconds(1) : nil)
        let carriage: ConnectPlan.Carriage =
            place.isStream
            ? (self.crlf ? .streamLines(end: "\r\n") : .bytes) : (self.binary ? .bytes : .textLines)
        return ConnectPlan(
            url: url, opening: .attachment(place), carriage: carriage, terms: terms, timeout: .seconds(20),
            messageLimit: 16 << 20, closeCode: .normalClosure, closeReason: "", printsJSON: desk.printsJSON,
            voice: .normal, trustsAnyone: false)
    }
}

/// A connection that the gateway keeps, as a link of `connect`: its traffic is that of a WebSocket to the control plane.
final class AttachedLink: ConnectLink {
    private struct Outcome {
        var error: (any Error)?
        /// No more data, and the connection was not detached.
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
                throw .connectionLost(TransportError(reported: error.localizedDescription))
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
            throw .usageError(error.text)
        }
    }

    /// Ends our direction of a stream after everything sent before; detaches a WebSocket.
    func end(code: UInt16, reason: String) {
        guard self.place.isStream, self.place.endsDirection else { return self.leave() }
        let isFirst = self.outcome.withLock { outcome in
            defer { outcome.isEnded = true }
            return !outcome.isEnded && !outcome.isDetached
        }
        guard isFirst, case .success(let task) = self.task else { return }
        Task { try? await task.send(.data(Data())) }
    }

    /// Detaches from the connection, which stays open.
    func leave() {
        self.outcome.withLock { $0.isDetached = !$0.isOver }
        if case .success(let task) = self.task { task.cancel(with: .normalClosure, reason: nil) }
    }

    func abort() {
        if case .success(let task) = self.task { task.cancel() }
    }

    // MARK: What is known of it

    var facts: ConnectionMetadata {
        let one = self.place.connection
        return ConnectionMetadata(
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

    func closingFacts(by party: ClosingMetadata.Party) -> ClosingMetadata {
        let counts = self.counts.withLock { $0 }
        var facts = ClosingMetadata(by: party, bytesReceived: counts.received, bytesSent: counts.sent)
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

/// Hears of the beginning and the end of an attachment.
final class AttachmentDelegate: NSObject, URLSessionWebSocketDelegate {
    private let opened: @Sendable () -> Void
    private let ended: @Sendable ((any Error)?) -> Void

    init(opened: @escaping @Sendable () -> Void, ended: @escaping @Sendable ((any Error)?) -> Void) {
        self.opened = opened
        self.ended = ended
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        self.opened()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.ended(error)
    }
}
