import ControlAPI
import ControlPlane
import GatewayCore
import SessionTasks
import Testing

@Suite("Requests to open connections")
struct ClientConnectionRequestTests {
    private func request(_ members: String) throws -> ClientConnectionRequest {
        let body = #"{"url":"ws://127.0.0.1:1/"\#(members)}"#
        return try OpenRequestParser(JSONBody.decode(OpenRequest.self, from: Array(body.utf8))).parse()
    }

    @Test(arguments: [
        (#","headers":{"Sec-WebSocket-Key":"x"}"#, "/headers/Sec-WebSocket-Key"),
        (#","headers":{"a b":"x"}"#, "/headers/a b"), (#","headers":{"a/~b":"x"}"#, "/headers/a~1~0b"),
        (#","headers":{"X":"a\r\nY: b"}"#, "/headers/X"), (#","subprotocols":["a","a"]"#, "/subprotocols"),
        (#","subprotocols":["a b"]"#, "/subprotocols"), (#","priority":2"#, "/priority"),
        (#","maximumMessageSize":0"#, "/maximumMessageSize"),
        (#","maximumMessageSizeBytes":0"#, "/maximumMessageSizeBytes"),
        (#","maximumMessageSize":1,"maximumMessageSizeBytes":2"#, "/maximumMessageSize"),
        (#","tls":{}"#, "/tls"),
    ])
    func invalidMemberHasItsPointer(_ members: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) { try self.request(members) }
        #expect(problem?.status == 422)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func messageSizeHasTwoNames() throws {
        #expect(try self.request(#","maximumMessageSize":7"#).options.maximumMessageSize == 7)
        #expect(try self.request(#","maximumMessageSizeBytes":7"#).options.maximumMessageSize == 7)
        #expect(
            try self.request(#","maximumMessageSize":7,"maximumMessageSizeBytes":7"#).options.maximumMessageSize == 7)
    }
}
