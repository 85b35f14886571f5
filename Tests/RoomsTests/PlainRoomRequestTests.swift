import Rooms
import Testing
import WireText

@Suite("Requests to the rooms by plain HTTP")
struct PlainRoomRequestTests {
    private static func read(_ text: String) throws -> PlainRoomRequest {
        try PlainRoomRequest(Array(text.utf8), encoding: .json)
    }

    @Test(arguments: [#"{"id":1,"connect":{}}"#, "{\"id\":1,\"connect\":{\"token\":\"t\"}}\n{\"id\":2,\"ping\":{}}"])
    func commandsThatConnectBeginASession(_ text: String) throws {
        #expect(try Self.read(text) == .connect(Array(text.utf8)))
    }

    @Test func furtherCommandsAreTextWithinJSON() throws {
        let text = #"{"session":"s","node":"n","data":"{\"id\":2,\"ping\":{}}\n{}","new":[1]}"#
        guard case .emulation(let request) = try Self.read(text) else {
            Issue.record("no commands")
            return
        }
        #expect(request.session == "s" && request.node == "n")
        #expect(request.data == Array("{\"id\":2,\"ping\":{}}\n{}".utf8))
    }

    @Test(arguments: [
        "{}", #"{"subs":{"a":{}}}"#, #"{"token":"t","data":{"session":"s"}}"#, #"{"session":"","data":"{}"}"#,
    ])
    func otherObjectsAreRequestsToReceive(_ text: String) throws {
        #expect(try Self.read(text) == .receive(try UnidirectionalRequest(Array(text.utf8))))
    }

    @Test(arguments: [
        // Malformed commands to connect, and others before it.
        #"{"id":1,"connect":5}"#, #"{"id":1,"connect":{"token":5}}"#, #"{"connect":{"data":{}},"id":"x"}"#,
        #"{"id":1,"subscribe":{"channel":"a"}}"#, #"{"id":1,"ping":{}}"#,
        // Commands of a session that cannot be read.
        #"{"session":5,"data":"{}"}"#, #"{"session":"s","data":{}}"#, #"{"session":"s","node":1,"data":"{}"}"#,
    ])
    func commandsThatBeginNoSessionAreRefused(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try Self.read(text) }
    }

    @Test(arguments: [#"{"publish":{"data":1}}"#, #"{"publish":{"channel":"","data":1}}"#])
    func publicationWithoutAChannelIsRefused(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try Self.read(text) }
    }

    /// Encoded by hand from the field numbers of client.proto.
    @Test func protobufCommandsAreBytes() throws {
        // {id (1) 1, connect (4) {}} after its length
        let connect: [UInt8] = [4, 0x08, 1, 0x22, 0]
        #expect(try PlainRoomRequest(connect, encoding: .protobuf) == .connect(connect))
        // {node (1) "n", session (2) "s", data (3) 01 00}
        let emulation: [UInt8] = [0x0A, 1, 0x6E, 0x12, 1, 0x73, 0x1A, 2, 1, 0]
        guard case .emulation(let request) = try PlainRoomRequest(emulation, encoding: .protobuf) else {
            Issue.record("no commands")
            return
        }
        #expect(request.session == "s" && request.node == "n" && request.data == [1, 0])
    }

    @Test(arguments: [[], [0], [0xFF], [4, 0x08, 1, 0x5A, 0], [0x1A, 2, 1, 0]] as [[UInt8]])
    func otherProtobufIsRefused(_ bytes: [UInt8]) {
        #expect(throws: JSONSyntaxError.self) { try PlainRoomRequest(bytes, encoding: .protobuf) }
    }

    @Test func textThatIsNotUTF8IsRefused() {
        #expect(throws: JSONSyntaxError.self) { try PlainRoomRequest([0x7B, 0xFF, 0x7D], encoding: .json) }
    }
}
