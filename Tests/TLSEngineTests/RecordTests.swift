import TLSEngine
import TestSupport
import Testing

@Suite("Records, RFC 8446 §5")
struct RecordTests {
    @Test(arguments: ServerKind.allCases, [(1, 1), (16_384, 1), (16_385, 2), (40_000, 3)])
    func writeUsesTheFewestRecords(_ kind: ServerKind, _ sizes: (count: Int, records: Int)) throws {
        let pair = try self.open(kind)
        try pair.client.write([UInt8](repeating: 7, count: sizes.count))
        let bytes = pair.client.takeOutput()
        var position = 0
        var records = 0
        while position + 5 <= bytes.count {
            #expect(bytes[position] == 0x17)
            position += 5 + Int(bytes[position + 3]) << 8 + Int(bytes[position + 4])
            records += 1
        }
        #expect(position == bytes.count)
        #expect(records == sizes.records)
    }

    /// Each requires us to derive new keys; OpenSSL itself accepts any number.
    @Test(arguments: [ServerKind.tls13, .compactTLS13])
    func aFloodOfKeyUpdatesEndsTheConnection(_ kind: ServerKind) throws {
        let suite = RecordSuite.aes128GCM
        let secret = SecretLines()
        var configuration = try Fixture.server(kind: kind)
        configuration.keyLog = .lines { secret.note($0) }
        let pair = try SecurePair(Fixture.client(), configuration)
        pair.run()
        func wire(_ updates: Int) throws -> [UInt8] {
            let key = RecordKey.make(suite, secret: try secret.secret("CLIENT_TRAFFIC_SECRET_0"), use: .sealing)
            let steps = Array(repeating: RecordScript.keyUpdate, count: updates).flatMap(\.self)
            guard let key else { throw RecordEnd.CreationFailure() }
            return RecordScript("", steps + [RecordScript.data(1)], []).wire(under: key)
        }
        #expect(pair.server.deliver(try wire(1000)))
        #expect(pair.server.failure?.kind == .record)
        #expect(pair.server.failure?.alert == TLSAlert(code: 10, origin: .ours))
        #expect(pair.server.failure?.description.contains("without application data") == true)
        #expect(pair.server.received.isEmpty)
        pair.run()
        #expect(pair.client.failure?.alert == TLSAlert(code: 10, origin: .peer))
    }

    @Test(arguments: ServerKind.allCases)
    func anEmptyWriteSendsNothing(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        try pair.client.write([])
        #expect(pair.client.connection.pendingCiphertext == 0)
    }

    @Test(arguments: ServerKind.allCases)
    func recordIsReadInPartsIntoASmallBuffer(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        let sent = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        try pair.client.write(sent)
        #expect(pair.server.deliver(pair.client.takeOutput(), room: 3))
        #expect(pair.server.received == sent)
        #expect(
            pair.server.events.allSatisfy {
                if case .plaintext(let count) = $0 { (1...3).contains(count) } else { true }
            })
    }

    @Test(arguments: ServerKind.allCases)
    func pullingCanStopAndContinueLater(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        let sent = (0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for start in stride(from: 0, to: 3000, by: 1000) { try pair.client.write(Array(sent[start..<start + 1000])) }
        let ciphertext = pair.client.takeOutput()
        var plaintext = [UInt8](repeating: 0, count: 600)
        var position = 0
        var offered = ciphertext
        var received: [UInt8] = []
        for _ in 0..<8 {
            // Each call is a separate turn; only unconsumed bytes are offered again.
            position = 0
            var span = plaintext.mutableSpan
            var target = span.mutableBytes
            let event = pair.server.connection.nextEvent(offered.span.bytes, at: &position, plaintext: &target)
            offered.removeFirst(position)
            guard case .plaintext(let count) = event else { break }
            received += plaintext[..<count]
        }
        #expect(received == sent)
        #expect(offered.isEmpty)
    }

    @Test(arguments: ServerKind.allCases)
    func emptyBufferConsumesAndLosesNothing(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        try pair.client.write([1, 2, 3])
        let bytes = pair.client.takeOutput()
        var position = 0
        var nothing = MutableRawSpan()
        #expect(pair.server.connection.nextEvent(bytes.span.bytes, at: &position, plaintext: &nothing) == nil)
        #expect(position == 0)
        #expect(pair.server.deliver(bytes))
        #expect(pair.server.received == [1, 2, 3])
    }

    @Test(arguments: ServerKind.allCases)
    func aCorruptRecordEndsTheConnection(_ kind: ServerKind) throws {
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<40 {
            let pair = try self.open(kind)
            try pair.client.write([1, 2, 3, 4])
            var bytes = pair.client.takeOutput()
            // A changed length would only make the reader wait for more bytes.
            let index = Int.random(in: 5..<bytes.count, using: &generator)
            bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            #expect(pair.server.deliver(bytes))
            #expect(pair.server.failure?.kind == .record, "byte \(index)")
            #expect(pair.server.failure?.alert == TLSAlert(code: 20, origin: .ours))
            #expect(pair.server.failure?.description.contains("bad record mac") == true)
            #expect(pair.server.received.isEmpty)
            pair.run()
            #expect(pair.client.failure?.kind == .peerAlert)
            #expect(pair.client.failure?.alert == TLSAlert(code: 20, origin: .peer))
            #expect(throws: TLSFailure.self) { try pair.client.write([1]) }
        }
    }

    @Test func connectionsShareOneOutputBuffer() throws {
        let shared = CiphertextBuffer()
        let context = try TLSContext(Fixture.client())
        let first = try SecureConnection(context, serverName: "server.test", output: shared)
        let second = try SecureConnection(context, serverName: "server.test", output: shared)
        first.start()
        let ofFirst = shared.take { $0.byteCount }
        #expect(ofFirst > 100)
        #expect(second.pendingCiphertext == 0)
        second.start()
        #expect(second.pendingCiphertext > 100)
        second.output = CiphertextBuffer()
        #expect(second.pendingCiphertext == 0)
    }

    @Test(arguments: ServerKind.allCases)
    func plaintextWrittenWhileTheBufferIsLentWaits(_ kind: ServerKind) throws {
        let pair = try self.open(kind)
        try pair.client.write([1])
        let first = pair.client.connection.withCiphertext { bytes in
            try? pair.client.write([2])
            return bytes.withUnsafeBytes { Array($0) }
        }
        _ = pair.server.deliver(first)
        #expect(pair.server.received == [1])
        pair.run()
        #expect(pair.server.received == [1, 2])
    }

    private func open(_ kind: ServerKind) throws -> SecurePair {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: kind))
        pair.run()
        try #require(pair.client.metadata != nil && pair.server.metadata != nil)
        return pair
    }
}
