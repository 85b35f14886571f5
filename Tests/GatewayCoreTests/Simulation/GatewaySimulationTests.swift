import Foundation
import StreamTransport
import TestSupport
import Testing

/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 200; `SLUICE_SEED=n` runs one.
@Suite("A whole gateway under mixed load and faults")
struct GatewaySimulationTests {
    private static let batch = 25

    /// Seeds in batches, so that several are under way at once and a report names few.
    static let batches: [ClosedRange<UInt64>] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["SLUICE_SEED"].flatMap({ UInt64($0) }) { return [seed...seed] }
        let count = environment["SLUICE_TEST_SIZE"] == "nightly" ? 10_000 : 200
        // Seeds that once found something come first.
        let first = stride(from: 1, to: count, by: Self.batch).map { UInt64($0)...UInt64($0 + Self.batch - 1) }
        return [663...663, 824...824] + first
    }()

    @Test(arguments: Self.batches)
    func keepsItsPromisesWhateverHappens(_ seeds: ClosedRange<UInt64>) throws {
        for seed in seeds {
            let load = try GatewayLoad(seed: seed)
            load.run()
            let complaints = load.conclude()
            #expect(
                complaints.isEmpty, "replay with SLUICE_SEED=\(seed)\n\(load.reasons)\n\(load.network.trace)")
        }
    }

    @Test(arguments: UInt64(1)...20)
    func theSameSeedGivesTheSameRun(_ seed: UInt64) throws {
        let runs = try (0..<2).map { _ in
            let load = try GatewayLoad(seed: seed)
            load.run()
            _ = load.conclude()
            return load
        }
        #expect(runs[0].network.trace.count > 1000)
        #expect(runs[0].network.trace.fingerprint == runs[1].network.trace.fingerprint)
        #expect(runs[0].gateway.endings == runs[1].gateway.endings)
    }

    /// A load that never succeeds, or never fails, would prove little.
    @Test func theLoadMeetsBothGoodAndBadEnds() throws {
        var reasons: [String: Int] = [:]
        for seed in UInt64(1)...20 {
            let load = try GatewayLoad(seed: seed)
            load.run()
            _ = load.conclude()
            reasons.merge(load.reasons, uniquingKeysWith: +)
        }
        #expect(
            reasons["downstream/relaying/clean", default: 0] + reasons["downstream/relaying/clean(1000)", default: 0]
                > 20)
        for reason in ["downstream/relaying/reset", "upstream/relaying/reset", "upstream/connecting/unreachable"] {
            #expect(reasons[reason, default: 0] > 0, "\(reasons)")
        }
    }
}
