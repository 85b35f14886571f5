import GatewayConfiguration
import GatewayCore
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Frames between two WebSockets, through a whole gateway")
struct FrameRelayTests {
    typealias Frame = RawWebSocketPeer.Frame

    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1004"}
        routes:
          - {name: quiet, path: /quiet, target: web, ping-interval: 1h}
          - {name: pinging, path: /pinging, target: web, ping-interval: 10s, pong-timeout: 5s}
          - {name: limited, path: /limited, target: web, max-message-size: 1000, ping-interval: 1h}
        upstreams:
          - {name: web, endpoints: ["ws://10.2.0.1:2002/up"], retries: 0}
        """

    /// An open tunnel's two peers.
    private struct Ends {
        let scene: GatewayScene
        let client: RawWebSocketPeer
        let upstream: RawWebSocketPeer

        /// The sender and the receiver.
        func order(_ sender: TunnelSide) -> (from: RawWebSocketPeer, to: RawWebSocketPeer) {
            sender == .downstream ? (self.client, self.upstream) : (self.upstream, self.client)
        }
    }

    private func ends(_ path: String, seed: UInt64 = 1, faults: FaultPlan = .calm) throws -> Ends {
        let scene = try GatewayScene(Self.configuration, seed: seed)
        scene.network.faults = faults
        let listener = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, path)
        #expect(scene.run { listener.accepted.first?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        let upstream = RawWebSocketPeer(try #require(listener.accepted.first), isClient: false)
        upstream.peer.send(RawWebSocketPeer.response(to: upstream.peer.takeReceived(), accept: AcceptKey.value))
        #expect(scene.head(client)?.hasPrefix("HTTP/1.1 101 ") == true)
        scene.settle()
        return Ends(scene: scene, client: client, upstream: upstream)
    }

    private func cutInTwo(_ peer: RawWebSocketPeer, _ payload: [UInt8]) -> (first: [UInt8], rest: [UInt8]) {
        let bytes = peer.encoded(2, payload)
        return (Array(bytes[..<(bytes.count / 2)]), Array(bytes[(bytes.count / 2)...]))
    }

    private static let large = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    // MARK: Frames

    @Test(arguments: TunnelSide.allCases)
    func framesAreRelayedUnchangedByteByByte(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let bytes =
            from.encoded(1, Array("Fl".utf8), isFinal: false) + from.encoded(0, [], isFinal: false)
            + from.encoded(0, [0xC3], isFinal: false) + from.encoded(0, [0xBC]) + from.encoded(2, [])
            + from.encoded(2, Array(Self.large[..<400]))
        for byte in bytes {
            from.peer.send([byte])
            ends.scene.settle()
        }
        let frames = to.frames
        #expect(frames.map(\.opcode) == [1, 0, 0, 0, 2, 2])
        #expect(frames.map(\.isFinal) == [false, false, false, true, true, true])
        #expect(frames.map(\.payload) == [Array("Fl".utf8), [], [0xC3], [0xBC], [], Array(Self.large[..<400])])
        #expect(frames.allSatisfy { $0.isMasked == (sender == .downstream) })
        // A client does not choose the bytes on the wire to the upstream.
        #expect((to.peer.received.count == bytes.count) && (to.peer.received != bytes) == (sender == .downstream))
        ends.scene.finish()
    }

    /// Random frames both ways at once, cut and delivered at random, with control frames of the peers' own between.
    @Test func framesAreRelayedUnchangedOverAnyNetwork() throws {
        for seed in 1...12 as ClosedRange<UInt64> {
            var chance = SeededGenerator(seed: seed)
            var faults = FaultPlan.rough
            faults.reset = 0
            faults.exhaustion = 0
            faults.hangingConnect = 0
            faults.refusedConnect = 0
            faults.unreachableConnect = 0
            let ends = try self.ends("/quiet", seed: seed, faults: faults)
            var sent: [TunnelSide: [Frame]] = [:]
            var pings: [TunnelSide: Int] = [:]
            for _ in 0..<40 {
                let side = Bool.random(using: &chance) ? TunnelSide.downstream : .upstream
                let from = ends.order(side).from
                let payload = chance.bytes(Int.random(in: 0...3000, using: &chance))
                let opensMessage = sent[side]?.last?.isFinal ?? true
                let frame = Frame(
                    opcode: opensMessage ? 2 : 0, isFinal: Bool.random(using: &chance),
                    isMasked: side == .downstream, payload: payload)
                sent[side, default: []].append(frame)
                let bytes = from.encoded(frame.opcode, payload, isFinal: frame.isFinal)
                for cut in chance.cuts(of: bytes.count, longest: 2000) {
                    from.peer.send(Array(bytes[cut]))
                    if Bool.random(using: &chance) { ends.scene.network.run(for: .milliseconds(3)) }
                }
                if Int.random(in: 0..<4, using: &chance) == 0 {
                    from.send(9, "p")
                    pings[side, default: 0] += 1
                }
            }
            for side in TunnelSide.allCases {
                let to = ends.order(side).to
                let wanted = sent[side] ?? []
                for _ in 0..<30 where to.frames.count(where: { $0.opcode < 8 }) < wanted.count {
                    ends.scene.network.run(for: .seconds(2))
                }
                #expect(to.frames.filter { $0.opcode < 8 } == wanted, "seed \(seed), from \(side)")
                // A peer's pings are answered to it, at most once each, and go no further.
                #expect(!to.frames.contains { $0.opcode == 9 }, "seed \(seed)")
                #expect(
                    ends.order(side).from.frames.count { $0.opcode == 10 } <= pings[side] ?? 0, "seed \(seed)")
            }
            ends.scene.finish()
        }
    }

    // MARK: Pings

    @Test(arguments: TunnelSide.allCases)
    func pingsOfOurOwnWaitForTheEndOfAFrame(_ sender: TunnelSide) throws {
        let ends = try self.ends("/pinging")
        let (from, to) = ends.order(sender)
        let bytes = from.encoded(2, Self.large)
        // Cannot answer pings meanwhile, but shows that it lives.
        for start in stride(from: 0, to: 36_000, by: 4_000) {
            from.peer.send(Array(bytes[start..<start + 4_000]))
            ends.scene.network.run(for: .seconds(4))
        }
        #expect(to.frames.isEmpty && to.peer.failure == nil && to.peer.received.count == 36_000 - to.leftover.count)
        #expect(from.frames.map(\.opcode) == [9, 9, 9])
        from.peer.send(Array(bytes[36_000...]))
        ends.scene.settle()
        #expect(to.frames.map(\.opcode) == [2, 9] && to.frames[0].payload == Self.large)
        // Asked at last, it has the usual time to answer.
        ends.scene.network.run(for: .seconds(4))
        #expect(to.peer.failure == nil)
        to.send(10)
        from.send(10)
        ends.scene.network.run(for: .seconds(4))
        #expect(to.peer.failure == nil)
        _ = ends.scene.run(atMost: .seconds(20)) { to.peer.failure != nil || from.close != nil }
        #expect(ends.scene.gateway.endings.first?.reason.hasSuffix("unresponsive") == true)
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func peerThatStopsReadingAFrameIsDetected(_ sender: TunnelSide) throws {
        let ends = try self.ends("/pinging")
        let (from, to) = ends.order(sender)
        to.peer.isReading = false
        from.peer.send(self.cutInTwo(from, [UInt8](repeating: 1, count: 2_000_000)).first)
        #expect(ends.scene.run(atMost: .seconds(30)) { from.close != nil })
        #expect(from.close?.prefix(2) == [0x03, 0xF3])
        ends.scene.settle()
        #expect(ends.scene.gateway.endings.map(\.reason).allSatisfy { $0.hasSuffix("/relaying/unresponsive") })
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func pingDuringAFrameIsAnsweredAfterIt(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let (first, rest) = self.cutInTwo(from, Self.large)
        from.peer.send(first)
        ends.scene.settle()
        for text in ["one", "two", "three"] {
            to.send(9, text)
            ends.scene.settle()
        }
        #expect(to.frames.isEmpty)
        from.peer.send(rest + from.encoded(1, Array("next".utf8)))
        ends.scene.settle()
        // Of several, the latest alone is answered (RFC 6455 §5.5.3).
        #expect(to.frames.filter { $0.opcode == 10 }.map(\.payload) == [Array("three".utf8)])
        #expect(to.frames.filter { $0.opcode < 8 }.map(\.payload) == [Self.large, Array("next".utf8)])
        #expect(!from.frames.contains { $0.opcode >= 8 })
        ends.scene.finish()
    }

    // MARK: Ends

    @Test(arguments: TunnelSide.allCases)
    func closeInTheOtherDirectionWaitsForTheFrame(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let (first, rest) = self.cutInTwo(from, Self.large)
        from.peer.send(first)
        ends.scene.settle()
        to.send(8, [0x0F, 0xA0, 0x62, 0x79, 0x65])
        ends.scene.settle()
        #expect(from.close == [0x0F, 0xA0, 0x62, 0x79, 0x65])
        #expect(to.close == nil)
        from.peer.send(rest)
        from.send(8, [0x0F, 0xA0])
        ends.scene.settle()
        #expect(to.frames.map(\.opcode) == [2, 8] && to.frames[0].payload == Self.large)
        #expect(to.close == [0x0F, 0xA0])
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func aCloseIsAnsweredThoughAPingWouldBeDueBefore(_ closer: TunnelSide) throws {
        let ends = try self.ends("/pinging")
        let (from, to) = ends.order(closer)
        ends.scene.network.run(for: .seconds(8))
        from.send(8, [0x03, 0xE8])
        ends.scene.network.run(for: .seconds(4))
        #expect(to.close == [0x03, 0xE8] && from.frames.isEmpty && !from.peer.sawEnd)
        to.send(8, [0x03, 0xE8])
        ends.scene.settle()
        #expect(from.close == [0x03, 0xE8])
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases, [false, true])
    func aSenderThatFailsInAFrameIsAResetForTheOther(_ sender: TunnelSide, _ closesMeanwhile: Bool) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let (first, _) = self.cutInTwo(from, Self.large)
        from.peer.send(first)
        ends.scene.settle()
        if closesMeanwhile { to.send(8, [0x03, 0xE8]) }
        ends.scene.settle()
        from.peer.reset()
        #expect(ends.scene.run(atMost: .seconds(1)) { to.peer.failure != nil || to.peer.sawEnd })
        #expect(to.peer.failure == .reset && to.frames.isEmpty)
        // Only the earlier bytes: no Close was inserted into the frame.
        #expect(to.peer.received.count == first.count)
        ends.scene.settle()
        #expect(ends.scene.gateway.endings.count == 1)
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func aSenderThatFailsBetweenFramesIsAnAbnormalCloseForTheOther(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        from.send(2, [1, 2, 3], isFinal: false)
        // A head that is not whole has not begun a frame yet.
        from.peer.send([0x80])
        ends.scene.settle()
        from.peer.reset()
        #expect(ends.scene.run { to.close != nil })
        #expect(to.frames.map(\.opcode) == [2, 8] && to.close?.prefix(2) == [0x03, 0xF3])
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func aBreachByTheReceiverOfAFrameEndsIt(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let (first, _) = self.cutInTwo(from, Self.large)
        from.peer.send(first)
        ends.scene.settle()
        to.send(3, "reserved")
        ends.scene.settle()
        #expect(to.peer.failure == .reset && to.peer.received.count == first.count)
        #expect(from.close?.prefix(2) == [0x03, 0xF3])
        #expect(ends.scene.gateway.endings.map(\.reason).allSatisfy { $0.hasSuffix("/relaying/violation(1002)") })
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases)
    func aMessageBeyondTheLimitEndsBothBetweenFrames(_ sender: TunnelSide) throws {
        let ends = try self.ends("/limited")
        let (from, to) = ends.order(sender)
        from.send(2, [UInt8](repeating: 1, count: 600), isFinal: false)
        from.send(0, [UInt8](repeating: 2, count: 401))
        ends.scene.settle()
        #expect(from.close?.prefix(2) == [0x03, 0xF1])
        #expect(to.frames.map(\.opcode) == [2, 8] && to.close?.prefix(2) == [0x03, 0xF3])
        #expect(ends.scene.gateway.endings.map(\.reason).allSatisfy { $0.hasSuffix("/relaying/violation(1009)") })
        ends.scene.finish()
    }

    @Test(arguments: TunnelSide.allCases, [false, true])
    func badTextEndsBoth(_ sender: TunnelSide, _ arrivesInTwo: Bool) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let bytes = from.encoded(1, Array("good".utf8) + [0xFF] + Array("more".utf8))
        from.peer.send(Array(bytes[..<(bytes.count - 6)]))
        if arrivesInTwo { ends.scene.settle() }
        from.peer.send(Array(bytes[(bytes.count - 6)...]))
        ends.scene.settle()
        #expect(from.close?.prefix(2) == [0x03, 0xEF])
        if arrivesInTwo {
            #expect(to.peer.failure == .reset && to.frames.isEmpty)
        } else {
            #expect(to.frames.map(\.opcode) == [8] && to.close?.prefix(2) == [0x03, 0xF3])
        }
        ends.scene.finish()
    }

    // MARK: Draining

    private func drain(_ ends: Ends) {
        var settings = DrainSettings()
        settings.timeout = .seconds(60)
        settings.closeSpread = .zero
        ends.scene.gateway.drain(settings) {}
        ends.scene.settle()
    }

    @Test func ownCloseWaitsForTheEndOfAFrame() throws {
        let ends = try self.ends("/quiet")
        let (first, rest) = self.cutInTwo(ends.upstream, Self.large)
        ends.upstream.peer.send(first)
        ends.scene.settle()
        self.drain(ends)
        #expect(ends.client.frames.isEmpty)
        ends.upstream.peer.send(rest + ends.upstream.encoded(1, Array("too late".utf8)))
        ends.scene.settle()
        #expect(ends.client.frames.map(\.opcode) == [2, 8] && ends.client.close?.prefix(2) == [0x03, 0xE9])
        ends.client.send(1, "last words")
        ends.client.send(8, [0x03, 0xE9])
        #expect(ends.scene.run { ends.upstream.close != nil })
        #expect(ends.upstream.frames.first?.payload == Array("last words".utf8))
        ends.upstream.send(8, [0x03, 0xE9])
        ends.upstream.peer.finish()
        ends.scene.settle()
        #expect(ends.client.peer.sawEnd && ends.client.peer.failure == nil)
        #expect(ends.scene.gateway.endings.map(\.reason) == ["operator/relaying/drained"])
    }

    @Test func gatewaysOwnCloseWaitsForAFrameInProgress() throws {
        let ends = try self.ends("/quiet")
        let bytes = ends.upstream.encoded(2, Self.large)
        ends.upstream.peer.send(Array(bytes[..<50_000]))
        ends.scene.settle()
        self.drain(ends)
        for start in stride(from: 50_000, to: 90_000, by: 5_000) {
            ends.scene.network.run(for: .seconds(4))
            ends.upstream.peer.send(Array(bytes[start..<start + 5_000]))
        }
        ends.upstream.peer.send(Array(bytes[90_000...]))
        ends.scene.settle()
        #expect(ends.client.frames.map(\.opcode) == [2, 8] && ends.client.peer.failure == nil)
    }

    @Test func crossingCloseIsAnsweredAfterTheFrame() throws {
        let ends = try self.ends("/quiet")
        let (first, rest) = self.cutInTwo(ends.upstream, Self.large)
        ends.upstream.peer.send(first)
        ends.scene.settle()
        self.drain(ends)
        ends.client.send(8, [0x03, 0xE8])
        ends.scene.settle()
        #expect(ends.upstream.close != nil && ends.client.frames.isEmpty && !ends.client.peer.sawEnd)
        ends.upstream.peer.send(rest)
        ends.upstream.send(8, [0x03, 0xE9])
        ends.scene.settle()
        #expect(ends.client.frames.map(\.opcode) == [2, 8] && ends.client.peer.failure == nil)
        #expect(ends.client.peer.sawEnd)
    }

    @Test(arguments: [false, true])
    func endlessFrameDelaysACloseOnlyForABoundedTime(_ clientCloses: Bool) throws {
        let ends = try self.ends("/quiet")
        let (first, _) = self.cutInTwo(ends.upstream, Self.large)
        ends.upstream.peer.send(first)
        ends.scene.settle()
        self.drain(ends)
        if clientCloses { ends.client.send(8, [0x03, 0xE8]) }
        #expect(ends.scene.run(atMost: .seconds(11)) { ends.client.peer.failure == .reset })
        #expect(ends.client.peer.received.count == first.count - ends.client.leftover.count)
        #expect(ends.scene.run(atMost: .seconds(11)) { ends.scene.gateway.liveCount == 0 })
    }

    // MARK: Backpressure

    @Test(arguments: TunnelSide.allCases)
    func aReaderThatStopsInAFrameStopsItsSender(_ sender: TunnelSide) throws {
        let ends = try self.ends("/quiet")
        let (from, to) = ends.order(sender)
        let payload = (0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }
        to.peer.isReading = false
        from.send(2, payload)
        ends.scene.settle()
        #expect(from.peer.unsentBytes > 500_000)
        to.peer.isReading = true
        #expect(ends.scene.run { to.peer.received.count > payload.count })
        ends.scene.settle()
        #expect(to.frames.map(\.opcode) == [2] && to.frames[0].payload == payload)
        ends.scene.finish()
    }
}
