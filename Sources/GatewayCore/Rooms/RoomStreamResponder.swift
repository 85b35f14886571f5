import ByteKernels
import GatewayConfiguration
import Rooms
import SessionTasks
import StreamTransport
import WireText

/// Rooms by plain HTTP, for clients that only receive and for those that send commands with further requests:
/// Server-Sent Events (`GET`, or `POST` with `Accept: text/event-stream`), a stream of lines of JSON or of Protobuf
/// (`POST`); and publishing by `POST`.
///
/// - Source: Centrifugo's transports `uni_sse`, `uni_http_stream`, `sse` and `http_stream`; WHATWG HTML, §9.2.
final class RoomStreamResponder: HTTPResponder {
    static let shared = RoomStreamResponder()

    let methods = ["GET", "POST", "OPTIONS"]
    let bodyLimit = 256 << 10

    func respond(to request: PlainRequest, _ exchange: PlainExchange) {
        let origin = Self.allowedOrigin(request.head, of: request.route)
        guard request.head.method != "OPTIONS" else { return self.answerPreflight(request, origin, exchange) }
        let body: PlainRoomRequest
        do {
            body = try Self.read(request)
        } catch {
            return Self.refuse(400, .badRequest, "The request is not as expected: \(error).", origin, exchange)
        }
        let hub = exchange.gateway.rooms.hub
        let header = request.isFromProxy ? hub.currentSettings.userHeader : nil
        let user = TrustedUser(request.grant, request.head, header: header, expires: true)
        switch body {
        case .receive(let body):
            if let publication = body.publication {
                Self.publish(publication, body.connect, user, origin, exchange)
            } else {
                let isEvents = Self.wantsEvents(request)
                let stream = RoomStream(exchange, encoding: isEvents ? .events : .lines, trustedUser: user)
                guard Self.begin(isEvents ? .events : .lines, stream, origin, exchange) else { return }
                stream.start(body.connect, isEvents ? request.head.fields.single("Last-Event-ID").first : nil)
            }
        case .connect(let commands):
            let form: EmulatedStream.Form =
                Self.encoding(of: request) == .protobuf ? .delimited : Self.wantsEvents(request) ? .events : .lines
            let stream = EmulatedStream(exchange, form, trustedUser: user)
            guard Self.begin(form, stream, origin, exchange) else { return }
            stream.start(commands)
        case .emulation(let request): Self.forward(request, origin, exchange)
        }
    }

    /// Official clients send Protobuf as `application/octet-stream`.
    private static func encoding(of request: PlainRequest) -> ProtocolEncoding {
        let isBinary = request.head.fields["Content-Type"]?.beginsIgnoringCase("application/octet-stream") == true
        return request.head.method == "POST" && isBinary ? .protobuf : .json
    }

    /// Value of `Access-Control-Allow-Origin`: pages of other origins may read what the route's `origins` let in.
    private static func allowedOrigin(_ head: RequestHead, of route: RoutePlan) -> [FieldLine] {
        guard let origin = head.fields["Origin"] else { return [] }
        guard !route.configuration.origins.isEmpty else {
            return [FieldLine("Access-Control-Allow-Origin", "*")]
        }
        return [FieldLine("Access-Control-Allow-Origin", origin), FieldLine("Vary", "Origin")]
    }

    /// A page of another origin sees what is wrong, too.
    func refusalFields(_ head: RequestHead, of route: RoutePlan) -> [FieldLine] { Self.allowedOrigin(head, of: route) }

    /// Names of fields that a page asks for, and that it may send.
    private static let askedFieldLimit = 32

    private func answerPreflight(_ request: PlainRequest, _ origin: [FieldLine], _ exchange: PlainExchange) {
        let asked = request.head.fields.list("Access-Control-Request-Headers")
        let isValid = !asked.isEmpty && asked.count <= Self.askedFieldLimit && asked.allSatisfy(\.isToken)
        let fields = [
            FieldLine("Access-Control-Allow-Methods", "GET, POST"),
            FieldLine(
                "Access-Control-Allow-Headers", isValid ? asked.joined(separator: ", ") : "Content-Type, Accept"),
            FieldLine("Access-Control-Max-Age", "600"),
        ]
        _ = exchange.begin(204, origin + fields, .none)
    }

    private static func read(_ request: PlainRequest) throws(JSONSyntaxError) -> PlainRoomRequest {
        if request.head.method == "POST" {
            return try PlainRoomRequest(request.body, encoding: Self.encoding(of: request))
        }
        let items = request.match.query?.split(separator: "&") ?? []
        guard let item = items.first(where: { $0.hasPrefix("cf_connect=") }) else {
            return .receive(try UnidirectionalRequest([]))
        }
        let value = item.dropFirst("cf_connect=".count).map { $0 == "+" ? " " : $0 }
        guard let text = PercentCoding.decodedText(Substring(String(value))) else {
            throw JSONSyntaxError(.invalid("cf_connect is not percent-encoded"), at: 0)
        }
        let body = try PlainRoomRequest(Array(text.utf8), encoding: .json)
        // Any page can make a browser send a GET, for which it names no origin.
        guard !body.publishes else { throw JSONSyntaxError(.invalid("a publication in a request with GET"), at: 0) }
        return body
    }

    private static func refuse(
        _ status: Int, _ error: CommandError, _ text: String, _ fields: [FieldLine], _ exchange: PlainExchange
    ) {
        exchange.gateway.rooms.hub.counters.addError(error)
        var body: [UInt8] = Array(#"{"error":{"code":\#(error.code),"message":"#.utf8)
        body.append(jsonString: text)
        exchange.respond(
            status, fields + [FieldLine("Content-Type", "application/json")], body: body + Array("}}\n".utf8))
    }

    private static func wantsEvents(_ request: PlainRequest) -> Bool {
        request.head.method == "GET"
            || request.head.fields.list("Accept").contains { $0.utf8.starts(with: "text/event-stream".utf8) }
    }

    /// Begins a streaming response.
    /// - Returns: whether the client still reads.
    private static func begin(
        _ form: EmulatedStream.Form, _ source: any HTTPBodySource, _ origin: [FieldLine], _ exchange: PlainExchange
    ) -> Bool {
        let fields = [
            FieldLine("Content-Type", form.mediaType),
            FieldLine("Cache-Control", "no-cache, no-store"), FieldLine("X-Content-Type-Options", "nosniff"),
            // Proxies of the kind of nginx pass each piece on at once.
            FieldLine("X-Accel-Buffering", "no"),
        ]
        // The end of the client's session ends the connection.
        exchange.closeAfterResponse()
        return exchange.begin(200, origin + fields, .open, source: source)
    }

    /// Brings commands to their client, which may have its response from another node of the cluster.
    private static func forward(_ request: EmulationRequest, _ origin: [FieldLine], _ exchange: PlainExchange) {
        let hub = exchange.gateway.rooms.hub
        let commands = ForwardedCommands(session: request.session, data: request.data)
        let outcome = hub.receive(commands)
        guard outcome == .unknownSession, !request.node.isEmpty, let forwarder = hub.commandForwarder else {
            return self.answer(outcome, origin, exchange)
        }
        let waiting = LoopIsolated(exchange, on: exchange.loop)
        forwarder.forward(commands, to: request.node) { outcome in
            waiting.execute { Self.answer(outcome, origin, $0) }
        }
    }

    private static func answer(_ outcome: CommandsOutcome, _ origin: [FieldLine], _ exchange: PlainExchange) {
        switch outcome {
        case .accepted: _ = exchange.begin(204, origin, .none)
        case .unknownSession: self.refuse(404, .badRequest, "The node has no such session.", origin, exchange)
        case .unknownNode: self.refuse(404, .badRequest, "There is no such node.", origin, exchange)
        case .overflowed: self.refuse(429, .tooManyRequests, "Too many commands wait.", origin, exchange)
        case .busy:
            let text = "Too many commands wait for the node of the session; send them again."
            self.refuse(503, .internal, text, origin + [FieldLine("Retry-After", "1")], exchange)
        case .unreachable:
            let text = "The node of the session does not answer; it may have got the commands."
            self.refuse(503, .internal, text, origin, exchange)
        }
    }

    /// Publishes one message, and answers as the protocol does.
    private static func publish(
        _ publication: UnidirectionalRequest.Publication, _ connect: Command.ConnectRequest, _ user: TrustedUser,
        _ origin: [FieldLine], _ exchange: PlainExchange
    ) {
        let rooms = exchange.gateway.rooms
        let now = RoomClient.Instant(
            elapsed: .nanoseconds(rooms.loop.now.nanoseconds),
            unix: UInt64(clamping: Machine.wallClockMilliseconds() / 1000))
        var client = RoomClient(
            identifier: RoomHub.text(rooms.hub.randomWords(2)), settings: rooms.hub.clientSettings,
            authority: RoomAccess(hub: rooms.hub, trustedUser: user, entersRooms: false), now: now.elapsed)
        var request = Command.ConnectRequest()
        request.token = connect.token
        client.received(Command(number: 1, .connect(request)), at: now)
        // It has no connection to count.
        client.registered(true, at: now)
        exchange.context?.user = client.user
        let key = RoomClientKey(user: client.user, address: exchange.context?.client)
        Self.withMeters(of: key, at: now.elapsed, exchange) { meters in
            // A request is one command.
            client.meters = meters
            client.received(Command(number: 2, .publish(channel: publication.channel, publication.data)), at: now)
            meters = client.meters
        }
        Self.perform(&client, key, origin, exchange)
    }

    /// The rates are those of the client, whatever the connection: a client may open one for each request, and a proxy may
    /// send the requests of many clients on one.
    /// - Parameter client: `nil` if it cannot be distinguished from others: its rates are those of the connection.
    private static func withMeters(
        of client: RoomClientKey?, at now: Duration, _ exchange: PlainExchange, _ body: (inout RoomMeters) -> Void
    ) {
        if let client { return exchange.gateway.rooms.hub.clientRates.use(client, at: now, body) }
        var meters = exchange.context?.roomMeters ?? RoomMeters()
        body(&meters)
        exchange.context?.roomMeters = meters
    }

    private static func perform(
        _ client: inout RoomClient, _ key: RoomClientKey?, _ origin: [FieldLine], _ exchange: PlainExchange
    ) {
        let rooms = exchange.gateway.rooms
        while let action = client.nextAction() {
            switch action {
            case .publish(_, let channel, let data, let info):
                let shared: SharedRoom
                do throws(RoomHub.AcquireError) {
                    shared = try rooms.acquire(channel, for: key)
                } catch {
                    return Self.refuse(error, origin, exchange)
                }
                let message = RoomPublication(publication: Publication(data, info: info))
                return rooms.publish(message, in: shared, by: nil) { result in
                    rooms.hub.release(shared)
                    Self.answer(result, origin, exchange)
                }
            case .send(.error(_, let error)):
                return Self.refuse(Self.status(of: error), error, error.message, origin, exchange)
            case .close(let disconnect):
                let isTooFast = disconnect == .tooManyRequests
                let error: CommandError = isTooFast ? .tooManyRequests : .unauthorized
                return Self.refuse(isTooFast ? 429 : 401, error, disconnect.reason, origin, exchange)
            case .send, .join, .leave, .presence, .presenceStats, .history, .register: break
            }
        }
        Self.refuse(500, .internal, CommandError.internal.message, origin, exchange)
    }
}

extension RoomStreamResponder {
    private static func status(of error: CommandError) -> Int {
        switch error {
        case .unknownChannel: 404
        case .limitExceeded: 413
        case .badRequest: 400
        case .tooManyRequests: 429
        default: 403
        }
    }

    private static func refuse(_ error: RoomHub.AcquireError, _ origin: [FieldLine], _ exchange: PlainExchange) {
        switch error {
        case .tooManyRooms:
            Self.refuse(503, .limitExceeded, "There are too many rooms (max-total).", origin, exchange)
        case .tooManyRoomsOfClient:
            let text = "The client has made too many rooms without members (max-total-per-client)."
            Self.refuse(429, .limitExceeded, text, origin, exchange)
        }
    }

    private static func answer(
        _ result: Result<RoomPublished, RoomBrokerError>, _ origin: [FieldLine], _ exchange: PlainExchange
    ) {
        switch result {
        case .success:
            exchange.respond(
                200, origin + [FieldLine("Content-Type", "application/json")], body: Array("{\"publish\":{}}\n".utf8))
        case .failure(let error):
            let isAway = error == .away || error == .tooManyRooms
            let outcome = error == .uncertain ? "perhaps published" : "not published"
            let text = "The rooms cannot be reached; the message was \(outcome)."
            Self.refuse(isAway ? 503 : 500, error.commandError, text, origin, exchange)
        }
    }
}

/// A streaming response with the pushes of one client.
private final class RoomStream: RoomConnection {
    private let session: RoomSession
    private let exchange: PlainExchange
    private let isEvents: Bool

    init(_ exchange: PlainExchange, encoding: SessionEncoding, trustedUser: TrustedUser) {
        self.exchange = exchange
        self.isEvents = encoding == .events
        self.session = RoomSession(
            exchange.connectionNumber, from: exchange.context?.client, on: exchange.gateway, encoding: encoding,
            trustedUser: trustedUser)
    }

    /// - Parameter lastEventID: of a client that comes back.
    func start(_ request: Command.ConnectRequest, _ lastEventID: String?) {
        var request = request
        if let lastEventID {
            if let positions = EventPositions.positions(in: lastEventID) {
                request.received = positions
            } else {
                // A refusal would end the page's EventSource for good.
                self.exchange.gateway.shared.log.log("a Last-Event-ID that is none of ours is ignored", level: .debug)
            }
        }
        self.session.start(self)
        self.session.connect(request, idLimit: self.isEvents ? self.exchange.maximumHeaderSize / 4 : nil)
    }

    var queuedBytes: Int { self.exchange.queuedBytes }
    var sentBytes: UInt64 { self.exchange.sentBytes }

    func awaitProgress() { self.exchange.awaitProgress() }
    func send(_ replies: [UInt8]) { replies.withRawSpan { _ = self.exchange.write($0) } }
    func send(_ push: SharedMessage) { push.payload.withRawSpan { _ = self.exchange.write($0) } }

    /// Nothing is read from such a client.
    func pauseReading() {}
    func resumeReading() {}

    func close(_ disconnect: Disconnect) { self.exchange.finish() }
}

extension RoomStream: HTTPBodySource {
    func outputProgressed(_ exchange: PlainExchange) { self.session.outputProgressed() }
    func inputClosed(_ exchange: PlainExchange) { exchange.finish() }
    func drain(_ exchange: PlainExchange) { self.session.disconnect(.shutdown) }
    func exchangeEnded() { self.session.connectionEnded() }
}
