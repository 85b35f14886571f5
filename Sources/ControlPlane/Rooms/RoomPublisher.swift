import ControlAPI
import GatewayConfiguration
import GatewayCore
import Rooms
import WireText

/// Publishes for the server, after checks that the REST interface and the server API share.
struct RoomPublisher: Sendable {
    enum Refusal: Error, Equatable {
        case invalidName
        /// No policy matches the name.
        case unknownRoom
        /// - Parameter limit: of the room's policy, in bytes.
        case tooLarge(limit: Int)
        /// The gateway's loops are behind.
        case busy
        case broker(RoomBrokerError)

        var problem: ControlProblem {
            switch self {
            case .invalidName:
                ControlProblem(
                    422, "invalid-room",
                    "A room's name has 1 to rooms.max-name-length bytes and no control characters.")
            case .unknownRoom:
                ControlProblem(404, "unknown-room", "No policy of rooms.policies matches the room's name.")
            case .tooLarge(let limit):
                ControlProblem(
                    422, "message-too-large", "The room's policy allows \(limit) bytes (max-message-size).")
            case .busy:
                ControlProblem(
                    503, "rooms-behind", "The gateway is behind with the rooms' messages; try again soon."
                ).retryable(after: 1)
            case .broker(let error): Self.problem(error)
            }
        }

        static func problem(_ error: RoomBrokerError) -> ControlProblem {
            switch error {
            case .away:
                ControlProblem(503, "rooms-away", "Redis cannot be reached, nothing was done; try again.")
                    .retryable(after: 1)
            case .uncertain:
                ControlProblem(
                    502, "rooms-uncertain", "The connection to Redis was lost; the request may have been executed.")
            case .refused(let reason): ControlProblem(502, "rooms-refused", "Redis refused: \(reason)")
            case .tooManyRooms:
                ControlProblem(
                    503, "too-many-rooms", "The gateway has as many rooms as rooms.max-total allows; try again later."
                ).retryable(after: 10)
            case .tooLarge:
                ControlProblem(422, "too-many-clients", "The room has more clients than one answer lists.")
            case .unrecoverablePosition:
                ControlProblem(410, "other-epoch", "The room has another epoch; start again without since.")
                    .at(parameter: "since")
            }
        }

        var error: CommandError {
            switch self {
            case .invalidName: .badRequest
            case .unknownRoom: .unknownChannel
            case .tooLarge: .limitExceeded
            case .busy: .tooManyRequests
            case .broker(.tooManyRooms): .limitExceeded
            case .broker: .internal
            }
        }
    }

    let rooms: RoomOperations

    private var hub: RoomHub { self.rooms.hub }

    func isValid(_ room: String) -> Bool { self.hub.currentSettings.client.allowsName(room) }

    func publish(
        _ publication: Publication, in room: String, skipsHistory: Bool, idempotencyKey: String?
    ) async throws(Refusal) -> StreamPosition {
        guard self.isValid(room) else { throw .invalidName }
        guard let policy = self.hub.policy(of: room) else { throw .unknownRoom }
        guard publication.data.bytes.count <= policy.maximumMessageSize else {
            throw .tooLarge(limit: policy.maximumMessageSize)
        }
        do {
            return try await self.rooms.publish(
                publication, in: room, skipsHistory: skipsHistory, idempotencyKey: idempotencyKey)
        } catch {
            switch error {
            case .unknownRoom: throw .unknownRoom
            case .busy: throw .busy
            case .broker(let error): throw .broker(error)
            }
        }
    }

    // MARK: Data of requests

    /// The payload of a request with the members `data` and `b64data`. JSON is taken from `body` as it is: a decoded value
    /// would lose the order of members and the digits of large numbers.
    static func payload(
        _ data: JSONValue?, _ b64data: String?, in body: [UInt8]
    ) throws(ControlProblem) -> Payload {
        switch (data, b64data) {
        case (.some, nil):
            guard let raw = Self.text(of: "data", in: body) else {
                throw .invalid("/data", "data nests more than \(JSONReader.usualDepth) arrays and objects.")
            }
            return .json(raw)
        case (nil, let text?):
            guard let bytes = Base64.decoded(text.utf8), !bytes.isEmpty else {
                throw .invalid("/b64data", "b64data must be base64 (RFC 4648 §4) of at least one byte.")
            }
            return Payload(detecting: bytes)
        case (nil, nil), (.some, .some): throw .invalid("/data", "Give either data or b64data.")
        }
    }

    /// Text of a member of the object in `body`; `nil` if it is missing or nests too deeply.
    private static func text(of name: String, in body: [UInt8]) -> [UInt8]? {
        var reader = JSONReader(body, maximumDepth: JSONReader.usualDepth + 1)
        var text: [UInt8]?
        try? reader.readObject { (member, value) throws(JSONSyntaxError) in
            if member == MemberName(name) { text = try value.readRaw() } else { try value.skipValue() }
        }
        return text
    }

    static func tags(_ tags: [String: String]?) -> [Tag] {
        (tags ?? [:]).sorted { $0.key < $1.key }.map { Tag($0.key, $0.value) }
    }
}
