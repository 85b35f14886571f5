import GatewayCore
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Empty binary message as the end of a direction")
struct EndMarkTests {
    /// A message in pieces of these lengths, and what is found in them.
    struct Message: Sendable, CustomTestStringConvertible {
        let kind: MessageKind
        let pieces: [Int]
        let findings: [EndMarkDetector.Finding]

        var testDescription: String { "\(self.kind) \(self.pieces)" }
    }

    private static let messages: [Message] = [
        Message(kind: .binary, pieces: [0], findings: [.endMark]),
        Message(kind: .binary, pieces: [0, 0, 0], findings: [.undecided, .undecided, .endMark]),
        Message(kind: .binary, pieces: [1], findings: [.data]),
        Message(kind: .binary, pieces: [1, 0], findings: [.data, .data]),
        Message(kind: .binary, pieces: [0, 1, 0], findings: [.undecided, .data, .data]),
        Message(kind: .text, pieces: [0], findings: [.data]),
        Message(kind: .text, pieces: [0, 0], findings: [.data, .data]),
    ]

    /// Each message after each other one.
    @Test(arguments: Self.messages, Self.messages)
    func messageIsEmptyIfAllItsPiecesAre(_ first: Message, _ second: Message) {
        var detector = EndMarkDetector()
        for message in [first, second] {
            let findings = message.pieces.enumerated().map { index, count in
                detector.take(message.kind, count: count, endsMessage: index == message.pieces.count - 1)
            }
            #expect(findings == message.findings)
        }
    }

    // MARK: Through a whole gateway

    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1004"}
        routes:
          - {name: stream, path: /stream, target: stream, half-close: signal, compress: true}
        upstreams:
          - {name: stream, endpoints: ["tcp://10.2.0.1:2001"]}
        """

    struct Frame: Sendable {
        let opcode: UInt8
        let payload: [UInt8]
        let isFinal: Bool

        init(_ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool) {
            self.opcode = opcode
            self.payload = payload
            self.isFinal = isFinal
        }
    }

    /// RSV1 of the first frame: the message is compressed (RFC 7692 §6). The byte 00 is an empty message (§7.2.3.6).
    private static let compressed: UInt8 = 0x40
    private static let marks: [[Frame]] = [
        [Frame(2, isFinal: true)],
        [Frame(2, isFinal: false), Frame(0, isFinal: true)],
        [Frame(2, isFinal: false), Frame(0, isFinal: false), Frame(9, isFinal: true), Frame(0, isFinal: true)],
        [Frame(2 | Self.compressed, [0], isFinal: true)],
        [Frame(2 | Self.compressed, isFinal: false), Frame(0, [0], isFinal: true)],
        [Frame(2 | Self.compressed, [0], isFinal: false), Frame(0, isFinal: true)],
    ]
    private static let otherMessages: [[Frame]] = [
        [Frame(1, isFinal: true)],
        [Frame(1, isFinal: false), Frame(0, isFinal: true)],
        [Frame(2, [0x61], isFinal: false), Frame(0, isFinal: true)],
        [Frame(2, isFinal: false), Frame(0, [0x61], isFinal: true)],
        [Frame(2, isFinal: false), Frame(0, [0x61], isFinal: false), Frame(0, isFinal: true)],
    ]

    private func tunnel() throws -> (scene: GatewayScene, client: RawWebSocketPeer, upstream: ScriptedPeer) {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        let client = RawWebSocketPeer(try scene.client(1004), isClient: true)
        client.peer.send(
            RawWebSocketPeer.request(to: "/stream").replacing(
                "Sec-WebSocket-Version", with: "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version"))
        #expect(scene.head(client)?.contains("permessage-deflate") == true)
        #expect(scene.run { !listener.accepted.isEmpty })
        return (scene, client, try #require(listener.accepted.first))
    }

    private func send(_ frames: [Frame], by client: RawWebSocketPeer, bytewise: Bool, in scene: GatewayScene) {
        let bytes = frames.flatMap { client.encoded($0.opcode, $0.payload, isFinal: $0.isFinal) }
        guard bytewise else { return client.peer.send(bytes) }
        for byte in bytes {
            client.peer.send([byte])
            scene.settle()
        }
    }

    @Test(arguments: Self.marks, [false, true])
    func markInAnyNumberOfFramesFinishesTheStream(_ mark: [Frame], _ bytewise: Bool) throws {
        let (scene, client, upstream) = try self.tunnel()
        client.send(2, "last")
        self.send(mark, by: client, bytewise: bytewise, in: scene)
        #expect(scene.run { upstream.sawEnd })
        #expect(upstream.received == Array("last".utf8) && upstream.failure == nil)
        // The other direction stays open.
        upstream.send("reply")
        upstream.finish()
        #expect(scene.run { client.close != nil })
        #expect(client.frames.filter { $0.opcode == 2 }.map(\.payload) == [Array("reply".utf8), []])
        #expect(client.close == [0x03, 0xE8])
        scene.finish()
    }

    @Test(arguments: Self.otherMessages, [false, true])
    func textAndContentFinishNothing(_ message: [Frame], _ bytewise: Bool) throws {
        let (scene, client, upstream) = try self.tunnel()
        self.send(message, by: client, bytewise: bytewise, in: scene)
        client.send(2, "more")
        let content = message.flatMap(\.payload)
        #expect(scene.run { upstream.received == content + Array("more".utf8) })
        #expect(!upstream.sawEnd && client.close == nil)
        scene.finish()
    }

    /// A second mark changes nothing, and only content breaks the rule.
    @Test func contentAfterAMarkIsAViolation() throws {
        let (scene, client, upstream) = try self.tunnel()
        for mark in Self.marks { self.send(mark, by: client, bytewise: false, in: scene) }
        client.send(2, [], isFinal: false)
        scene.settle()
        #expect(upstream.sawEnd && client.close == nil)
        client.send(0, "x")
        #expect(scene.run { client.close != nil })
        #expect(client.close?.prefix(2) == [0x03, 0xEA])
        scene.finish()
    }
}
