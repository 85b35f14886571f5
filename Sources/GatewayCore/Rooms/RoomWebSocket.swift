import ByteKernels
import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A WebSocket that speaks the rooms' protocol.
final class RoomWebSocket: WebSocketRelay, EndpointRelay {
    private let session: RoomSession
    private let encoding: ProtocolEncoding
    private var task: WebSocketTask?
    /// Beginning of the message that is being received.
    private var unfinished: [UInt8] = []

    init(_ context: ConnectionContext, _ matched: MatchedRequest, trustedUser: TrustedUser) {
        self.encoding = ProtocolEncoding(of: matched)
        self.session = RoomSession(
            context.identifier, from: context.client, on: context.gateway, encoding: .commands(self.encoding),
            trustedUser: trustedUser, sendsPings: !matched.wantsFramePings)
    }

    func start(_ task: WebSocketTask) {
        self.task = task
        self.session.start(self)
    }

    func drain() -> Bool {
        guard !self.session.isClosed else { return false }
        self.session.disconnect(.shutdown)
        return true
    }

    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by task: WebSocketTask, over transport: any Transport) {
        guard !self.session.isClosed else { return }
        self.unfinished.append(bytes)
        guard mark.endsMessage else { return }
        let message = self.unfinished
        self.unfinished = []
        // Text frames are checked already.
        guard self.encoding == .protobuf || mark.kind == .text || message.isValidUTF8 else {
            return self.session.receivedMalformedBytes()
        }
        self.session.received(message, encoding: self.encoding)
    }

    func outputProgressed() { self.session.outputProgressed() }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.session.connectionEnded()
        return true
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.session.connectionEnded()
        self.task = nil
    }
}

extension RoomWebSocket: RoomConnection {
    var queuedBytes: Int { self.task?.queuedBytes ?? 0 }
    var sentBytes: UInt64 { self.task?.sentBytes ?? 0 }
    var unconsumedBytes: Int { self.session.unconsumedBytes }

    func awaitProgress() { self.task?.awaitProgress() }

    func send(_ replies: [UInt8]) {
        let kind: MessageKind = self.encoding == .json ? .text : .binary
        replies.withRawSpan { _ = self.task?.sendFrame(kind, startsMessage: true, endsMessage: true, $0) }
    }

    func send(_ push: SharedMessage) { self.task?.send(push) }
    var webSocket: WebSocketTask? { self.task }

    func pauseReading() { self.task?.beginStall() }
    func resumeReading() { self.task?.endStall() }

    func close(_ disconnect: Disconnect) {
        self.task?.close(CloseCode(rawValue: disconnect.code), reason: Array(disconnect.reason.utf8.prefix(123)))
    }
}

extension MatchedRequest {
    fileprivate var queryItems: [Substring] { self.match.query?.split(separator: "&") ?? [] }

    /// Whether the client answers the pings of its WebSocket alone, as those do in which people type commands.
    fileprivate var wantsFramePings: Bool { self.queryItems.contains("cf_ws_frame_ping_pong=true") }
}

extension ProtocolEncoding {
    /// In the order of preference.
    static let subprotocols = ["centrifuge-protobuf", "centrifuge-json"]

    /// Protobuf if the request's subprotocol or its query (`format=protobuf`) asks for it; else JSON.
    init(of matched: MatchedRequest) {
        let first = matched.request.subprotocols.first { Self.subprotocols.contains($0) }
        let items = matched.queryItems
        let isAsked = items.contains("format=protobuf") || items.contains("cf_protocol=protobuf")
        self = first == "centrifuge-protobuf" || isAsked ? .protobuf : .json
    }
}
