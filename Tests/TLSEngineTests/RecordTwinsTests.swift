import TLSEngine
import TestSupport
import Testing

@Suite("Compact record layer compared with OpenSSL's")
struct RecordTwinsTests {
    /// The differences between the two, with their reasons.
    private static let differences = [
        "something else than TLS": "OpenSSL judges the version first (protocol_version); to us the type comes first",
        "padding behind the longest content": Self.padding,
        "a byte in too much padding": Self.padding,
        "an alert in too much padding": Self.padding,
        "the most padding that a header allows": Self.padding,
        "too much padding and no type": Self.padding,
        "a certificate that nobody asked for": Self.early,
        "a very long key update": Self.early,
        "a long key update": "OpenSSL says illegal_parameter; a wrong length is decode_error (RFC 8446 §6.2)",
    ]
    private static let padding = "OpenSSL bounds the content; RFC 8446 §5.4 bounds content, type and padding together"
    private static let early = "OpenSSL waits for the head of the message; we judge each byte of it"

    /// Records of a client: the same events, and the same alert in answer, byte by byte.
    @Test(arguments: RecordSuite.allCases, RecordScript.rightOnes + RecordScript.wrongOnes)
    func recordsAreReadLikeOpenSSLReads(_ suite: RecordSuite, _ script: RecordScript) throws {
        for whole in [true, false] {
            let twins = try RecordTwins(suite)
            let wire = try twins.wire(script)
            let step = whole ? wire.count : wire.count > 4000 ? 997 : 1
            for start in stride(from: 0, to: wire.count, by: step) {
                twins.feed(Array(wire[start..<min(wire.count, start + step)]))
            }
            let (library, compact) = twins.outcomes()
            guard Self.differences[script.testDescription] == nil else {
                #expect(library != compact, "the difference is gone")
                continue
            }
            #expect(library == compact)
            try twins.expectSameOutput(script)
        }
    }

    /// Records of the server, including a key update requested by the client, which OpenSSL's client reads.
    @Test(arguments: RecordSuite.allCases, 0...2)
    func recordsAreWrittenLikeOpenSSLWrites(_ suite: RecordSuite, asked: Int) throws {
        let twins = try RecordTwins(suite)
        let script = RecordScript("", Array(repeating: Self.asking, count: asked).flatMap(\.self), [])
        twins.feed(try twins.wire(script))
        var sent: [UInt8] = []
        for count in [1, 16_383, 16_384, 16_385, 40_000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            try twins.write(bytes)
            sent += bytes
        }
        twins.closeOutput()
        let compact = try twins.expectSameOutput(script)
        #expect(twins.client.deliver(compact))
        let isReceived = twins.client.received == sent
        #expect(isReceived)
        #expect(twins.client.inputClosed)
        #expect(twins.client.failure == nil)
    }

    /// OpenSSL's client at the other end, its records split anyhow: the end of its bytes is a truncation to both unless
    /// close_notify came.
    @Test(arguments: RecordSuite.allCases, [true, false])
    func bothRecordLayersSeeTheSameEnd(_ suite: RecordSuite, _ closes: Bool) throws {
        let first = try RecordTwins(suite)
        try first.client.write([1, 2, 3])
        if closes { first.client.connection.closeOutput() }
        let wire = first.client.takeOutput()
        first.feed(wire)
        let (library, compact) = first.outcomes()
        #expect(library == compact)
        #expect(library.received == [1, 2, 3])
        #expect(library.end == (closes ? .closed : nil))
        #expect(first.library.connection.transportClosed() == (closes ? .clean : .truncated))
        // Truncated anywhere, the last record gives no event.
        let cut = try RecordTwins(suite)
        try cut.client.write([1, 2, 3])
        cut.client.connection.closeOutput()
        for byte in cut.client.takeOutput().dropLast() {
            cut.feed([byte])
            let (library, compact) = cut.outcomes()
            #expect(library == compact)
            #expect(compact.end == nil)
        }
    }

    /// Records of every kind, with padding, key changes, damage and random bytes, in any split.
    @Test(arguments: RecordSuite.allCases, UInt64(0)..<40)
    func bothReadersAgreeOnAnyBytes(_ suite: RecordSuite, _ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let twins = try RecordTwins(suite)
        var steps: [RecordScript.Step] = []
        for _ in 0..<Int.random(in: 1...30, using: &generator) {
            // Short, because it is fed byte by byte.
            steps += self.step(&generator, longest: seed % 3 == 0 ? 1000 : 16_384)
        }
        let script = RecordScript("", steps, [])
        var wire = try twins.wire(script)
        if seed % 3 == 0, !wire.isEmpty {
            // Not in a header, where the two report violations at different places.
            wire[wire.count - 1 - Int.random(in: 0..<min(16, wire.count), using: &generator)] ^= 0x10
        }
        for cut in generator.cuts(of: wire.count, longest: [1, 30, 5000][Int(seed % 3)]) {
            twins.feed(Array(wire[cut]))
        }
        let (library, compact) = twins.outcomes()
        #expect(library == compact, "\(steps)")
        if library.end == nil { try twins.write([1]) }
        try twins.expectSameOutput(script)
    }

    private static let asking = [RecordScript.message(24, 0, 0, 1, 1), .newKey]

    private func step(_ generator: inout SeededGenerator, longest: Int) -> [RecordScript.Step] {
        let content = generator.bytes(
            Int.random(in: 1...[3, 300, longest][Int.random(in: 0..<3, using: &generator)], using: &generator))
        switch Int.random(in: 0..<24, using: &generator) {
        case 0..<12: return [.record(23, content)]
        case 12..<15: return [.record(0, content.prefix(8000) + [23] + [UInt8](repeating: 0, count: content.count / 3))]
        case 15..<18: return [RecordScript.message(24, 0, 0, 1, UInt8.random(in: 0...1, using: &generator)), .newKey]
        case 18: return [RecordScript.data()]
        case 19: return [RecordScript.alert(1, UInt8.random(in: 0...120, using: &generator))]
        case 20: return [.record(22, Array(content.prefix(4)))]
        case 21: return [RecordScript.message(24, 0, 0, 1), RecordScript.data(1)]
        case 22: return [.record(UInt8.random(in: 1...30, using: &generator), Array(content.prefix(6)))]
        default: return [.record(0, [UInt8](repeating: 0, count: content.count % 20))]
        }
    }
}
