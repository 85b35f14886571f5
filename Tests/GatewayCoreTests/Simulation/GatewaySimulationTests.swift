import Foundation
import GatewayCore
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 200; `SLUICE_SEED=7` or `SLUICE_SEED=7-90` runs those.
@Suite("A whole gateway under mixed load and faults")
struct GatewaySimulationTests {
    /// Seeds that once found something.
    private static let remembered: [UInt64] = [6397]

    /// Seeds in batches: several run at a time, and a failure names few seeds.
    static let batches = SimulationSeeds.batches(
        usual: 200, remembered: Self.remembered, environment: ProcessInfo.processInfo.environment)

    @Test(arguments: Self.batches)
    func invariantsHoldUnderMixedLoadAndFaults(_ seeds: [UInt64]) async throws {
        for seed in seeds {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try Self.load(seed)
            guard !load.complaints.isEmpty else { continue }
            let told = load.complaints + ["\(load.reasons)", "\(load.network.trace)"]
            Issue.record("replay with SLUICE_SEED=\(seed)\n\(told.joined(separator: "\n"))")
        }
    }

    private static func load(_ seed: UInt64) throws -> GatewayLoad {
        let load = try GatewayLoad(seed: seed)
        load.run()
        load.conclude()
        return load
    }

    @Test(arguments: UInt64(1)...6)
    func theSameSeedGivesTheSameRun(_ seed: UInt64) throws {
        let (first, second) = (try Self.load(seed), try Self.load(seed))
        #expect(first.network.trace.count > 1000)
        #expect(first.network.trace.fingerprint == second.network.trace.fingerprint)
        #expect(first.gateway.endings == second.gateway.endings)
    }

    /// The simulation covers both successful and failed loads.
    @Test func loadHasSuccessesAndFailures() async throws {
        var reasons: [String: Int] = [:]
        for seed in UInt64(1)...24 where seed % 3 != 0 {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            reasons.merge(try Self.load(seed).reasons, uniquingKeysWith: +)
        }
        let clean = reasons["downstream/relaying/clean", default: 0]
        #expect(clean + reasons["downstream/relaying/clean(1000)", default: 0] > 20, "\(reasons)")
        for reason in [
            "downstream/relaying/reset", "downstream/relaying/violation(1002)", "upstream/connecting/unreachable",
            "gateway/relaying/maximum-age-timeout", "operator/relaying/drained",
        ] {
            #expect(reasons[reason, default: 0] > 0, "\(reasons)")
        }
    }

    /// Leaks of thousands of runs would exhaust the machine's memory.
    @Test func noObjectOutlivesARun() throws {
        var load: GatewayLoad? = try Self.load(1)
        var roots: [WeakObject] = []
        if let load {
            let objects: [AnyObject] = [load, load.network, load.loop, load.host] + load.gateway.parts.map(\.loop)
            roots = objects.map { WeakObject(name: "\(type(of: $0))", object: $0) }
        }
        load = nil
        #expect(roots.filter { $0.object != nil }.map(\.name) == [])
    }
}
