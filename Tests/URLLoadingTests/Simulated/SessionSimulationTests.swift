import Foundation
import SimulatedNetwork
import TestSupport
import Testing
import URLLoading

/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 200; `SLUICE_SEED=7` or `SLUICE_SEED=7-90` runs those.
@Suite("Whole sessions under mixed load and faults")
struct SessionSimulationTests {
    /// Seeds in batches: several run at a time, and a failure names few seeds.
    static let batches = SimulationSeeds.batches(
        usual: 200, environment: ProcessInfo.processInfo.environment)

    @Test(arguments: Self.batches)
    func invariantsHoldUnderMixedLoadAndFaults(_ seeds: [UInt64]) async throws {
        for seed in seeds {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try Self.load(seed)
            guard !load.complaints.isEmpty else { continue }
            let lines = load.complaints + load.endings + ["\(load.network.trace)"]
            Issue.record("replay with SLUICE_SEED=\(seed)\n\(lines.joined(separator: "\n"))")
        }
    }

    private static func load(_ seed: UInt64) throws -> SessionLoad {
        let load = try SessionLoad(seed: seed)
        load.run()
        load.conclude()
        return load
    }

    @Test(arguments: UInt64(1)...12)
    func theSameSeedGivesTheSameRun(_ seed: UInt64) throws {
        let (first, second) = (try Self.load(seed), try Self.load(seed))
        #expect(first.network.trace.count > 100)
        #expect(
            first.network.trace.fingerprint == second.network.trace.fingerprint,
            "A \(first.network.trace)\nB \(second.network.trace)")
        #expect(first.endings == second.endings)
    }

    /// The simulation covers both successful and failed loads.
    @Test(arguments: [false, true])
    func loadHasSuccessesAndFailures(_ usesHTTP2: Bool) async throws {
        var ends: [String: Int] = [:]
        for seed in UInt64(1)...(usesHTTP2 ? 120 : 40) where (seed % 4 == 0) == usesHTTP2 {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try Self.load(seed)
            ends["\(load.route)", default: 0] += load.proxy?.relayedCount ?? load.tasks.count
            for task in load.tasks {
                let status = task.response.map { "\($0.statusCode)" } ?? "none"
                ends[(task.error as? URLError).map { "\($0.code.rawValue)" } ?? status, default: 0] += 1
                for event in task.events { ends[event, default: 0] += 1 }
            }
        }
        let codes: [URLError.Code] = [
            .cancelled, .timedOut, .networkConnectionLost, .cannotConnectToHost,
            usesHTTP2 ? .cannotParseResponse : .badServerResponse,
        ]
        let routes = SimulatedRoute.allCases.filter { !usesHTTP2 || $0 != .forwarding }
        let wanted = ["200", "401", "redirect", "challenge", "informational", "sent"] + routes.map { "\($0)" }
        for end in wanted + codes.map({ "\($0.rawValue)" }) { #expect(ends[end, default: 0] > 0, "\(end): \(ends)") }
    }
}
