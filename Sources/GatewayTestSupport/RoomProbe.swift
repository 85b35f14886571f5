import ControlAPI

/// A client of the rooms' protocol: a WebSocket that the gateway opens to itself, used through the control plane.
package struct RoomProbe: Sendable {
    package let gateway: LoopbackGateway
    /// The id of the opened connection.
    package let id: String
    /// As other clients see it.
    package let client: String

    /// A gateway with rooms of several policies; `%KEYS%` is replaced.
    package static let configuration = """
        listeners:
          - {name: web, listen: 'ws://127.0.0.1:0'}
        routes:
          - {name: rooms, path: /rooms, target: rooms}
          - {name: chat, path: '/chat/{room}', target: chat}
          - {name: echo, path: /echo, target: echo}
        rooms:
          # A probe connects, and answers pings, only when its test has its turn, which other tests may delay.
          connect-timeout: 1h
          ping-interval: 1h
          user-header: X-User
          policies:
            - {name: kept, pattern: 'kept:*', history-size: 100, recovery: stream, presence: true, max-message-size: 1KiB}
            - {name: small, pattern: 'small:*', max-members: 1}
            - {name: plain, pattern: 'plain*'}
        %KEYS%
        control:
          address: http://127.0.0.1:0
          targets: [127.0.0.1]

        """

    /// - Parameter keys: the lines of `rooms.api-keys`.
    package static func run<Value>(
        keys: String = "", more: String = "", _ body: (LoopbackGateway) async throws -> Value
    ) async throws -> Value {
        let text = Self.configuration.replacing("%KEYS%", with: keys) + more
        return try await LoopbackGateway.run(text, body)
    }

    /// Connects as `user`, and enters `rooms`.
    package init(_ gateway: LoopbackGateway, user: String = "", in rooms: String..., fields: [String: String] = [:])
        async throws
    {
        self.gateway = gateway
        let more = user.isEmpty ? "" : #","headers":{"X-User":"\#(user)"}"#
        let body = #"{"url":"ws://127.0.0.1:\#(gateway.port("web"))/rooms"\#(more)}"#
        let reply = try await gateway.request("POST", "/v1/connections", body, fields: fields)
        self.id = reply.json["id"]?.string ?? ""
        try await Self.send(#"{"id":1,"connect":{}}"#, gateway, self.id)
        let connected = try await Self.receive(gateway, self.id)
        self.client = connected["connect"]?["client"]?.string ?? ""
        for (index, room) in rooms.enumerated() {
            let entered = try await self.command(#"{"id":\#(index + 2),"subscribe":{"channel":"\#(room)"}}"#)
            guard entered["subscribe"] != nil else {
                throw DescribedReplies.Undescribed(description: "\(room): \(entered)")
            }
        }
    }

    /// Sends a command and returns the next reply.
    package func command(_ json: String) async throws -> JSONValue {
        try await Self.send(json, self.gateway, self.id)
        return try await self.receive()
    }

    /// The next reply or push.
    package func receive() async throws -> JSONValue { try await Self.receive(self.gateway, self.id) }

    /// The next message as it was received.
    package func receiveText() async throws -> String { try await Self.text(self.gateway, self.id) }

    /// The end of the connection: the code of the Close frame and its reason.
    package func end() async throws -> String {
        let reply = try await self.gateway.post("/v1/connections/\(self.id):receive", #"{"timeoutMs":100000}"#)
        let connection = reply.json["connection"]
        return "\(connection?["closeCode"]?.integer ?? 0) \(connection?["closeReason"]?.string ?? reply.text)"
    }

    private static func send(_ json: String, _ gateway: LoopbackGateway, _ id: String) async throws {
        let body = String(decoding: Self.quoted(json), as: UTF8.self)
        _ = try await gateway.post("/v1/connections/\(id):send", #"{"text":\#(body)}"#)
    }

    private static func text(_ gateway: LoopbackGateway, _ id: String) async throws -> String {
        while true {
            let reply = try await gateway.post("/v1/connections/\(id):receive", #"{"timeoutMs":100000}"#)
            guard let text = reply.json["text"]?.string else {
                throw DescribedReplies.Undescribed(description: "nothing received: \(reply.status) \(reply.text)")
            }
            // A ping, which is no answer to anything.
            guard text == "{}" else { return text }
            try await Self.send("{}", gateway, id)
        }
    }

    private static func receive(_ gateway: LoopbackGateway, _ id: String) async throws -> JSONValue {
        JSONValue(text: try await Self.text(gateway, id))
    }

    /// `text` as a JSON string.
    private static func quoted(_ text: String) -> [UInt8] {
        let escaped = text.utf8.flatMap { byte -> [UInt8] in
            byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), byte] : [byte]
        }
        return [UInt8(ascii: "\"")] + escaped + [UInt8(ascii: "\"")]
    }
}
