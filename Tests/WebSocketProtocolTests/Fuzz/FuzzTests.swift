import Foundation
import Testing
import WebSocketProtocol

@Suite("Any bytes in any split")
struct FuzzTests {
    /// Streams per setting; `SLUICE_FUZZ_STREAMS` asks for more.
    private static let count = UInt64(ProcessInfo.processInfo.environment["SLUICE_FUZZ_STREAMS"] ?? "") ?? 150
    private static let takeovers: [PermessageDeflateParameters?] = [
        nil, PermessageDeflateParameters(),
        PermessageDeflateParameters(serverNoContextTakeover: true, clientNoContextTakeover: true),
    ]

    @Test(arguments: Role.both, Self.takeovers)
    func anySplitGivesTheSameEventsOrOneViolation(_ sender: Role, _ deflate: PermessageDeflateParameters?) {
        for seed in 0..<Self.count {
            var stream = FuzzStream(seed: seed, from: sender, deflate: deflate)
            let bytes = stream.bytes()
            let setting = EngineSetting.receiving(from: sender, limit: seed % 3 == 0 ? 300 : nil, deflate: deflate)
            StreamInvariant.expect(bytes, by: setting, name: "seed \(seed)")
        }
    }

    /// The streams are useful only if many are accepted and many are rejected.
    @Test(arguments: Role.both, Self.takeovers)
    func corpusStreamsAreValid(_ sender: Role, _ deflate: PermessageDeflateParameters?) {
        for seed in 0..<40 as Range<UInt64> {
            var stream = FuzzStream(seed: seed, from: sender, deflate: deflate)
            let setting = EngineSetting.receiving(from: sender, deflate: deflate)
            let seen = EngineDriver.observe(stream.valid(), by: setting, fed: .whole)
            let broken = seen.contains { if case .violation = $0 { true } else { false } }
            #expect(!broken, "seed \(seed)")
        }
    }

    @Test(arguments: try CorpusEntry.all())
    func corpusIsReplayed(_ entry: CorpusEntry) {
        StreamInvariant.expect(entry.bytes, by: entry.setting, name: entry.name)
        let seen = EngineDriver.observe(entry.bytes, by: entry.setting, fed: .whole)
        #expect(seen.last?.description == entry.ending, "\(entry.name)")
    }

    @Test func corpusIsFound() throws {
        #expect(try CorpusEntry.all().count >= 10)
    }
}
