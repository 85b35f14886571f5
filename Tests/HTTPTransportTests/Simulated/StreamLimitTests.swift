import HTTPTransport
import TestSupport
import Testing
import WireText

/// Servers that allow few HTTP/2 streams, or none, and change that (RFC 9113 §5.1.2). Time is virtual.
@Suite("Limits of HTTP/2 streams on the simulated network")
struct StreamLimitTests {
    private func make(limit: UInt32, connections: Int = 6) throws -> (HTTP2Scene, StreamLimitServer) {
        let scene = try HTTP2Scene(nil, limit: connections)
        return (scene, StreamLimitServer(scene.listener, limit: limit))
    }

    @discardableResult
    private func run(
        _ scene: HTTP2Scene, _ server: StreamLimitServer, for limit: Duration, until condition: () -> Bool = { false }
    ) -> Bool {
        scene.testbed.run(
            until: {
                server.step()
                return condition()
            }, atMost: limit)
    }

    // MARK: No streams

    @Test(arguments: [(6, 100), (1, 3), (1, 1)] as [(Int, UInt32)])
    func requestsWaitUntilTheServerAllowsStreams(_ connections: Int, _ limit: UInt32) throws {
        let (scene, server) = try self.make(limit: 0, connections: connections)
        let recorders = (0..<8).map { _ in scene.begin("POST", body: .bytes([1, 2, 3])).1 }
        self.run(scene, server, for: .seconds(20))
        #expect(recorders.allSatisfy { $0.now.ends == 0 })
        // The first one was sent before the SETTINGS.
        #expect(server.requests == 1 && scene.listener.accepted.count == 1)
        server.allow(limit)
        #expect(self.run(scene, server, for: .seconds(5)) { recorders.allSatisfy { $0.now.ends == 1 } })
        #expect(recorders.allSatisfy { $0.now.head?.status == 200 })
        #expect(server.requests == 9 && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func requestsToAServerThatNeverAllowsStreamsTimeOut() throws {
        let (scene, server) = try self.make(limit: 0)
        let early = (0..<4).map { _ in scene.begin().1 }
        self.run(scene, server, for: .seconds(30))
        let late = (0..<4).map { _ in scene.begin().1 }
        self.run(scene, server, for: .seconds(29))
        #expect((early + late).allSatisfy { $0.now.ends == 0 })
        self.run(scene, server, for: .seconds(2))
        #expect(early.allSatisfy { $0.now.failure == .idle } && late.allSatisfy { $0.now.ends == 0 })
        self.run(scene, server, for: .seconds(30))
        #expect(late.allSatisfy { $0.now.failure == .idle })
        #expect(server.requests == 1 && scene.listener.accepted.count == 1)
        // Nothing waits for the connection any more: it is closed as every idle one.
        #expect(self.run(scene, server, for: .seconds(121)) { server.connections.allSatisfy(\.peer.isClosed) })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    /// The timeout of an exchange begins again when the server has allowed streams meanwhile.
    @Test func timeoutCountsTheLatestWaitOnly() throws {
        let (scene, server) = try self.make(limit: 0, connections: 1)
        let recorders = (0..<2).map { _ in scene.begin().1 }
        self.run(scene, server, for: .seconds(50))
        server.answers = false
        server.allow(1)
        self.run(scene, server, for: .seconds(5))
        #expect(server.openStreams == 1)
        server.allow(0)
        server.refuseAll()
        self.run(scene, server, for: .seconds(58))
        #expect(recorders.allSatisfy { $0.now.ends == 0 })
        self.run(scene, server, for: .seconds(3))
        #expect(recorders.allSatisfy { $0.now.failure == .idle } && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func suspendedExchangeDoesNotTimeOutWhileItWaits() throws {
        let (scene, server) = try self.make(limit: 0)
        let (exchange, recorder) = scene.begin()
        self.run(scene, server, for: .seconds(30))
        recorder.suspend(exchange)
        self.run(scene, server, for: .seconds(50))
        recorder.resume(exchange)
        self.run(scene, server, for: .seconds(59))
        #expect(recorder.now.ends == 0)
        self.run(scene, server, for: .seconds(2))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    /// A long wait does not make the connection an idle one, which would be closed.
    @Test func connectionThatExchangesWaitForIsKept() throws {
        let (scene, server) = try self.make(limit: 0)
        let recorders = (0..<3).map { _ in scene.begin(idleTimeout: .seconds(1_000)).1 }
        self.run(scene, server, for: .seconds(900))
        #expect(recorders.allSatisfy { $0.now.ends == 0 })
        #expect(server.requests == 1 && scene.listener.accepted.count == 1)
        server.allow(100)
        #expect(self.run(scene, server, for: .seconds(5)) { recorders.allSatisfy { $0.now.head?.status == 200 } })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    /// Its server may be gone without notice.
    @Test func deadConnectionThatExchangesWaitForIsReplaced() throws {
        let (scene, server) = try self.make(limit: 0)
        let recorders = (0..<3).map { _ in scene.begin(idleTimeout: .seconds(1_000)).1 }
        self.run(scene, server, for: .seconds(1))
        server.isAlive = false
        self.run(scene, server, for: .seconds(50))
        #expect(scene.listener.accepted.count == 1)
        self.run(scene, server, for: .seconds(25))
        #expect(scene.listener.accepted.count == 2)
        server.isAlive = true
        server.allow(100)
        #expect(self.run(scene, server, for: .seconds(5)) { recorders.allSatisfy { $0.now.head?.status == 200 } })
        #expect(scene.end() == [])
    }

    @Test func exchangesThatWaitForALostConnectionOpenAnother() throws {
        let (scene, server) = try self.make(limit: 0)
        let recorders = (0..<3).map { _ in scene.begin().1 }
        self.run(scene, server, for: .seconds(1))
        server.connections[0].peer.reset()
        self.run(scene, server, for: .seconds(1))
        #expect(scene.listener.accepted.count == 2 && server.requests == 2)
        server.allow(100)
        #expect(self.run(scene, server, for: .seconds(5)) { recorders.allSatisfy { $0.now.head?.status == 200 } })
        #expect(scene.listener.accepted.count == 2)
        #expect(scene.end() == [])
    }

    /// Each refusal costs a connection, so that their number must be bounded.
    @Test func serverThatClosesAfterEachRefusalIsGivenUp() throws {
        let (scene, server) = try self.make(limit: 0)
        server.leavesAfterRefusal = true
        let recorders = (0..<2).map { _ in scene.begin().1 }
        #expect(self.run(scene, server, for: .seconds(50)) { recorders.allSatisfy { $0.now.ends == 1 } })
        #expect(recorders.allSatisfy { $0.now.failure == .http2(.refused) })
        #expect(scene.listener.accepted.count <= 24)
        #expect(scene.end() == [])
    }

    @Test func closedPoolOpensNoConnectionForExchangesThatWait() throws {
        let (scene, server) = try self.make(limit: 0)
        let recorders = (0..<3).map { _ in scene.begin().1 }
        self.run(scene, server, for: .seconds(1))
        scene.pool.close()
        self.run(scene, server, for: .seconds(1))
        #expect(recorders.allSatisfy { $0.now.failure == .poolClosed } && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    // MARK: Few streams

    /// The server may lower its limit below the number of requests under way, and refuse them.
    @Test func refusalsAboveALoweredLimitAreNotCounted() throws {
        let (scene, server) = try self.make(limit: 100)
        server.answers = false
        let recorders = (0..<3).map { _ in scene.begin("POST", body: .bytes([1])).1 }
        self.run(scene, server, for: .seconds(1))
        #expect(server.openStreams == 3)
        // Refusals that count, up to the last that is allowed.
        for _ in 0..<5 {
            server.refuseAll()
            self.run(scene, server, for: .seconds(1))
        }
        #expect(server.openStreams == 3 && server.requests == 18)
        server.allow(0)
        server.refuseAll()
        self.run(scene, server, for: .seconds(1))
        #expect(recorders.allSatisfy { $0.now.ends == 0 } && server.openStreams == 0)
        server.answers = true
        server.allow(100)
        #expect(self.run(scene, server, for: .seconds(5)) { recorders.allSatisfy { $0.now.head?.status == 200 } })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func refusalsWithinTheLimitAreCounted() throws {
        let (scene, server) = try self.make(limit: 1)
        server.refusesAll = true
        let (_, recorder) = scene.begin()
        #expect(self.run(scene, server, for: .seconds(50)) { recorder.now.ends == 1 })
        #expect(recorder.now.failure == .http2(.refused) && server.requests == 6)
        #expect(scene.end() == [])
    }

    /// The stream of a cancelled request counts until its RST_STREAM is written.
    @Test func connectionWhoseLimitIsReachedIsNotReplaced() throws {
        let (scene, server) = try self.make(limit: 1, connections: 1)
        server.answers = false
        let (first, _) = scene.begin()
        self.run(scene, server, for: .seconds(1))
        #expect(server.openStreams == 1)
        first.cancel()
        let (_, second) = scene.begin()
        self.run(scene, server, for: .seconds(1))
        #expect(second.now.connections.count == 1)
        #expect(server.requests == 2 && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }
}
