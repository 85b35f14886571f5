import ByteKernels
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import TestSupport
import Testing

@Suite("TLS over a transport, in both roles")
struct SecureTransportTests {
    /// Both ends of one secured connection.
    private final class Ends {
        let harness: TaskHarness
        let lower: (client: SocketConnection, server: SocketConnection)
        let client = RecordingConsumer()
        let server = RecordingConsumer()
        var clientEnd: SecureTransport?
        var serverEnd: SecureTransport?
        var clientFailure: TransportFailure?
        var serverFailure: TransportFailure?
        /// Written by the client as soon as it is through.
        var firstWords: [UInt8] = []
        var resumesServer = true

        init(_ kind: TransportTestbed.Kind) throws {
            self.harness = try TaskHarness(kind)
            let pair = try self.harness.transportPair()
            self.lower = (pair.opened, pair.accepted)
        }

        func startClient(_ settings: SecureSettings) {
            SecureTransport.upgrade(self.lower.client, settings: settings, received: []) { result in
                switch result {
                case .success(let end):
                    self.clientEnd = end
                    end.consumer = self.client
                    end.resumeReading()
                    self.firstWords.withRawSpan { end.write($0) }
                case .failure(let failure): self.clientFailure = failure
                }
            }
        }

        func startServer(_ settings: SecureSettings) {
            SecureTransport.upgrade(self.lower.server, settings: settings, received: []) { result in
                switch result {
                case .success(let end):
                    self.serverEnd = end
                    end.consumer = self.server
                    if self.resumesServer { end.resumeReading() }
                case .failure(let failure): self.serverFailure = failure
                }
            }
        }

        func start(_ client: SecureSettings, _ server: SecureSettings) {
            self.harness.perform {
                self.startClient(client)
                self.startServer(server)
            }
        }

        var areUp: Bool { self.clientEnd != nil && self.serverEnd != nil }

        func finish(sourceLocation: SourceLocation = #_sourceLocation) {
            self.harness.perform {
                self.clientEnd?.reset()
                self.serverEnd?.reset()
                self.lower.client.reset()
                self.lower.server.reset()
            }
            self.harness.finish(sourceLocation: sourceLocation)
        }
    }

    private static let places = TransportTestbed.Kind.allCases.flatMap { kind in
        [
            Variant(kind: kind, version: .tls12, records: .openSSL),
            Variant(kind: kind, version: .tls13, records: .openSSL),
            Variant(kind: kind, version: .tls13, records: .compact),
        ]
    }

    struct Variant: Hashable, CustomTestStringConvertible {
        let kind: TransportTestbed.Kind
        let version: TLSVersion
        /// The server's.
        let records: TLSRecordLayer
        var testDescription: String { "\(self.version) with \(self.records) records on \(self.kind)" }
    }

    private func server(_ variant: Variant, _ change: (inout TLSConfiguration) -> Void = { _ in }) throws
        -> SecureSettings
    {
        try SecureFixture.server {
            $0.minimumVersion = variant.version
            $0.maximumVersion = variant.version
            $0.recordLayer = variant.records
            change(&$0)
        }
    }

    @Test(arguments: Self.places)
    func bytesAndCloseNotifyAreDelivered(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        let bytes = [UInt8].pattern(300_000)
        ends.firstWords = bytes
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp && ends.server.received.count == bytes.count })
        #expect(ends.server.received == bytes)
        #expect(ends.serverEnd?.metadata?.version == variant.version)
        #expect(ends.clientEnd?.writtenBytes == UInt64(bytes.count) && ends.clientEnd?.sentBytes == UInt64(bytes.count))
        ends.harness.perform { ends.clientEnd?.shutdownOutput() }
        #expect(ends.harness.run { ends.server.events == [.inputClosed] })
        let answer = Array("answer".utf8)
        ends.harness.perform { answer.withRawSpan { _ = ends.serverEnd?.write($0) } }
        #expect(ends.harness.run { ends.client.text == "answer" })
        ends.harness.perform { ends.serverEnd?.close(linger: .seconds(1)) }
        #expect(ends.harness.run { ends.client.events.contains(.inputClosed) })
        #expect(ends.client.end == nil)
        ends.finish()
    }

    @Test(arguments: Self.places)
    func truncationDiffersFromACleanEnd(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        ends.firstWords = Array("half a sen".utf8)
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp && ends.server.text == "half a sen" })
        ends.harness.perform { ends.lower.client.shutdownOutput() }
        #expect(ends.harness.run { ends.server.end != nil })
        #expect(ends.server.end == .failed(.truncated) && !ends.server.events.contains(.inputClosed))
        ends.finish()
    }

    @Test(arguments: Self.places)
    func resetDiffersFromTruncation(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp })
        ends.harness.settle()
        ends.harness.perform { ends.clientEnd?.reset() }
        #expect(ends.harness.run { ends.server.end != nil && ends.client.end != nil })
        #expect(ends.server.end == .failed(.reset) && ends.client.end == .abandoned)
        ends.finish()
    }

    @Test(arguments: Self.places)
    func plaintextIsKeptForAConsumerThatIsNotReady(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        ends.resumesServer = false
        let bytes = [UInt8].pattern(200_000)
        ends.firstWords = bytes
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp })
        ends.harness.settle()
        #expect(ends.server.received.isEmpty)
        ends.harness.perform { ends.serverEnd?.resumeReading() }
        #expect(ends.harness.run { ends.server.received.count == bytes.count })
        #expect(ends.server.received == bytes)
        ends.finish()
    }

    @Test(arguments: Self.places)
    func pausedConsumerContinues(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        let bytes = [UInt8].pattern(100_000)
        ends.firstWords = bytes
        // Takes little, and lets the rest wait every time.
        ends.server.acceptedCount = { offered in
            ends.serverEnd?.pauseReading()
            return min(offered, 777)
        }
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp })
        ends.harness.perform { ends.clientEnd?.shutdownOutput() }
        for _ in 0..<200 where !ends.server.events.contains(.inputClosed) {
            ends.harness.settle()
            ends.harness.perform { ends.serverEnd?.resumeReading() }
        }
        #expect(ends.harness.run { ends.server.events.contains(.inputClosed) })
        #expect(ends.server.received == bytes)
        ends.server.acceptedCount = { $0 }
        ends.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func peerWithoutAHandshakeTimesOut(_ role: TaskRole) throws {
        let harness = try TaskHarness(.simulation)
        let (transport, peer) = try harness.acceptedTransport()
        var settings = role == .opened ? try SecureFixture.client() : try SecureFixture.server()
        settings.timeout = .seconds(3)
        let chosen = settings
        var failure: TransportFailure?
        harness.perform {
            SecureTransport.upgrade(transport, settings: chosen, received: []) { result in
                if case .failure(let found) = result { failure = found }
            }
        }
        #expect(!harness.run(atMost: .milliseconds(2900)) { failure != nil })
        #expect(harness.run(atMost: .seconds(1)) { failure != nil })
        #expect(failure == .deadlinePassed(.securing))
        #expect(harness.run { peer.sawEnd || peer.failure != nil })
        harness.finish()
    }

    @Test(arguments: Self.places)
    func handshakeWaitsForADecision(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        let asked = Mutex<(@Sendable (VerificationDecision) -> Void)?>(nil)
        var settings = try SecureFixture.client { $0.delegatesVerification = true }
        settings.decide = { _, answer in asked.withLock { $0 = answer } }
        ends.firstWords = Array("hello".utf8)
        ends.start(settings, try self.server(variant))
        #expect(ends.harness.run { asked.withLock { $0 != nil } })
        ends.harness.settle()
        #expect(ends.clientEnd == nil)
        asked.withLock { $0 }?(.accept)
        #expect(ends.harness.run { ends.areUp && ends.server.text == "hello" })
        ends.finish()
    }

    /// A TLS 1.3 client completes its handshake before the server has verified its certificate, and may send data.
    @Test(arguments: Self.places)
    func bytesArrivingDuringTheDecisionAreKept(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        let asked = Mutex<(@Sendable (VerificationDecision) -> Void)?>(nil)
        var settings = try self.server(variant) {
            $0.peerVerification = .required
            $0.delegatesVerification = true
        }
        settings.decide = { _, answer in asked.withLock { $0 = answer } }
        let identity = try SecureFixture.clientIdentity()
        let bytes = [UInt8].pattern(400_000)
        ends.firstWords = bytes
        ends.resumesServer = false
        ends.start(try SecureFixture.client { $0.identities = [identity] }, settings)
        #expect(ends.harness.run { asked.withLock { $0 != nil } })
        ends.harness.settle()
        asked.withLock { $0 }?(.accept)
        #expect(ends.harness.run { ends.areUp })
        ends.harness.settle()
        ends.harness.perform { ends.serverEnd?.resumeReading() }
        #expect(ends.harness.run { ends.server.received.count == bytes.count })
        #expect(ends.server.received == bytes)
        ends.finish()
    }

    @Test func rejectionFailsBothEnds() throws {
        let ends = try Ends(.simulation)
        var settings = try SecureFixture.client { $0.delegatesVerification = true }
        settings.decide = { _, answer in answer(.reject) }
        ends.start(settings, try SecureFixture.server())
        #expect(ends.harness.run { ends.clientFailure != nil && ends.serverFailure != nil })
        if case .tls? = ends.clientFailure {} else { Issue.record("\(String(describing: ends.clientFailure))") }
        ends.finish()
    }

    /// A person may take the decision; its time does not count for the handshake timeout.
    @Test func timeOfADecisionIsNotCounted() throws {
        let ends = try Ends(.simulation)
        let asked = Mutex<(@Sendable (VerificationDecision) -> Void)?>(nil)
        var settings = try SecureFixture.client { $0.delegatesVerification = true }
        settings.timeout = .seconds(3)
        settings.decide = { _, answer in asked.withLock { $0 = answer } }
        var server = try SecureFixture.server()
        server.timeout = .seconds(1000)
        ends.start(settings, server)
        #expect(ends.harness.run { asked.withLock { $0 != nil } })
        #expect(!ends.harness.run(atMost: .seconds(60)) { ends.clientFailure != nil })
        asked.withLock { $0 }?(.accept)
        #expect(ends.harness.run { ends.areUp })
        ends.finish()
    }

    @Test func tlsFailureHasItsReason() throws {
        let ends = try Ends(.simulation)
        let root = try SecureFixture.otherRoot()
        let settings = try SecureFixture.client { $0.trust = .only([root]) }
        ends.start(settings, try SecureFixture.server())
        #expect(ends.harness.run { ends.clientFailure != nil })
        guard case .tls(let layer) = ends.clientFailure, let found = layer.cause as? TLSFailure,
            case .verification = found.kind
        else {
            Issue.record("failed with \(String(describing: ends.clientFailure))")
            return
        }
        #expect(found.concernsCertificates)
        ends.finish()
    }

    @Test func progressIsReportedWhenRecordsHaveLeft() throws {
        let ends = try Ends(.simulation)
        ends.start(try SecureFixture.client(), try SecureFixture.server())
        #expect(ends.harness.run { ends.areUp })
        var done = false
        ends.client.onOutputProgressed = { done = ends.clientEnd?.sentBytes == 5 }
        ends.harness.perform {
            Array("12345".utf8).withRawSpan { ends.clientEnd?.write($0) }
            ends.clientEnd?.awaitProgress()
        }
        #expect(ends.harness.run { done })
        ends.finish()
    }

    /// Thousands of records come in one read; a few hundred are opened in one turn, and none is lost.
    @Test(arguments: Self.places)
    func numberOfRecordsOpenedInOneTurnIsBounded(_ variant: Variant) throws {
        let ends = try Ends(variant.kind)
        ends.start(try SecureFixture.client(), try self.server(variant))
        #expect(ends.harness.run { ends.areUp })
        let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let loop = ends.harness.loop
        // Like a WebSocket: unconsumed bytes are offered again.
        ends.server.acceptedCount = { offered in
            guard !loop.budgetIsSpent else { return 0 }
            loop.spend(offered)
            return offered
        }
        ends.harness.perform {
            for byte in bytes { [byte].withRawSpan { ends.clientEnd?.writeThrough($0) } }
        }
        var (most, last) = (0, 0)
        let isDone = ends.harness.run {
            most = max(most, ends.server.received.count - last)
            last = ends.server.received.count
            return last == bytes.count
        }
        #expect(isDone && ends.server.received == bytes)
        #expect(most <= TurnBudget.share / TurnBudget.record, "\(most)")
        ends.server.acceptedCount = { $0 }
        ends.finish()
    }
}
