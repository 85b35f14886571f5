import ByteKernels
import DequeModule
import Rooms
import SessionTasks
import StreamTransport
import Synchronization
import WireText

/// A client of the rooms' protocol without a WebSocket: a streaming response has its replies, and each further request
/// brings commands.
///
/// - Source: Centrifugo's transports `http_stream` and `sse`, and its endpoint `/emulation`.
final class EmulatedStream {
    /// How replies are written.
    enum Form {
        /// Each a line of JSON.
        case lines
        /// JSON, as Server-Sent Events.
        case events
        /// Protobuf, each after its length.
        case delimited

        var encoding: ProtocolEncoding {
            switch self {
            case .lines, .events: .json
            case .delimited: .protobuf
            }
        }

        var mediaType: String {
            switch self {
            case .lines: "application/json"
            case .events: "text/event-stream"
            case .delimited: "application/octet-stream"
            }
        }

        /// - Parameter replies: one or several, in one message of the protocol.
        func framed(_ replies: [UInt8]) -> [UInt8] {
            switch self {
            case .lines: replies + [0x0A]
            case .events:
                Array(replies.split(separator: 0x0A).map { Array("data: ".utf8) + $0 + [0x0A] }.joined()) + [0x0A]
            case .delimited: replies
            }
        }
    }

    private let exchange: PlainExchange
    private let session: RoomSession
    private let rooms: LoopRooms
    private let form: Form
    /// Permits requests to send commands of this client.
    private let secret: String
    /// The session performs commands, and takes no more at the moment.
    private var isPaused = false

    init(_ exchange: PlainExchange, _ form: Form, trustedUser: TrustedUser) {
        let rooms = exchange.gateway.rooms
        self.exchange = exchange
        self.form = form
        self.rooms = rooms
        self.secret = RoomHub.text(rooms.hub.randomWords(2))
        self.session = RoomSession(
            exchange.connectionNumber, from: exchange.context?.client, on: exchange.gateway,
            encoding: .commands(form.encoding), trustedUser: trustedUser, secret: self.secret)
    }

    func start(_ commands: [UInt8]) {
        self.rooms.emulated[self.secret] = self
        self.rooms.hub.emulatedInboxes.open(self.secret, loop: self.rooms.index)
        self.session.start(self)
        self.session.received(commands, encoding: self.form.encoding)
    }

    /// Performs the commands that have come, as far as the session takes them.
    func takeCommands() {
        while !self.isPaused, !self.session.isClosed,
            let message = self.rooms.hub.emulatedInboxes.next(of: self.secret)
        {
            guard self.form.encoding == .protobuf || message.isValidUTF8 else {
                return self.session.receivedMalformedBytes()
            }
            self.session.received(message, encoding: self.form.encoding)
        }
    }

    /// More commands came than may wait.
    func inboxOverflowed() { self.session.disconnect(.tooManyRequests) }

    private func write(_ replies: [UInt8]) {
        self.form.framed(replies).withRawSpan { _ = self.exchange.write($0) }
    }
}

extension EmulatedStream: RoomConnection {
    var queuedBytes: Int { self.exchange.queuedBytes }
    var sentBytes: UInt64 { self.exchange.sentBytes }

    func awaitProgress() { self.exchange.awaitProgress() }
    func send(_ replies: [UInt8]) { self.write(replies) }
    func send(_ push: SharedMessage) { self.write(push.payload) }

    func pauseReading() { self.isPaused = true }

    /// The session continues with its commands first.
    func resumeReading() {
        self.isPaused = false
        self.rooms.loop.inNextTurn(self)
    }

    func close(_ disconnect: Disconnect) {
        self.write(Reply.push(channel: "", .disconnect(disconnect)).encoded(self.form.encoding))
        self.exchange.finish()
    }
}

extension EmulatedStream: TurnEndTarget {
    func turnEnded() {}
    func nextTurnBegan() { self.takeCommands() }
}

extension EmulatedStream: HTTPBodySource {
    func outputProgressed(_ exchange: PlainExchange) { self.session.outputProgressed() }
    func inputClosed(_ exchange: PlainExchange) { exchange.finish() }
    func drain(_ exchange: PlainExchange) { self.session.disconnect(.shutdown) }

    func exchangeEnded() {
        self.rooms.emulated[self.secret] = nil
        self.rooms.hub.emulatedInboxes.close(self.secret)
        self.session.connectionEnded()
    }
}

/// Commands from requests, queued for the loops of their clients, by the clients' secrets.
package final class EmulatedInboxes: Sendable {
    /// Bytes of commands that one client may have waiting. Above it the connection ends.
    package static let limit = 1 << 20
    /// Cost of a message besides its bytes.
    private static let overhead = 128

    package enum AddResult: Equatable {
        /// - Parameter isAnnounced: whether the loop knows already that there is something to take.
        case added(loop: Int, isAnnounced: Bool)
        case unknownClient
        /// The inbox is closed.
        case overflowed(loop: Int)
    }

    private struct Inbox {
        let loop: Int
        var messages: Deque<[UInt8]> = []
        var cost = 0
        var isAnnounced = false
    }

    private let inboxes = Mutex<[String: Inbox]>([:])

    package init() {}

    package func open(_ secret: String, loop: Int) { self.inboxes.withLock { $0[secret] = Inbox(loop: loop) } }
    package func close(_ secret: String) { self.inboxes.withLock { $0[secret] = nil } }

    package func add(_ message: [UInt8], to secret: String) -> AddResult {
        self.inboxes.withLock { inboxes in
            guard var inbox = inboxes.removeValue(forKey: secret) else { return .unknownClient }
            inbox.cost += message.count + Self.overhead
            guard inbox.cost <= Self.limit else { return .overflowed(loop: inbox.loop) }
            inbox.messages.append(message)
            defer {
                inbox.isAnnounced = true
                inboxes[secret] = inbox
            }
            return .added(loop: inbox.loop, isAnnounced: inbox.isAnnounced)
        }
    }

    /// The next message; `nil` if there is none, and the next `add` is to be announced.
    package func next(of secret: String) -> [UInt8]? {
        self.inboxes.withLock { inboxes in
            guard let message = inboxes[secret]?.messages.popFirst() else {
                inboxes[secret]?.isAnnounced = false
                return nil
            }
            inboxes[secret]?.cost -= message.count + Self.overhead
            return message
        }
    }
}
