import GatewayConfiguration
import GatewayCore
import GatewayTestSupport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("A whole gateway between scripted peers")
struct GatewayBehaviourTests {
    private static let configuration = """
        listeners:
          - {name: raw, listen: "tcp://10.1.0.1:1001", route: raw}
          - {name: bridged, listen: "tcp://10.1.0.1:1002", route: bridged}
          - {name: named, listen: "tcp://10.1.0.1:1003", route: named}
          - {name: lines, listen: "tcp://10.1.0.1:1005", route: lines}
          - {name: web, listen: "ws://10.1.0.1:1004"}
          - name: proxied
            listen: "ws://10.1.0.1:1006"
            proxy-protocol: require
            proxy-protocol-trusted: ["10.0.0.0/8"]
        routes:
          - {name: raw, target: stream}
          - {name: bridged, target: web}
          - {name: named, target: stream, proxy-protocol: v1}
          - {name: to-stream, path: /stream, target: stream}
          - {name: to-web, path: /web, target: web}
          - {name: lines, target: web, framing: lines}
          - {name: pinged, path: /pinged, target: web, ping-interval: 1s}
          - {name: echo, path: /echo, target: echo}
        upstreams:
          - {name: stream, endpoints: ["tcp://10.2.0.1:2001"], connect-timeout: 3s, handshake-timeout: 5s, retries: 0}
          - {name: web, endpoints: ["ws://10.2.0.1:2002/up"], connect-timeout: 3s, handshake-timeout: 5s, retries: 0}
        """

    /// A raw client joined with a WebSocket upstream.
    private func bridged(_ scene: GatewayScene, by port: UInt16 = 1002) throws -> (
        client: ScriptedPeer, upstream: RawWebSocketPeer
    ) {
        let listener = try scene.upstream(2002)
        let client = try scene.client(port)
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let upstream = RawWebSocketPeer(try #require(listener.accepted.first), isClient: false)
        upstream.peer.send(RawWebSocketPeer.response(to: upstream.peer.takeReceived(), accept: AcceptKey.value))
        scene.settle()
        return (client, upstream)
    }

    @Test func lineOfAnyLengthIsCarriedWithoutALimit() throws {
        let scene = try GatewayScene(Self.configuration)
        let (client, upstream) = try self.bridged(scene, by: 1005)
        let line = [UInt8](repeating: 0x61, count: 3 << 20)
        client.send(line)
        // It is relayed while it arrives, before its end.
        #expect(scene.run { upstream.peer.received.count >= line.count })
        client.send([0x0A])
        #expect(scene.run { upstream.frames.last?.isFinal == true })
        let frames = upstream.frames
        #expect(frames.first?.opcode == 1 && frames.dropFirst().allSatisfy { $0.opcode == 0 })
        #expect(frames.flatMap(\.payload) == line)
        upstream.send(1, line)
        #expect(scene.run { client.received.count > line.count })
        #expect(client.received == line + [0x0A])
        scene.finish()
    }

    @Test func bytesBeforeTheUpstreamConnectsAreDelivered() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try scene.client(1001)
        client.send("early")
        client.finish()
        let listener = try scene.upstream(2001)
        #expect(scene.run { listener.accepted.first?.sawEnd == true })
        let upstream = listener.accepted[0]
        #expect(upstream.received == Array("early".utf8))
        upstream.send("late")
        upstream.finish()
        #expect(scene.run { client.sawEnd })
        #expect(client.received == Array("late".utf8) && client.failure == nil)
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/clean"])
        scene.finish()
    }

    /// The PROXY header with the client's address arrives after the listener was removed from the configuration.
    @Test func reloadKeepsAcceptedConnections() throws {
        let scene = try GatewayScene(Self.configuration)
        let client = try scene.client(1006)
        scene.settle()
        let others = Self.configuration.replacing("name: proxied", with: "name: another")
        let reloaded = try ConfigurationSamples.configuration(others)
        scene.gateway.shared.withAdmission { $0.reload(reloaded) }
        client.send("PROXY TCP4 198.51.100.7 10.1.0.1 7777 1006\r\n" + RawWebSocketPeer.request(to: "/echo"))
        let web = RawWebSocketPeer(client, isClient: true)
        #expect(scene.head(web)?.hasPrefix("HTTP/1.1 101 ") == true)
        scene.finish()
    }

    @Test func frameReceivedWithTheRequestIsRelayed() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        let encoder = try scene.webSocketClient(1004, "/echo")
        let early = encoder.encoded(2, Array("early".utf8))
        #expect(scene.head(encoder)?.hasPrefix("HTTP/1.1 101 ") == true)
        for target in ["/echo", "/stream"] {
            let client = try scene.webSocketClient(1004, target, followedBy: early + early)
            #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101 ") == true)
            if target == "/echo" {
                #expect(scene.run { client.frames.map(\.payload) == [Array("early".utf8), Array("early".utf8)] })
            } else {
                #expect(scene.run { listener.accepted.first?.received == Array("earlyearly".utf8) })
            }
        }
        scene.finish()
    }

    @Test func frameReceivedWithTheUpstreams101IsRelayed() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2002)
        let raw = try scene.client(1002)
        let web = try scene.webSocketClient(1004, "/web")
        #expect(
            scene.run {
                listener.accepted.count == 2
                    && listener.accepted.allSatisfy { $0.received.suffix(4) == Array("\r\n\r\n".utf8)[...] }
            })
        for peer in listener.accepted {
            let upstream = RawWebSocketPeer(peer, isClient: false)
            let answer = RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value)
            peer.send(answer + upstream.encoded(2, Array("early".utf8)) + upstream.encoded(2, Array("bird".utf8)))
        }
        #expect(scene.run { raw.received == Array("earlybird".utf8) })
        #expect(scene.head(web)?.hasPrefix("HTTP/1.1 101 ") == true)
        #expect(scene.run { web.frames.map(\.payload) == [Array("early".utf8), Array("bird".utf8)] })
        scene.finish()
    }

    @Test func upstreamReceivesTheClientsAddress() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        let client = try scene.client(1003)
        client.send("hello")
        #expect(scene.run { listener.accepted.first?.received.suffix(5) == Array("hello".utf8)[...] })
        let own = try #require(scene.host.system.localAddress(client.descriptor))
        guard case .ipv4(let address, let port) = own else {
            Issue.record("no address")
            return
        }
        let digits = (0..<4).map { "\(address >> (24 - 8 * $0) & 0xFF)" }.joined(separator: ".")
        #expect(
            listener.accepted[0].received == Array("PROXY TCP4 \(digits) 10.1.0.1 \(port) 1003\r\nhello".utf8))
        scene.finish()
    }

    @Test func upstreamReceivesIPv4AddressFromADualStackListener() throws {
        let scene = try GatewayScene(Self.configuration.replacing("tcp://10.1.0.1:1003", with: "tcp://*:1003"))
        let listener = try scene.upstream(2001)
        let client = try scene.client(1003)
        client.send("hello")
        #expect(scene.run { listener.accepted.first?.received.suffix(5) == Array("hello".utf8)[...] })
        let heard = String(decoding: listener.accepted.first?.received ?? [], as: UTF8.self)
        #expect(heard.hasPrefix("PROXY TCP4 10.") && heard.contains(" 10.1.0.1 "), "\(heard)")
        scene.finish()
    }

    /// RFC 9110 §5.5: bytes that are neither ASCII nor UTF-8 are opaque.
    @Test func opaqueFieldBytesPassUnchanged() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2002)
        let client = try scene.client(1004)
        let request = Array(RawWebSocketPeer.request(to: "/web").utf8).dropLast(2)
        let cookie = Array("Cookie: a=caf".utf8) + [0xE9, 0x80, 0xFF, 0x0D, 0x0A]
        client.send(request + cookie + [0x0D, 0x0A])
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let heard = listener.accepted.first?.received ?? []
        #expect(heard.indices.contains { heard[$0...].starts(with: cookie) })
        scene.finish()
    }

    @Test func failedConnectDiffersFromAFailedHandshake() throws {
        let scene = try GatewayScene(Self.configuration)
        scene.network.connectScripts[.ipv4(address: 0x0A02_0001, port: 2001)] = .hangs
        let unconnected = try scene.webSocketClient(1004, "/stream")
        #expect(scene.head(unconnected)?.hasPrefix("HTTP/1.1 504 ") == true)
        _ = try scene.upstream(2002)
        let unanswered = try scene.webSocketClient(1004, "/web")
        #expect(scene.head(unanswered)?.hasPrefix("HTTP/1.1 504 ") == true)
        #expect(
            scene.gateway.endings.map(\.reason) == [
                "upstream/connecting/connect-timeout", "upstream/connecting/upstream-handshake-timeout",
            ])
        scene.finish()
    }

    /// Else the balancer would take the endpoint for busy for ever.
    @Test func abandonedAttemptIsNotCounted() throws {
        let scene = try GatewayScene(Self.configuration)
        scene.network.connectScripts[.ipv4(address: 0x0A02_0001, port: 2001)] = .hangs
        let clients = try (0..<3).map { _ in try scene.client(1001) }
        #expect(scene.run { scene.gateway.plan.upstreamConnections == 3 })
        clients[0].reset()
        #expect(scene.run { scene.gateway.plan.upstreamConnections == 2 })
        var empty = 0
        scene.gateway.drain(DrainSettings()) { empty += 1 }
        #expect(scene.run { empty == 1 })
        #expect(scene.gateway.plan.upstreamConnections == 0)
        scene.finish()
    }

    @Test func anUpstreamThatVanishesWithoutCloseIsAResetTowardsARawClient() throws {
        let scene = try GatewayScene(Self.configuration)
        let (client, upstream) = try self.bridged(scene)
        upstream.send(2, "half")
        upstream.peer.finish()
        #expect(scene.run { client.failure != nil || client.sawEnd })
        #expect(client.failure == .reset && !client.sawEnd)
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["upstream/relaying/truncated"])
        scene.finish()
    }

    @Test func aResetClientIsAnAbnormalCloseTowardsTheUpstream() throws {
        let scene = try GatewayScene(Self.configuration)
        let (client, upstream) = try self.bridged(scene)
        client.send("half")
        scene.settle()
        client.reset()
        #expect(scene.run { upstream.close != nil })
        #expect(upstream.close?.prefix(2) == [0x03, 0xF3])
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/reset"])
        scene.finish()
    }

    @Test func closingPeerReceivesMessagesUnderWay() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/web")
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let upstream = RawWebSocketPeer(listener.accepted[0], isClient: false)
        upstream.peer.send(RawWebSocketPeer.response(to: upstream.peer.takeReceived(), accept: AcceptKey.value))
        #expect(scene.head(client) != nil)
        client.send(1, "question")
        client.send(8, [0x03, 0xE8])
        #expect(scene.run { upstream.close != nil })
        upstream.send(1, "answer")
        upstream.send(8, [0x03, 0xE8])
        #expect(scene.run { client.close != nil })
        #expect(client.frames.map(\.opcode) == [1, 8] && client.frames[0].payload == Array("answer".utf8))
        scene.settle()
        scene.finish()
    }

    /// The answer to its Close comes from the other side, which may take longer than a ping would wait.
    @Test func closeIsAnsweredThoughAPingIsDue() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/pinged")
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let upstream = RawWebSocketPeer(listener.accepted[0], isClient: false)
        upstream.peer.send(RawWebSocketPeer.response(to: upstream.peer.takeReceived(), accept: AcceptKey.value))
        #expect(scene.head(client) != nil)
        client.send(8, [0x03, 0xE8])
        #expect(scene.run { upstream.close != nil })
        _ = scene.network.run(for: .seconds(3))
        #expect(client.close == nil && !client.peer.sawEnd)
        upstream.send(8, [0x03, 0xE8])
        #expect(scene.run { client.close == [0x03, 0xE8] })
        scene.settle()
        scene.finish()
    }

    @Test func slowReaderReceivesAllDataBeyondTheCloseTimeout() throws {
        let scene = try GatewayScene(Self.configuration)
        let (client, upstream) = try self.bridged(scene)
        client.isReading = false
        client.readLimit = 20_000
        let message = [UInt8](repeating: 7, count: 600_000)
        upstream.send(2, message)
        upstream.send(8, [0x03, 0xE8])
        for _ in 0..<40 where !client.sawEnd && client.failure == nil {
            _ = scene.network.run(for: .seconds(4))
            let before = client.received.count
            client.isReading = true
            _ = scene.run(atMost: .milliseconds(100)) { client.received.count >= before + 60_000 }
            client.isReading = false
        }
        client.isReading = true
        #expect(scene.run { client.sawEnd || client.failure != nil })
        #expect(client.received.count == message.count)
        #expect(client.failure == nil, "\(scene.gateway.endings) at \(scene.network.now)")
        scene.finish()
    }

    /// A window kept shut in both directions at once must not stop either for good.
    @Test(arguments: [1001, 1002])
    func muchGoesBothWaysAtOnce(_ port: UInt16) throws {
        let scene = try GatewayScene(Self.configuration)
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        if port == 1001 {
            let listener = try scene.upstream(2001)
            let client = try scene.client(1001)
            #expect(scene.run { listener.accepted.count == 1 })
            client.send(bytes)
            listener.accepted[0].send(bytes)
            #expect(
                scene.run { client.received.count == bytes.count && listener.accepted[0].received.count == bytes.count }
            )
            #expect(client.received == bytes && listener.accepted[0].received == bytes)
        } else {
            let (client, upstream) = try self.bridged(scene)
            client.send(bytes)
            for start in stride(from: 0, to: bytes.count, by: 100_000) {
                upstream.send(2, Array(bytes[start..<start + 100_000]))
            }
            #expect(scene.run { client.received.count == bytes.count && upstream.peer.received.count > bytes.count })
            #expect(scene.run { upstream.frames.reduce(0) { $0 + $1.payload.count } == bytes.count })
            #expect(client.received == bytes && upstream.frames.flatMap(\.payload) == bytes)
        }
        scene.finish()
    }

    @Test func drainClosesWebSocketsAndResetsTheRestAtItsDeadline() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        let raw = try scene.client(1001)
        let polite = try scene.webSocketClient(1004, "/echo")
        let deaf = try scene.webSocketClient(1004, "/echo")
        #expect(scene.head(polite) != nil && scene.head(deaf) != nil)
        #expect(scene.run { listener.accepted.count == 1 })
        var settings = DrainSettings()
        settings.timeout = .seconds(4)
        settings.closeSpread = .seconds(2)
        var empty = 0
        scene.gateway.drain(settings) { empty += 1 }
        #expect(scene.run(atMost: .seconds(3)) { polite.close != nil && deaf.close != nil })
        #expect(polite.close?.prefix(2) == [0x03, 0xE9] && deaf.close?.prefix(2) == [0x03, 0xE9])
        polite.send(8, [0x03, 0xE9])
        let newcomer = try scene.client(1001)
        #expect(scene.run(atMost: .milliseconds(100)) { newcomer.failure == .refused })
        #expect(raw.failure == nil && !raw.sawEnd && empty == 0)
        #expect(scene.run(atMost: .seconds(5)) { empty == 1 })
        #expect(scene.run { raw.failure == .reset && deaf.peer.failure == .reset })
        #expect(polite.peer.failure == nil)
        #expect(scene.gateway.endings.count == 3)
        #expect(scene.gateway.endings.allSatisfy { $0.reason.hasPrefix("operator/") && $0.reason.hasSuffix("drained") })
        scene.host.close()
        scene.settle()
        #expect(empty == 1 && scene.gateway.process.openDescriptors == 0)
    }

    @Test func aSecondDrainJoinsTheFirst() throws {
        let scene = try GatewayScene(Self.configuration)
        let deaf = try scene.webSocketClient(1004, "/echo")
        #expect(scene.head(deaf) != nil)
        var settings = DrainSettings()
        settings.timeout = .seconds(4)
        var empty: [Int] = []
        scene.gateway.drain(settings) { empty.append(1) }
        settings.timeout = .seconds(600)
        scene.gateway.drain(settings) { empty.append(2) }
        #expect(scene.run(atMost: .seconds(5)) { empty == [1, 2] })
        #expect(scene.run { deaf.peer.failure == .reset })
        scene.host.close()
        scene.settle()
        #expect(scene.gateway.process.openDescriptors == 0)
    }

    /// After our Close a client that keeps sending is still under backpressure.
    @Test func closingTunnelKeepsBackpressure() throws {
        let scene = try GatewayScene(Self.configuration)
        let listener = try scene.upstream(2001)
        listener.acceptsReading = false
        let client = try scene.webSocketClient(1004, "/stream")
        #expect(scene.head(client) != nil)
        let payload = [UInt8](repeating: 7, count: 4000)
        for _ in 0..<1000 { client.send(2, payload) }
        _ = scene.network.run(for: .seconds(1))
        #expect(client.peer.unsentBytes > 0)
        scene.gateway.drain(DrainSettings()) {}
        #expect(scene.run { client.close != nil })
        _ = scene.network.run(for: .seconds(3))
        let held = scene.gateway.parts[0].largestQueue(onRoute: "to-stream")
        #expect(held > 0 && held < 2 * 64 * 1024 + 4096)
        scene.finish()
    }

    @Test(arguments: [ConnectScript.refused, .hangs])
    func failedAttemptIsDeallocated(_ script: ConnectScript) throws {
        let scene = try GatewayScene(Self.configuration)
        for port in [UInt16(2001), 2002] {
            scene.network.connectScripts[.ipv4(address: 0x0A02_0001, port: port)] = script
        }
        let clients = [try scene.client(1001), try scene.client(1002)]
        #expect(scene.run { scene.gateway.plan.upstreamConnections == 2 })
        let watched = scene.gateway.parts.flatMap { WeakObject.graph(of: $0.liveConnections) }
        #expect(Set(watched.map(\.name)).isSuperset(of: ["UpstreamSession", "StreamTask", "WebSocketTask"]))
        #expect(scene.run { clients.allSatisfy { $0.failure == .reset } })
        scene.finish()
        #expect(
            watched.filter { $0.object != nil && !["LoopTimer", "LoopTaskMetrics"].contains($0.name) }.map(\.name) == []
        )
    }

    @Test func closedTunnelIsDeallocated() throws {
        let scene = try GatewayScene(Self.configuration)
        let stream = try scene.upstream(2001)
        let web = try scene.upstream(2002)
        var watched: [WeakObject] = []
        for round in 0..<250 {
            let peers = [try scene.client(1001), try scene.client(1002)]
            let clients = [try scene.webSocketClient(1004, "/stream"), try scene.webSocketClient(1004, "/web")]
            scene.settle()
            for peer in web.accepted.suffix(2) {
                peer.send(RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value))
            }
            scene.settle()
            #expect(scene.gateway.liveCount == 4)
            watched += scene.gateway.parts.flatMap { WeakObject.graph(of: $0.liveConnections) }
            switch round % 3 {
            case 0:
                for peer in peers { peer.reset() }
                for client in clients { client.peer.reset() }
            case 1:
                for peer in stream.accepted.suffix(2) { peer.finish() }
                for peer in web.accepted.suffix(2) { RawWebSocketPeer(peer, isClient: false).send(8, [0x03, 0xE8]) }
                scene.settle()
                for peer in peers { peer.close() }
                for client in clients { client.peer.close() }
            default:
                for client in clients { client.send(8, [0x03, 0xE8]) }
                for peer in peers { peer.finish() }
                scene.settle()
                for peer in stream.accepted.suffix(2) { peer.close() }
                for peer in web.accepted.suffix(2) { peer.close() }
            }
            _ = scene.network.run(for: .seconds(25))
            #expect(scene.gateway.liveCount == 0, "round \(round)")
        }
        let names = Set(watched.map(\.name))
        #expect(
            names.isSuperset(of: [
                "Tunnel", "TunnelEnd", "StreamTask", "WebSocketTask", "SocketConnection", "ConnectionContext",
            ]))
        // A cancelled timer may stay in the queue for a while, without its owner.
        let left = watched.filter { $0.object != nil && !["LoopTimer", "LoopTaskMetrics"].contains($0.name) }.map(
            \.name)
        #expect(scene.gateway.parts[0].loop.timerCount <= 128)
        #expect(left.isEmpty, "\(Dictionary(left.map { ($0, 1) }, uniquingKeysWith: +))")
        scene.finish()
    }
}
