import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Batches of room messages, for members of all kinds")
struct RoomBatchTests {
    private static let texts = (0..<50).map { "message \($0) " + String(repeating: "abc", count: $0) }

    private static func configuration() throws -> String {
        """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1001"}
          - {name: secure, listen: "wss://10.1.0.1:1002", tls: \(try LoadConfiguration.listenerIdentity())}
        routes:
          - {name: chat, path: "/plain/chat/{room}", target: chat}
          - {name: packed-chat, path: "/packed/chat/{room}", target: chat, compress: {min-size: 0, context-takeover: true}}
          - {name: lean-chat, path: "/lean/chat/{room}", target: chat, compress: {min-size: 0, context-takeover: false}}
          - {name: programs, path: /plain/rooms, target: rooms}
          - {name: packed-programs, path: /packed/rooms, target: rooms, compress: {min-size: 0, context-takeover: true}}
          - {name: lean-programs, path: /lean/rooms, target: rooms, compress: {min-size: 0, context-takeover: false}}
        rooms: {command-rate: 1000000}
        """
    }

    /// A client of a gateway, in room `x`.
    private final class Member {
        let kind: String
        private let isProgram: Bool
        private let task: WebSocketTask
        private let clock: () -> MonotonicInstant
        private var messages: [String] = []
        /// When messages came.
        private(set) var instants: Set<MonotonicInstant> = []

        init(
            _ kind: String, isProgram: Bool, secure: SecureSettings?, on loop: Loop,
            clock: @escaping () -> MonotonicInstant
        ) {
            self.kind = "\(kind)\(isProgram ? " program" : "")\(secure == nil ? "" : " over TLS")"
            self.isProgram = isProgram
            self.clock = clock
            let policy = kind == "plain" ? nil : DeflatePolicy(peerContextTakeover: kind == "packed", minimumSize: 0)
            let path = isProgram ? "/\(kind)/rooms" : "/\(kind)/chat/x"
            let handshake = ClientHandshake(authority: "gateway.test", target: path, offers: policy?.offers ?? [])
            var target = OpeningTarget(.address(GatewayScene.gatewayAddress(secure == nil ? 1001 : 1002)))
            target.secure = secure
            self.task = WebSocketTask(
                opening: ClientOpening(target: target, handshake: handshake, deflate: policy), on: loop)
        }

        func start() {
            self.receive()
            self.task.resumeOnLoop()
            guard self.isProgram else { return }
            self.send(#"{"id":1,"connect":{}}"# + "\n" + #"{"id":2,"subscribe":{"channel":"x"}}"#)
        }

        private func receive() {
            self.task.receive { result in
                guard case .success(let message) = result else { return }
                if case .string(let text) = message { self.messages.append(text) }
                self.instants.insert(self.clock())
                self.receive()
            }
        }

        func send(_ text: String) { self.task.send(.string(text)) { _ in } }
        func publish(_ texts: [String]) {
            let commands = texts.enumerated().map {
                #"{"id":\#($0 + 10),"publish":{"channel":"x","data":"\#($1)"}}"#
            }
            self.send(commands.joined(separator: "\n"))
        }
        func reset() { self.task.reset() }

        var isCompressed: Bool { self.task.compresses }

        /// Texts of the room's messages, each of which is one message of the WebSocket.
        var heard: [String] {
            guard self.isProgram else { return self.messages }
            return self.messages.filter { $0.hasPrefix(#"{"push":"#) }.compactMap { push in
                let start = #"{"push":{"channel":"x","pub":{"data":""#
                guard push.hasPrefix(start), let end = push.dropFirst(start.count).firstIndex(of: "\"") else {
                    return nil
                }
                return String(push.dropFirst(start.count)[..<end])
            }
        }

        func forget() {
            self.messages = []
            self.instants = []
        }
    }

    private final class Crowd {
        let scene: GatewayScene
        private let loop: Loop
        let members: [Member]

        init(loops: Int) throws {
            let scene = try GatewayScene(RoomBatchTests.configuration(), loops: loops)
            let loop = Loop(system: scene.network.makeSystem())
            (loop.system as? SimulatedSystem)?.drive { loop.turn() }
            let secure = try LoadConfiguration.makeClientSettings()
            self.members = ["plain", "packed", "lean"].flatMap { kind in
                [false, true].flatMap { isProgram in
                    [nil, secure].map { secure in
                        Member(kind, isProgram: isProgram, secure: secure, on: loop) { scene.network.now }
                    }
                }
            }
            self.scene = scene
            self.loop = loop
            let members = self.members
            loop.inNextTurn(GatewayCall { for member in members { member.start() } })
            #expect(scene.run { self.memberCount == members.count })
            scene.settle()
            #expect(members.allSatisfy { $0.isCompressed == !$0.kind.hasPrefix("plain") })
            for member in members { member.forget() }
        }

        var memberCount: Int {
            self.scene.gateway.shared.hub.rooms.reduce(0) { $0 + $1.counts(now: .zero).members }
        }

        func perform(_ body: @escaping () -> Void) { self.loop.inNextTurn(GatewayCall(body)) }

        /// - Parameter author: hears nothing if it speaks no protocol.
        func expectAllHear(_ texts: [String], without author: String? = nil) {
            let listeners = self.members.filter { $0.kind != author }
            #expect(self.scene.run { listeners.allSatisfy { $0.heard.count >= texts.count } })
            self.scene.settle()
            for member in listeners { #expect(member.heard == texts, "\(member.kind)") }
        }

        func finish() {
            let members = self.members
            self.perform { for member in members { member.reset() } }
            self.scene.settle()
            self.scene.finish()
        }
    }

    @Test(arguments: [1, 2])
    func memberOfEachKindGetsTheMessagesOfAClientWithoutAProtocol(_ loops: Int) throws {
        let crowd = try Crowd(loops: loops)
        let speaker = try crowd.scene.webSocketClient(1001, "/plain/chat/x")
        #expect(crowd.scene.head(speaker)?.hasPrefix("HTTP/1.1 101 ") == true)
        crowd.scene.settle()
        // One read of the gateway, so that all are delivered in one turn.
        speaker.peer.send(Self.texts.flatMap { speaker.encoded(1, Array($0.utf8)) })
        crowd.expectAllHear(Self.texts)
        for member in crowd.members { #expect(member.instants.count == 1, "\(member.kind)") }
        #expect(speaker.frames.isEmpty)
        crowd.finish()
    }

    @Test(arguments: [1, 2])
    func memberOfEachKindGetsThePublicationsOfEachProgram(_ loops: Int) throws {
        let crowd = try Crowd(loops: loops)
        for program in crowd.members where program.kind.contains("program") {
            crowd.perform { program.publish(Self.texts) }
            crowd.expectAllHear(Self.texts)
            for member in crowd.members { member.forget() }
        }
        crowd.finish()
    }

    @Test func memberOfEachKindWithoutAProtocolHearsAllButItself() throws {
        let crowd = try Crowd(loops: 1)
        for author in crowd.members where !author.kind.contains("program") {
            crowd.perform { for text in Self.texts { author.send(text) } }
            crowd.expectAllHear(Self.texts, without: author.kind)
            #expect(author.heard.isEmpty)
            for member in crowd.members { member.forget() }
        }
        crowd.finish()
    }

    /// A message with a context of its own would be compressed for each member.
    @Test(arguments: [
        ("chat", "true", true), ("rooms", "{level: 4}", true), ("chat", "{context-takeover: true}", false),
        ("rooms", "{context-takeover: true}", false), ("echo", "true", false),
    ])
    func compressionOfRoomsNeedsNoContextUnlessTheRouteSaysSo(
        _ target: String, _ compression: String, _ isShared: Bool
    ) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: one, path: /x, target: \(target), compress: \(compression)}]
            """)
        let peer = try scene.client(1001)
        peer.send(TokenScene.request("/x", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"))
        let head = try #require(scene.head(RawWebSocketPeer(peer, isClient: true)))
        #expect(head.contains("Sec-WebSocket-Extensions: permessage-deflate"), "\(head)")
        #expect(head.contains("server_no_context_takeover") == isShared && !head.contains("client_no"), "\(head)")
        scene.finish()
    }
}
