import Foundation
import SimulatedNetwork
import Testing
import URLLoading

/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 200; `SLUICE_SEED=7` or `SLUICE_SEED=7-90` runs those.
@Suite("Whole sessions under mixed load and faults")
struct SessionSimulationTests {
    /// Seeds in batches: several run at a time, and a failure names few seeds.
    static let batches: [[UInt64]] = {
        let environment = ProcessInfo.processInfo.environment
        if let asked = environment["SLUICE_SEED"].map({ $0.split(separator: "-").compactMap { UInt64($0) } }),
            let first = asked.first, let last = asked.last
        {
            return Self.batches(of: Array(first...max(first, last)))
        }
        let count: UInt64 = environment["SLUICE_TEST_SIZE"] == "nightly" ? 10_000 : 200
        return Self.batches(of: Array(1...count))
    }()

    private static func batches(of seeds: [UInt64]) -> [[UInt64]] {
        stride(from: 0, to: seeds.count, by: 25).map { Array(seeds[$0..<min($0 + 25, seeds.count)]) }
    }

    @Test(arguments: Self.batches)
    func invariantsHoldUnderMixedLoadAndFaults(_ seeds: [UInt64]) throws {
        for seed in seeds {
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
    func loadHasSuccessesAndFailures(_ usesHTTP2: Bool) throws {
        var ends: [String: Int] = [:]
        for seed in UInt64(1)...(usesHTTP2 ? 120 : 40) where (seed % 4 == 0) == usesHTTP2 {
            for task in try Self.load(seed).tasks {
                let status = task.response.map { "\($0.statusCode)" } ?? "none"
                ends[(task.error as? URLError).map { "\($0.code.rawValue)" } ?? status, default: 0] += 1
                for event in task.events { ends[event, default: 0] += 1 }
            }
        }
        let codes: [URLError.Code] = [
            .cancelled, .timedOut, .networkConnectionLost, .cannotConnectToHost,
            usesHTTP2 ? .cannotParseResponse : .badServerResponse,
        ]
        let wanted = ["200", "401", "redirect", "challenge", "informational", "sent"]
        for end in wanted + codes.map({ "\($0.rawValue)" }) { #expect(ends[end, default: 0] > 0, "\(end): \(ends)") }
    }
}
