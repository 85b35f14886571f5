import ControlAPI

/// Examples of rooms and users.
extension Examples {
    static let rooms: [String: JSONValue] = [
        "ClientCount": ["clients": 2],
        "RestrictionList": ["items": [Self.restriction]], "Room": Self.room,
        "RoomBroadcast": ["rooms": ["chat:lobby", "chat:news"], "data": ["text": "hello"]],
        "RoomBroadcastAnswer": [
            "items": [
                ["room": "chat:lobby", "offset": 42, "epoch": Self.epoch],
                ["room": "chat:news", "problem": "unknown-room", "detail": "No policy of rooms.policies matches."],
            ]
        ],
        "RoomDisconnect": ["user": "42", "code": 4001, "reason": "maintenance"],
        "RoomEvent": Self.roomEvent,
        "RoomHistoryPage": ["items": [Self.publication], "offset": 42, "epoch": Self.epoch],
        "RoomKick": ["user": "42"], "RoomMemberPage": ["items": [Self.member]],
        "RoomPage": ["items": [Self.room], "next": "/v1/rooms?cursor=chat%3Alobby"],
        "RoomPosition": ["offset": 42, "epoch": Self.epoch],
        "RoomPublish": ["data": ["text": "hello"], "tags": ["language": "en"], "idempotencyKey": "order-17"],
        "RoomRestriction": ["user": "42", "durationMs": 600_000], "RoomRestrictionEnd": ["user": "42"],
        "User": [
            "id": "42", "connectionCount": 1,
            "connections": [["client": Self.client, "connection": "17", "roomCount": 1, "rooms": ["chat:lobby"]]],
            "restrictions": [Self.restriction],
        ],
        "UserPage": [
            "items": [
                [
                    "id": "42", "connectionCount": 2, "rooms": ["chat:lobby"], "hasMoreRooms": false,
                    "nodes": ["a", "b"],
                ]
            ], "next": "/v1/users?cursor=42",
        ],
        "UserDisconnect": ["code": 4501, "reason": "account closed"],
        "UserRestriction": ["durationMs": 600_000], "UserSend": ["data": ["text": "hello"]],
    ]

    private static let epoch: JSONValue = "5b1c8fa0d2e94c37"
    private static let client: JSONValue = "0c9d1f5a77e2b3845f6a1b2c3d4e5f60"

    private static let room: JSONValue = [
        "name": "chat:lobby", "policy": "chat", "members": 3, "clients": 3, "users": 2, "publications": 40,
        "historyBytes": 12_040, "offset": 42, "epoch": Self.epoch,
    ]

    private static let member: JSONValue = [
        "client": Self.client, "user": "42", "connection": "17", "connectionInfo": ["name": "Ada"],
        "roomInfo": ["role": "moderator"],
    ]

    private static let publication: JSONValue = [
        "offset": 42, "at": "2026-11-22T10:20:30.400Z", "data": ["text": "hello"], "tags": ["language": "en"],
        "publisher": Self.member,
    ]

    private static let restriction: JSONValue = [
        "kind": "mute", "user": "42", "room": "chat:lobby", "remainingMs": 540_000,
    ]

    static let roomSettings: JSONValue = [
        "policies": [["name": "news", "pattern": "news:*", "publish": "nobody", "history-size": 100]],
        "api-keys": [
            [
                "name": "backend",
                "hash": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ]
        ],
    ]

    private static let roomEvent: JSONValue = ["type": "publication", "publication": Self.publication]

    static let roomEventMessage: JSONValue = [
        "id": "5b1c8fa0d2e94c37.42", "event": "publication",
        "data": .string(String(decoding: Self.roomEvent.bytes, as: UTF8.self)),
    ]
}
