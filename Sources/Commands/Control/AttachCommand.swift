import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import SessionTasks
import Synchronization
import URLLoading
import WebSocketProtocol

/// `sluice attach`: connects standard input and output to an open connection of the gateway.
struct AttachCommand: AsyncParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "clean close, or detached",
        .usage: nil,
        .unsendableInput: "standard input cannot be sent: invalid UTF-8, or a line over 16MiB",
        .notFound: "no such connection, or it is closed",
        .unavailable: nil,
        .internalError: "internal error of sluice or the gateway",
        .inputOrOutput: "error on standard input or output",
        .temporaryFailure: "temporarily unavailable: try again",
        .protocolError: "connection lost, or the server is not a control plane",
        .notAllowed: nil,
        .configuration: "a certificate, token or other file is missing or invalid",
        .tls: nil,
        .peer: "the peer closed with a code other than 1000 or 1001, which is printed",
        .conflict: "the connection is relayed, another node's, or attached already",
        .interrupted: "interrupted twice",
    ])
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Use an open connection of a running gateway from a terminal or a pipe.",
        discussion: """
            Works like 'sluice connect' on a connection that is already open: received data is written to standard output, and \
            standard input is sent. On a WebSocket each line is a message; bytes of a stream are copied unchanged. On a \
            terminal, lines are edited, and /help lists commands.

            At the end of standard input a stream is half-closed (unless --keep), and incoming data is written until the peer \
            closes; a WebSocket is detached after 1s without incoming data. --wait changes the time for either. A detached \
            connection stays open in the gateway; 'sluice close' closes it. Ctrl-C detaches, too.

            Only one client can be attached to a connection; use 'sluice tap' for a copy of its data. The token needs the scopes \
            read and operate.

            EXAMPLES
              id=$(sluice open tcp://mail.example:25)
              sluice attach "$id"

              echo hello | sluice attach 17 --wait 5s
              tar c files | sluice attach 18 > answer

            \(Self.exitCodes)
            """)

    @Flag(help: "On a WebSocket, send binary messages; write received messages without a newline.")
    var binary = false

    @Flag(help: "On a stream, send lines ending with CRLF.")
    var crlf = false

    @Option(
        help: .value(
            "duration",
            "After the end of standard input, detach after this long without incoming data, or none. (default: 1s; none for a stream)"
        ))
    var wait: String?

    @Flag(help: "At the end of standard input, do not half-close a stream; detach as from a WebSocket.")
    var keep = false

    @OptionGroup
    var target: ConnectionArgument

    private struct Options {
        /// `.some(nil)` is `--wait none`; `nil` is no `--wait`.
        var idleTimeout: Duration??
    }

    func run() async throws {
        try await self.target.control.run(reading: self.options) { context, options in
            let one = try await context.session.send(
                ControlRequest(.get, ConnectionPath.connection(self.target.id)), for: Connection.self)
            try self.check(one)
            let attachment = ConnectPlan.Attachment(
                session: context.session, id: self.target.id, connection: one, halfCloses: !self.keep)
            let plan = try self.plan(attachment, options, context)
            throw try await ConnectRun.run(plan)
        }
    }

    private func options(_ reader: inout OptionReader) -> Options? {
        let span = ValueSyntax<Duration>.duration(.zero ... .seconds(86400)).orNone
        return Options(idleTimeout: reader.value("--wait", self.wait, span))
    }

    private func check(_ one: Connection) throws(ControlFailure) {
        guard one.relayed != true else {
            throw ControlFailure(
                .conflict, "connection \(self.target.id) is relayed and cannot be attached",
                remedy: "use 'sluice tap \(self.target.id)' for a copy of its data")
        }
        guard one.kind == "stream" || !self.crlf && !self.keep else {
            throw ControlFailure(
                .invalidRequest,
                "\(self.crlf ? "--crlf" : "--keep") is only valid for streams: connection \(self.target.id) is a WebSocket"
            )
        }
    }

    private func plan(
        _ attachment: ConnectPlan.Attachment, _ options: Options, _ context: CommandContext
    ) throws(ControlFailure) -> ConnectPlan {
        let placeholder = attachment.isStream ? "tcp://gateway.invalid:1" : "ws://gateway.invalid/"
        guard let url = try? EndpointURL(attachment.connection.url ?? placeholder) else {
            throw ControlFailure(
                .invalidResponse, "connection \(self.target.id) has an invalid URL: \(attachment.connection.url ?? "")")
        }
        var settings = Conversation.Settings(carriesMessages: !attachment.isStream || self.keep)
        settings.outlivesClient = true
        settings.idleTimeout = options.idleTimeout ?? (settings.carriesMessages ? .seconds(1) : nil)
        let framing: ConnectPlan.Framing =
            attachment.isStream
            ? (self.crlf ? .streamLines(end: "\r\n") : .bytes) : (self.binary ? .bytes : .textLines)
        return ConnectPlan(
            url: url, opening: .attachment(attachment), framing: framing, settings: settings, timeout: .seconds(20),
            messageLimit: 16 << 20, closeCode: .normalClosure, closeReason: "", printsJSON: context.printsJSON,
            verbosity: .normal, skipsVerification: false)
    }
}

/// An open connection of the gateway. Its data is carried by a WebSocket to the control plane.
final class AttachedLink: ConnectLink {
    private struct Outcome {
        var error: (any Error)?
        /// The connection ended before it was detached.
        var isOver = false
        var isDetached = false
        /// We have half-closed the stream.
        var isEnded = false
    }

    /// Maximum message size in bytes: the largest that the gateway accepts.
    private static let messageLimit = 256 << 20

    let attachment: ConnectPlan.Attachment
    private let task: Result<URLSessionWebSocketTask, ControlFailure>
    private let counts = Mutex((received: UInt64(0), sent: UInt64(0)))
    private let outcome = Mutex(Outcome())

    init(_ attachment: ConnectPlan.Attachment) {
        self.attachment = attachment
        self.task = Result { () throws(ControlFailure) in
            let task = try attachment.session.webSocketTask(ConnectionPath.connection(attachment.id) + "/stream")
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

    func receive() async -> [ReceivedItem] {
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
            return self.attachment.isStream ? [.bytes([UInt8](data))] : [.data([UInt8](data))]
        @unknown default: return [.end]
        }
    }

    func send(_ outgoing: [OutgoingItem]) async throws(TaskFailure) {
        guard case .success(let task) = self.task else { throw .closed }
        for one in outgoing {
            // An empty message half-closes a stream.
            if self.attachment.isStream, one.count == 0 { continue }
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

    /// Measures the round trip on the gateway's connection, not to the gateway.
    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        do throws(ControlFailure) {
            let request = ControlRequest(.post, ConnectionPath.action("ping", self.attachment.id))
            let answer = try await self.attachment.session.send(request, for: PingAnswer.self)
            return .milliseconds(min(max(0, answer.rttMs), 1e12))
        } catch {
            throw .usageError(error.text)
        }
    }

    /// Half-closes a stream after all data sent before; detaches a WebSocket.
    func closeOutput(code: UInt16, reason: String) {
        guard self.attachment.isStream, self.attachment.halfCloses else { return self.stopReading() }
        let isFirst = self.outcome.withLock { outcome in
            defer { outcome.isEnded = true }
            return !outcome.isEnded && !outcome.isDetached
        }
        guard isFirst, case .success(let task) = self.task else { return }
        Task { try? await task.send(.data(Data())) }
    }

    /// Detaches from the connection, which stays open.
    func stopReading() {
        self.outcome.withLock { $0.isDetached = !$0.isOver }
        if case .success(let task) = self.task { task.cancel(with: .normalClosure, reason: nil) }
    }

    func abort() {
        if case .success(let task) = self.task { task.cancel() }
    }

    // MARK: Metadata

    var metadata: ConnectionMetadata {
        let one = self.attachment.connection
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
        if task.closeCode == .internalServerError, self.attachment.isStream || task.closeReason?.isEmpty != false {
            return ConnectFailure(
                .connectionLost, "connection \(self.attachment.id) was lost",
                remedy: "'sluice show \(self.attachment.id)' shows the reason")
        }
        guard task.closeCode == .invalid else { return nil }
        let text =
            error.map { "lost the connection to the gateway: \($0.localizedDescription)" }
            ?? "the gateway closed the connection"
        return ConnectFailure(
            wasOpen ? .connectionLost : .noConnection, text, remedy: "check that the gateway is running")
    }

    private func refusal(_ status: Int) -> ConnectFailure {
        let id = self.attachment.id
        switch status {
        case 401, 403:
            return ConnectFailure(
                .refused, "not authorized to attach to \(id)", remedy: "use a token with the scope operate",
                status: status)
        case 409:
            return ConnectFailure(
                .conflict, "another client is attached to \(id)",
                remedy: "use 'sluice tap \(id)' for a copy of its data",
                status: status)
        case 421:
            let node = self.attachment.connection.node ?? "that its ID names"
            return ConnectFailure(
                .conflict, "\(id) is a connection of the node \(node)",
                remedy: ControlFailure.remedyForOtherNode, status: status)
        default:
            return ConnectFailure(
                .refused, "the gateway refused to attach to \(id): status \(status)",
                remedy: "'sluice show \(id)' shows its state", status: status)
        }
    }

    func closingMetadata(by party: ClosingMetadata.Party) -> ClosingMetadata {
        let counts = self.counts.withLock { $0 }
        var metadata = ClosingMetadata(by: party, bytesReceived: counts.received, bytesSent: counts.sent)
        if self.outcome.withLock({ $0.isDetached }) {
            metadata.detachedFrom = self.attachment.id
            return metadata
        }
        // A stream has no close codes: the task's code is that of the WebSocket to the gateway.
        guard case .success(let task) = self.task, party == .peer, !self.attachment.isStream else { return metadata }
        metadata.code = task.closeCode == .invalid ? nil : UInt16(exactly: task.closeCode.rawValue)
        metadata.reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return metadata
    }
}

/// Notifies about the beginning and the end of an attachment.
private final class AttachmentDelegate: NSObject, URLSessionWebSocketDelegate {
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
