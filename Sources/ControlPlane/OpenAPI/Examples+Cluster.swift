import ControlAPI

/// Examples of the nodes of a cluster.
extension Examples {
    static let cluster: [String: JSONValue] = [
        "DrainList": [
            "items": [
                [
                    "id": "1@b", "node": "b", "state": "running", "total": 600, "notified": 0, "remaining": 600,
                    "cut": 0,
                    "startedAt": "2026-11-22T10:20:30.400Z", "unnotified": 0,
                ]
            ]
        ],
        "NodeDrain": ["reason": "maintenance", "ratePerSecond": 50, "deadlineMs": 300_000],
        "NodeList": [
            "items": [
                [
                    "name": "a", "answering": true, "version": "1.0.0", "startedAt": "2026-11-22T10:20:30.400Z",
                    "connections": 1204, "rooms": 12, "clients": 1100, "processorShare": 0.25, "draining": false,
                    "leaseMs": 8700, "clockDifferenceMs": 0.4,
                ]
            ]
        ],
        "RoomNode": ["node": "a", "members": 2],
    ]
}
