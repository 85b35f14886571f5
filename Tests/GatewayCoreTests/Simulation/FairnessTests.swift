import ByteKernels
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Work for one client in one turn of a whole gateway")
struct FairnessTests {
    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1001"}
          - {name: lines, listen: "tcp://10.1.0.1:1002", route: lines}
          - {name: prefixed, listen: "tcp://10.1.0.1:1003", route: prefixed}
          - {name: encoded, listen: "tcp://10.1.0.1:1004", route: encoded}
        routes:
          - {name: echo, path: /echo, target: echo, compress: true}
          - {name: pieces, path: /pieces, target: echo, keep-fragmentation: true}
          - {name: stream, path: /stream, target: "tcp://10.2.0.1:2001", compress: true}
          - {name: frames, path: /frames, target: web}
          - {name: inflated, path: /inflated, target: web, compress: true}
          - {name: lines, target: web, framing: lines}
          - {name: prefixed, target: web, framing: length-prefixed}
          - {name: encoded, target: web, framing: base64}
        upstreams:
          - {name: web, endpoints: ["ws://10.2.0.1:2002/"], retries: 0}
        """

    /// The bytes that a client sends, and the most that may be processed in one turn.
    struct Attack: CustomTestStringConvertible {
        let testDescription: String
        let target: String
        let bytes: [UInt8]
        var port: UInt16 = 1001
        var compresses = false
        /// Of a stream, 0.
        var frames = 0
        /// After inflation.
        var payload = 0

        var isStream: Bool { self.port != 1001 }
    }

    // MARK: Attacks

    private static func masked(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let size: [UInt8] =
            payload.count < 126
            ? [0x80 | UInt8(payload.count)] : [0xFE, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        return [first] + size + [0, 0, 0, 0] + payload
    }

    private static func repeated(_ piece: [UInt8], _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(piece.count * count)
        for _ in 0..<count { bytes += piece }
        return bytes
    }

    private static let count = 30_000
    private static let bombs = 24

    /// A message of 1 MiB of zeros.
    private static let bomb: [UInt8] = {
        var engine = WebSocketEngine(role: .client, maximumMessageSize: nil)
        engine.startDeflate(PermessageDeflateParameters(), policy: DeflatePolicy(level: 9), context: DeflateContext())
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        let share = zeros.withRawSpan { engine.compress(startsMessage: true, endsMessage: true, $0) }
        return share?.withCompressed { Self.masked(0xC2, [UInt8]($0)) } ?? []
    }()

    private static func webSocketAttacks(at target: String, compresses: Bool) -> [Attack] {
        let count = Self.count
        if compresses {
            return [
                Attack(
                    testDescription: "zeros at \(target)", target: target, bytes: Self.repeated(Self.bomb, Self.bombs),
                    compresses: true, frames: Self.bombs, payload: Self.bombs << 20)
            ]
        }
        return [
            Attack(
                testDescription: "fragments at \(target)", target: target,
                bytes: Self.masked(0x02, [1]) + Self.repeated(Self.masked(0x00, [1]), count - 2)
                    + Self.masked(0x80, [1]), frames: count, payload: count),
            Attack(
                testDescription: "pings at \(target)", target: target,
                bytes: Self.repeated(Self.masked(0x89, [1]), count), frames: count),
            Attack(
                testDescription: "messages at \(target)", target: target,
                bytes: Self.repeated(Self.masked(0x82, [1]), count), frames: count, payload: count),
        ]
    }

    private static let attacks: [Attack] =
        ["/echo", "/stream", "/inflated"].flatMap { Self.webSocketAttacks(at: $0, compresses: true) }
        + ["/echo", "/pieces", "/stream", "/frames"].flatMap { Self.webSocketAttacks(at: $0, compresses: false) }
        + [
            Attack(
                testDescription: "lines", target: "", bytes: Self.repeated([0x0A], 400_000), port: 1002,
                payload: 400_000),
            Attack(
                testDescription: "empty prefixes", target: "", bytes: Self.repeated([0, 0, 0, 0], 100_000), port: 1003,
                payload: 400_000),
        ]

    // MARK: The scene

    /// A gateway whose upstreams take all that comes.
    private func scene() throws -> GatewayScene {
        let scene = try GatewayScene(Self.configuration)
        var faults = FaultPlan.calm
        faults.receiveBuffer = (512 << 10)...(512 << 10)
        faults.sendBuffer = (512 << 10)...(512 << 10)
        faults.turnCost = .microseconds(200) ... .microseconds(200)
        scene.network.faults = faults
        return scene
    }

    private func connect(_ attack: Attack, in scene: GatewayScene) throws -> ScriptedPeer {
        let web = try scene.upstream(2002)
        _ = try scene.upstream(2001)
        let client = try scene.client(attack.port)
        if !attack.isStream {
            var request = RawWebSocketPeer.request(to: attack.target)
            if attack.compresses {
                request = request.replacing(
                    "Sec-WebSocket-Version",
                    with: "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version")
            }
            client.send(request)
        }
        if ["/frames", "/inflated", ""].contains(attack.target) {
            #expect(scene.run { web.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
            let upstream = try #require(web.accepted.first)
            upstream.send(RawWebSocketPeer.response(to: upstream.takeReceived(), accept: AcceptKey.value))
        }
        if !attack.isStream { #expect(scene.run { client.received.suffix(4) == Array("\r\n\r\n".utf8)[...] }) }
        scene.settle()
        return client
    }

    /// The frames and bytes read so far from the first connection's client.
    private func progress(_ scene: GatewayScene) -> (frames: Int, bytes: Int) {
        let part = scene.gateway.parts[0]
        guard let record = part.reports(of: part.identifiers.prefix(1)).first?.record else { return (0, 0) }
        return (Int(record.framesReceived), Int(record.bytesReceived))
    }

    /// In one turn a client gets its share of work done, and a small message of a neighbour does not wait until all of
    /// the client's is.
    @Test(arguments: Self.attacks)
    func attackIsBoundedInOneTurn(_ attack: Attack) throws {
        let scene = try self.scene()
        let hostile = try self.connect(attack, in: scene)
        let neighbour = try scene.webSocketClient(1001, "/echo")
        #expect(scene.head(neighbour)?.hasPrefix("HTTP/1.1 101 ") == true)

        hostile.send(attack.bytes)
        var last = (frames: 0, bytes: 0)
        var most = (frames: 0, bytes: 0)
        var doneAtAnswer: (frames: Int, bytes: Int)?
        var hasAsked = false
        let isDone = scene.run(atMost: .seconds(60)) {
            let now = self.progress(scene)
            most = (max(most.frames, now.frames - last.frames), max(most.bytes, now.bytes - last.bytes))
            last = now
            if !hasAsked, now.bytes + now.frames > 0 {
                hasAsked = true
                neighbour.send(2, "hello")
            }
            if doneAtAnswer == nil, !neighbour.peer.received.isEmpty { doneAtAnswer = now }
            return now.frames >= attack.frames && now.bytes >= attack.payload
        }
        #expect(isDone, "\(last)")
        #expect(most.frames <= TurnBudget.share / TurnBudget.forwardedFrame + FrameForwarder.frameLimit, "\(most)")
        #expect(most.bytes <= TurnBudget.share, "\(most)")
        let atAnswer = try #require(doneAtAnswer)
        #expect(atAnswer.frames < attack.frames || atAnswer.bytes < attack.payload, "\(atAnswer)")
        #expect(scene.run { neighbour.frames.map(\.payload) == [Array("hello".utf8)] })
        scene.finish()
    }

    /// A long message that is compressed again goes back in pieces, whole.
    @Test func messageEchoedOverManyTurnsIsComplete() throws {
        let scene = try self.scene()
        let attack = Attack(
            testDescription: "", target: "/echo", bytes: Self.bomb, compresses: true, frames: 1, payload: 1 << 20)
        let client = try self.connect(attack, in: scene)
        _ = client.takeReceived()
        client.send(attack.bytes + Self.masked(0x81, Array("behind".utf8)))
        let ends = RawWebSocketPeer(client, isClient: true)
        #expect(scene.run { ends.frames.last?.isFinal == true && ends.frames.last?.opcode == 1 })
        let frames = ends.frames
        #expect(frames.first?.opcode == 2 && frames.dropFirst().dropLast().allSatisfy { $0.opcode == 0 })
        #expect(frames.count == 1 + (1 << 20) / (64 << 10))
        #expect(frames.map(\.isFinal) == [Bool](repeating: false, count: frames.count - 2) + [true, true])
        scene.finish()
    }
}
