import HTTP2Engine
import HTTPTransport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WireText

/// Time is virtual here: timeouts take no time, and are exact.
@Suite("HTTP/2 exchanges on the simulated network")
struct SimulatedHTTP2Tests {
    @Test func silentServerEndsTheExchangeAfterTheSettingsTimeout() throws {
        let scene = try HTTP2Scene(nil)
        let (_, recorder) = scene.begin()
        scene.run(for: .seconds(29))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(recorder.now.failure == .http2(.settingsTimeout))
        #expect(scene.end() == [])
    }

    /// A response that has begun, in a connection whose server writes its frames by itself.
    private func dribble(_ scene: HTTP2Scene, _ recorder: ExchangeRecorder, frames: Int) {
        let peer = scene.listener.accepted[0]
        if recorder.now.head == nil { peer.send([0, 0, 0, 4, 0, 0, 0, 0, 0] + [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88]) }
        peer.send(Array(repeatElement([0, 0, 1, 0, 0, 0, 0, 0, 1, 7], count: frames).joined()))
    }

    @Test func manySmallFramesOverTimeAreContent() throws {
        let scene = try HTTP2Scene(nil)
        let (_, recorder) = scene.begin()
        scene.run(for: .seconds(1))
        for _ in 0..<20 {
            self.dribble(scene, recorder, frames: 1_000)
            scene.run(for: .seconds(1))
        }
        #expect(recorder.now.ends == 0 && recorder.now.content.count == 20_000)
        #expect(scene.end() == [])
    }

    @Test func manySmallFramesAtOnceAreAFlood() throws {
        let scene = try HTTP2Scene(nil)
        let (_, recorder) = scene.begin()
        scene.run(for: .seconds(1))
        self.dribble(scene, recorder, frames: 60_000)
        #expect(scene.run(atMost: .seconds(1)) { recorder.now.ends == 1 })
        #expect(recorder.now.failure == .http2(.violation("more frames than the limit for their content")))
        // The second without input, and the limit.
        #expect(recorder.now.content.count < 30_000)
        #expect(scene.end() == [])
    }

    @Test func idleTimeoutDoesNotRunWhileTheConsumerIsSlow() throws {
        let content = [UInt8](repeating: 7, count: 600_000)
        let scene = try HTTP2Scene(content)
        let (exchange, recorder) = scene.begin(pull: 0)
        scene.run(for: .seconds(600))
        #expect(recorder.now.head?.status == 200 && recorder.now.content.isEmpty && recorder.now.ends == 0)
        recorder.pull(.max, exchange)
        #expect(scene.run { recorder.now.ends == 1 })
        #expect(recorder.now.content == content)
        #expect(scene.end() == [])
    }

    enum EndOfTheServer: CaseIterable { case reset, goAway, close }

    /// As over HTTP/1.1: what the server sent before the end is not lost.
    @Test(arguments: EndOfTheServer.allCases, [false, true])
    func receivedContentIsDeliveredBeforeTheFailure(_ end: EndOfTheServer, _ isSuspended: Bool) throws {
        let scene = try HTTP2Scene(nil)
        let (exchange, diary) = scene.begin(pull: 0)
        scene.run(for: .seconds(1))
        if isSuspended { diary.suspend(exchange) }
        self.dribble(scene, diary, frames: 5)
        let peer = scene.listener.accepted[0]
        switch end {
        case .reset: peer.send([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2])
        case .goAway: peer.send([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 1, 0, 0, 0, 2])
        case .close: break
        }
        if end != .reset { peer.finish() }
        scene.run(for: .seconds(600))
        #expect(diary.now.ends == 0 && diary.now.content.isEmpty)
        diary.pull(.max, exchange)
        if isSuspended { diary.resume(exchange) }
        #expect(scene.run(atMost: .seconds(1)) { diary.now.ends == 1 })
        #expect(diary.now.head?.status == 200 && diary.now.content == [7, 7, 7, 7, 7])
        let lost = ExchangeFailure.truncated(received: 5, expected: nil, cause: nil)
        #expect(diary.now.failure == (end == .close ? lost : .http2(.reset(code: "INTERNAL_ERROR"))))
        #expect(scene.end() == [])
    }

    @Test func responseWhoseEndIsMissingCanBeCancelled() throws {
        let scene = try HTTP2Scene(nil)
        let (exchange, diary) = scene.begin(pull: 0)
        scene.run(for: .seconds(1))
        self.dribble(scene, diary, frames: 5)
        scene.listener.accepted[0].finish()
        scene.run(for: .seconds(1))
        exchange.cancel()
        #expect(scene.run(atMost: .seconds(1)) { diary.now.failure == .cancelled })
        #expect(scene.end() == [])
    }

    @Test func suspensionDoesNotCountAsIdle() throws {
        let scene = try HTTP2Scene([1])
        scene.answers = false
        let (exchange, recorder) = scene.begin()
        scene.run(for: .seconds(1))
        recorder.suspend(exchange)
        scene.run(for: .seconds(50))
        recorder.resume(exchange)
        scene.run(for: .seconds(59))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    @Test func idleConnectionIsClosedAfterItsTimeout() throws {
        let scene = try HTTP2Scene([1])
        let (_, recorder) = scene.begin()
        #expect(scene.run { recorder.now.ends == 1 })
        scene.run(for: .seconds(59))
        #expect(scene.listener.accepted.map(\.sawEnd) == [false])
        scene.run(for: .seconds(2))
        #expect(scene.listener.accepted.map(\.sawEnd) == [true])
        #expect(scene.end() == [])
    }

    /// The window for the rest of the body, or for its end, never opens (RFC 9113 §8.1).
    @Test(arguments: [(200_000, true), (200_000, false), (65_535, false)])
    func responseBeforeTheEndOfTheBodyFreesItsStream(_ size: Int, _ isLengthKnown: Bool) throws {
        var settings = HTTP2Settings()
        settings.streamWindow = 65_535
        let scene = try HTTP2Scene([1], settings: settings)
        let source = FixedBody([UInt8](repeating: 1, count: size))
        let (_, recorder) = scene.begin("POST", body: .source(source, length: isLengthKnown ? Int64(size) : nil))
        #expect(scene.run(atMost: .seconds(1)) { recorder.now.ends == 1 })
        #expect(recorder.now.head?.status == 200 && recorder.now.content == [1])
        #expect(scene.run(atMost: .seconds(1)) { scene.openStreams() == 0 })
        scene.pool.close()
        #expect(scene.run(atMost: .seconds(1)) { scene.listener.accepted.allSatisfy(\.sawEnd) })
        #expect(scene.end() == [])
    }

    /// RST_STREAM does not get through a connection that is blocked; the connection is closed without it.
    @Test func connectionOfACancelledUploadIsClosedWhileItsOutputIsBlocked() throws {
        let scene = try HTTP2Scene([1])
        scene.answersAtHead = false
        let (_, first) = scene.begin()
        #expect(scene.run(atMost: .seconds(1)) { first.now.ends == 1 })
        scene.mutedConnections = [0]
        scene.listener.accepted[0].isReading = false
        let (upload, recorder) = scene.begin("POST", body: .bytes([UInt8](repeating: 1, count: 4_000_000)))
        scene.run(for: .seconds(1))
        upload.cancel()
        scene.pool.close()
        #expect(scene.run(atMost: .seconds(5)) { scene.listener.accepted[0].isClosed })
        #expect(recorder.now.failure == .cancelled)
        #expect(scene.end() == [])
    }

    /// A server that allows few streams refuses those that were begun before its settings came.
    @Test func requestsBeyondTheFirstWaitForTheSettings() throws {
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 1
        let scene = try HTTP2Scene([1], settings: settings)
        scene.answers = false
        let recorders = (0..<10).map { _ in scene.begin().1 }
        scene.run(for: .seconds(5))
        #expect((0..<6).map { scene.frames(1, on: $0).count } == [1, 1, 1, 1, 1, 1])
        #expect(recorders.allSatisfy { $0.now.ends == 0 })
        scene.pool.close()
        #expect(scene.end() == [])
    }

    @Test func requestThatWaitsForADiscardedConnectionGetsAnother() throws {
        let scene = try HTTP2Scene([1])
        scene.mutedConnections = [0]
        let (first, _) = scene.begin()
        let (_, second) = scene.begin()
        scene.run(for: .seconds(1))
        first.cancel()
        scene.run(for: .seconds(1))
        scene.pool.retireConnections()
        #expect(scene.run(atMost: .seconds(5)) { second.now.ends == 1 })
        #expect(second.now.content == [1] && scene.listener.accepted.count == 2)
        #expect(scene.end() == [])
    }

    /// The first of them shows what is to be expected of the server.
    @Test func requestsToAServerWithoutSettingsFailSideBySide() throws {
        let scene = try HTTP2Scene([1])
        scene.mutedConnections = Set(0..<100)
        let recorders = (0..<12).map { _ in scene.begin().1 }
        scene.run(for: .seconds(100))
        #expect(recorders.allSatisfy { $0.now.ends == 1 })
        #expect(scene.end() == [])
    }

    // MARK: Timeouts

    /// A server that opens its window by 1000 bytes a second: 100 seconds for the whole.
    @Test func slowlyOpenedWindowDoesNotTimeOut() throws {
        var settings = HTTP2Settings()
        settings.streamWindow = 1_000
        let scene = try HTTP2Scene([1], settings: settings)
        scene.answersAtHead = false
        let (_, recorder) = scene.begin("POST", body: .bytes([UInt8](repeating: 1, count: 100_000)))
        for _ in 0..<150 where recorder.now.ends == 0 {
            scene.run(for: .seconds(1))
            scene.consume(1_000, of: 1)
        }
        #expect(recorder.now.head?.status == 200 && recorder.now.failure == nil)
        #expect(scene.end() == [])
    }

    @Test func windowThatNeverOpensTimesOut() throws {
        var settings = HTTP2Settings()
        settings.streamWindow = 1_000
        let scene = try HTTP2Scene([1], settings: settings)
        scene.answersAtHead = false
        let (_, recorder) = scene.begin("POST", body: .bytes([UInt8](repeating: 1, count: 100_000)))
        scene.run(for: .seconds(59))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(63))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    /// The body is in frames at once, and takes minutes to leave.
    @Test func slowNetworkDoesNotTimeOut() throws {
        var faults = FaultPlan.calm
        faults.segmentSize = 500...500
        faults.sendBuffer = 1_000...1_000
        faults.stall = 1
        faults.stallDuration = .seconds(1) ... .seconds(1)
        let scene = try HTTP2Scene([1], faults: faults)
        scene.answersAtHead = false
        let (_, recorder) = scene.begin("POST", body: .bytes([UInt8](repeating: 1, count: 300_000)))
        scene.run(for: .seconds(100))
        #expect(recorder.now.ends == 0)
        #expect(scene.run(atMost: .seconds(1_000)) { recorder.now.ends == 1 })
        #expect(recorder.now.head?.status == 200 && recorder.now.failure == nil)
        #expect(scene.end() == [])
    }

    /// The window allows the whole body, and nothing arrives.
    @Test func bodyThatNobodyTakesIsIdleAfterOneAndAHalfTimeouts() throws {
        let scene = try HTTP2Scene([1])
        scene.answersAtHead = false
        let (_, first) = scene.begin()
        #expect(scene.run(atMost: .seconds(1)) { first.now.ends == 1 })
        scene.mutedConnections = [0]
        scene.listener.accepted[0].isReading = false
        let (_, recorder) = scene.begin("PUT", body: .bytes([UInt8](repeating: 1, count: 350_000)))
        scene.run(for: .seconds(57))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(35))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    /// The kernels' buffers hold the whole body, which takes minutes to arrive.
    @Test func bodyThatTheKernelStillSendsIsNotIdle() throws {
        let scene = try HTTP2Scene([1])
        scene.answersAtHead = false
        let (_, first) = scene.begin()
        #expect(scene.run(atMost: .seconds(1)) { first.now.ends == 1 })
        let peer = scene.listener.accepted[0]
        peer.isReading = false
        peer.readLimit = 40_000
        let (_, recorder) = scene.begin("PUT", body: .bytes([UInt8](repeating: 1, count: 350_000)))
        scene.run(for: .seconds(1))
        #expect(recorder.now.sent == 350_000)
        for _ in 0..<4 {
            let arrived = scene.received[0].count
            peer.isReading = true
            #expect(scene.run { scene.received[0].count > arrived })
            peer.isReading = false
            scene.run(for: .seconds(50))
            #expect(recorder.now.ends == 0)
        }
        // Nothing arrives any more.
        scene.run(for: .seconds(120))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    // MARK: Waiting

    /// The first of the queue needs a connection of its own, those behind it do not.
    @Test(arguments: 0..<3) func exchangesBehindOneThatLeavesTheQueueAreServed(_ way: Int) throws {
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 2
        let scene = try HTTP2Scene([1], limit: 1, settings: settings)
        scene.answers = false
        let running = (0..<2).map { _ in scene.begin() }
        #expect(scene.run(atMost: .seconds(5)) { scene.openStreams() == 2 })
        let (first, fresh) = scene.begin(needsFresh: true)
        let (_, second) = scene.begin()
        running[0].0.cancel()
        scene.run(for: .seconds(1))
        #expect(second.now.connections.isEmpty)
        switch way {
        case 0: first.cancel()
        case 1: fresh.suspend(first)
        default: first.setPriority(0)
        }
        #expect(scene.run(atMost: .seconds(5)) { !second.now.connections.isEmpty })
        #expect(fresh.now.connections.isEmpty && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    // MARK: Suspended while connecting

    /// They do not know the server's protocol yet, and would share its connection.
    @Test func othersDoNotWaitForTheConnectionOfASuspendedTask() throws {
        let scene = try HTTP2Scene([1])
        let network = try #require(scene.testbed.network)
        network.connectScripts[scene.listener.address] = .hangs
        let (exchange, suspended) = scene.begin()
        let (_, waiting) = scene.begin()
        scene.run(for: .seconds(1))
        network.connectScripts = [:]
        suspended.suspend(exchange)
        #expect(scene.run(atMost: .seconds(5)) { waiting.now.ends == 1 })
        let (_, later) = scene.begin()
        #expect(scene.run(atMost: .seconds(5)) { later.now.ends == 1 })
        scene.run(for: .seconds(100))
        #expect(suspended.now.ends == 0 && waiting.now.content == [1] && later.now.content == [1])
        exchange.cancel()
        scene.run(for: .seconds(1))
        #expect(suspended.now.failure == .cancelled)
        #expect(scene.end() == [])
    }

    @Test func connectionThatASuspendedTaskOpensServesOthers() throws {
        let scene = try HTTP2Scene([1], limit: 1)
        try #require(scene.testbed.network).connectScripts[scene.listener.address] = .delayed(.seconds(2))
        let (exchange, suspended) = scene.begin()
        scene.run(for: .seconds(1))
        suspended.suspend(exchange)
        scene.run(for: .seconds(5))
        #expect(scene.listener.accepted.count == 1 && suspended.now.connections.isEmpty)
        let (_, other) = scene.begin()
        #expect(scene.run(atMost: .seconds(5)) { other.now.content == [1] })
        #expect(suspended.now.connections.isEmpty)
        suspended.resume(exchange)
        #expect(scene.run(atMost: .seconds(5)) { suspended.now.content == [1] })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    // MARK: Dead connections

    /// Something on the way has forgotten the connection: nothing that is sent on it is answered.
    @Test func connectionThatDiedWhileIdleIsReplacedWithinSeconds() throws {
        let scene = try HTTP2Scene([1])
        let (_, first) = scene.begin()
        #expect(scene.run { first.now.ends == 1 })
        scene.run(for: .seconds(20))
        scene.mutedConnections = [0]
        let (_, second) = scene.begin()
        scene.run(for: .seconds(9))
        #expect(second.now.ends == 0)
        #expect(scene.run(atMost: .seconds(2)) { second.now.ends == 1 })
        #expect(second.now.content == [1] && scene.listener.accepted.count == 2)
        #expect(scene.end() == [])
    }

    @Test func requestThatCannotBeRepeatedFailsWithItsDeadConnection() throws {
        let scene = try HTTP2Scene([1])
        let (_, first) = scene.begin()
        #expect(scene.run { first.now.ends == 1 })
        scene.run(for: .seconds(20))
        scene.mutedConnections = [0]
        let (_, second) = scene.begin("POST")
        #expect(scene.run(atMost: .seconds(11)) { second.now.ends == 1 })
        guard case .connectionLost(let loss)? = second.now.failure else { return #expect(Bool(false)) }
        #expect(loss.cause == .peerUnresponsive && loss.wasReused)
        #expect(scene.end() == [])
    }

    @Test func serverThatAnswersThePingHasTheWholeTimeout() throws {
        let scene = try HTTP2Scene([1])
        let (_, first) = scene.begin()
        #expect(scene.run { first.now.ends == 1 })
        scene.run(for: .seconds(20))
        scene.answers = false
        let (_, second) = scene.begin()
        scene.run(for: .seconds(59))
        #expect(second.now.ends == 0 && scene.frames(6).count == 1)
        scene.run(for: .seconds(2))
        #expect(second.now.failure == .idle && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func connectionInUseIsNotProbed() throws {
        let scene = try HTTP2Scene([1])
        for _ in 0..<3 {
            let (_, recorder) = scene.begin()
            #expect(scene.run { recorder.now.ends == 1 })
            scene.run(for: .seconds(10))
        }
        #expect(scene.frames(6).isEmpty && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    // MARK: Windows

    @Test func windowsGrowWithWhatIsConsumed() throws {
        let content = [UInt8](repeating: 7, count: 6_000_000)
        let scene = try HTTP2Scene(content)
        let (_, recorder) = scene.begin()
        #expect(scene.run { recorder.now.ends == 1 })
        #expect(recorder.now.content.count == content.count)
        let received = content.count
        let stream = scene.window(of: 1, initial: 256 << 10, received: received)
        #expect((512 << 10...4 << 20).contains(stream), "\(stream)")
        let connection = scene.window(of: 0, initial: 65_535, received: received)
        #expect((2 << 20...4 << 20).contains(connection), "\(connection)")
        #expect(scene.end() == [])
    }

    @Test func windowOfASuspendedTaskDoesNotGrow() throws {
        let scene = try HTTP2Scene([UInt8](repeating: 7, count: 1_000_000))
        let (exchange, recorder) = scene.begin(pull: 0)
        scene.run(for: .seconds(10))
        #expect(scene.window(of: 1, initial: 256 << 10, received: 0) == 256 << 10)
        #expect(scene.window(of: 0, initial: 65_535, received: 256 << 10) >= 512 << 10)
        #expect(recorder.now.content.isEmpty)
        recorder.pull(.max, exchange)
        #expect(scene.run { recorder.now.ends == 1 })
        #expect(scene.end() == [])
    }

    /// Together they hold back three times the window of the connection.
    @Test func suspendedTasksNeverStopTheConnection() throws {
        let content = [UInt8](repeating: 7, count: 1_000_000)
        let scene = try HTTP2Scene(content)
        let suspended = (0..<12).map { _ in scene.begin(pull: 0) }
        scene.run(for: .seconds(10))
        let (_, recorder) = scene.begin()
        #expect(scene.run(atMost: .seconds(10)) { recorder.now.ends == 1 })
        #expect(recorder.now.content == content && scene.listener.accepted.count == 1)
        #expect(suspended.allSatisfy { $0.1.now.content.isEmpty })
        for (exchange, recorder) in suspended { recorder.pull(.max, exchange) }
        #expect(scene.run { suspended.allSatisfy { $0.1.now.content == content } })
        #expect(scene.end() == [])
    }

    /// Each stream may hold back its window: their number is bounded even if the server does not bound it.
    @Test func streamsOfAConnectionAreBounded() throws {
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = .max
        let scene = try HTTP2Scene([UInt8](repeating: 7, count: 1_000), limit: 1, settings: settings)
        let (_, first) = scene.begin()
        #expect(scene.run { first.now.ends == 1 })
        let others = (0..<300).map { _ in scene.begin(pull: 0) }
        scene.run(for: .seconds(10))
        #expect(others.filter { $0.1.now.head != nil }.count == 128)
        for (exchange, recorder) in others { recorder.pull(.max, exchange) }
        #expect(scene.run { others.allSatisfy { $0.1.now.ends == 1 } })
        #expect(others.allSatisfy { $0.1.now.content.count == 1_000 } && scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    // MARK: Priorities

    /// RFC 9218 §7.1: type 0x10 on stream 0, with the stream's number and the field's value.
    @Test func changedPriorityIsSent() throws {
        let scene = try HTTP2Scene([1])
        scene.answersAtHead = false
        let source = FixedBody([UInt8](repeating: 1, count: 3_000_000))
        let (exchange, recorder) = scene.begin("POST", body: .source(source, length: 3_000_000))
        scene.run(for: .seconds(1))
        #expect(scene.frames(0x10).isEmpty && recorder.now.ends == 0)
        exchange.setPriority(0.25)
        scene.run(for: .seconds(1))
        let updates = scene.frames(0x10)
        #expect(updates.map(\.stream) == [0] && updates.map(\.payload) == [[0, 0, 0, 1] + Array("u=5".utf8)])
        exchange.cancel()
        scene.run(for: .seconds(1))
        #expect(recorder.now.failure == .cancelled)
        #expect(scene.end() == [])
    }

    // MARK: Faults

    /// Short reads and writes, small buffers, stalls, resets, failing connects, no descriptors.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func everyExchangeEndsOnceCompleteOrWithAReason(_ seed: UInt64) throws {
        let content = (0..<30_000).map { UInt8(truncatingIfNeeded: $0) }
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 3
        let scene = try HTTP2Scene(content, seed: seed, faults: .rough, limit: 2, settings: settings)
        let recorders = (0..<12).map { scene.begin($0 % 3 == 0 ? "POST" : "GET").1 }
        #expect(scene.run { recorders.allSatisfy { $0.now.ends == 1 } }, "\(scene.testbed.report)")
        for recorder in recorders.map(\.now) {
            #expect(recorder.ends == 1)
            #expect(recorder.failure != nil || recorder.content == content, "\(scene.testbed.report)")
            #expect(content.starts(with: recorder.content))
        }
        #expect(scene.end() == [])
    }
}
