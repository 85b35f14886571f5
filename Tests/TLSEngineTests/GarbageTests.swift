import TLSEngine
import TestSupport
import Testing

@Suite("Bytes of a hostile peer")
struct GarbageTests {
    @Test(arguments: UInt64(0)..<64)
    func noiseEndsInOneFailureOrWaits(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let client = try TLSContext(Fixture.client())
        let server = try TLSContext(.server([Fixture.identity(Fixture.all().server)]))
        for _ in 0..<8 {
            let pair = try SecurePair(client: client, server: server)
            for side in [pair.client, pair.server] {
                var noise = generator.bytes(Int.random(in: 1...600, using: &generator))
                // Half of the inputs have a record header, so that they reach later code.
                if Bool.random(using: &generator) {
                    noise[0] = [0x14, 0x15, 0x16, 0x17].randomElement(using: &generator) ?? 0x16
                    for (index, byte) in [(1, 3), (2, 3), (3, 0), (4, 90), (5, 1), (6, 0), (7, 0)]
                    where index < noise.count {
                        noise[index] = UInt8(byte)
                    }
                }
                for cut in generator.cuts(of: noise.count, longest: 200) {
                    #expect(side.deliver(Array(noise[cut])), "seed \(seed)")
                }
                self.expectSoundEnd(side, seed)
            }
        }
    }

    @Test(arguments: UInt64(0)..<64, ServerKind.allCases)
    func changedFlightsEndInOneFailureOrWait(_ seed: UInt64, _ kind: ServerKind) throws {
        var generator = SeededGenerator(seed: seed)
        var configuration = try Fixture.server(kind: kind)
        configuration.peerVerification = .optional
        configuration.trust = .only([Fixture.source(try Fixture.all().authority)])
        configuration.delegatesVerification = seed % 3 == 0
        let server = try TLSContext(configuration)
        var asking = try Fixture.client()
        asking.delegatesVerification = seed % 3 == 1
        asking.identities = [try Fixture.identity(Fixture.all().client)]
        let client = try TLSContext(asking)
        for round in 0..<6 {
            let pair = try SecurePair(client: client, server: server)
            let victim = Bool.random(using: &generator) ? pair.client : pair.server
            var passed = Int.random(in: 0...3, using: &generator)
            for _ in 0..<12 {
                for (from, to) in [(pair.client, pair.server), (pair.server, pair.client)] {
                    var flight = from.takeOutput()
                    guard !flight.isEmpty else { continue }
                    if to === victim {
                        if passed == 0 { self.change(&flight, &generator) }
                        passed -= 1
                    }
                    for cut in generator.cuts(of: flight.count, longest: 900) {
                        #expect(to.deliver(Array(flight[cut])), "seed \(seed) round \(round)")
                    }
                    for side in [pair.client, pair.server] where side.request != nil {
                        side.connection.resolveVerification(.accept)
                        _ = side.deliver([])
                    }
                }
            }
            for side in [pair.client, pair.server] { self.expectSoundEnd(side, seed) }
        }
    }

    private func change(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        for _ in 0...Int.random(in: 0...2, using: &generator) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: index)
            default: bytes.insert(contentsOf: bytes[index...].prefix(50), at: index)
            }
        }
    }

    /// At most one failure, nothing after it, and no invented plaintext.
    private func expectSoundEnd(_ side: SecurePair.Side, _ seed: UInt64) {
        let failures = side.events.indices.filter { if case .failed = side.events[$0] { true } else { false } }
        #expect(failures.count <= 1, "seed \(seed)")
        if let last = failures.last { #expect(last == side.events.count - 1, "seed \(seed)") }
        #expect(side.received.isEmpty, "seed \(seed)")
        let count = side.events.count
        #expect(side.deliver([1, 2, 3]), "seed \(seed)")
        if !failures.isEmpty { #expect(side.events.count == count, "seed \(seed)") }
    }
}
