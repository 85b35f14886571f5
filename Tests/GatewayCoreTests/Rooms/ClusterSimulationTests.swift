import Foundation
import TestSupport
import Testing

/// Clusters whose nodes are killed and whose Redis fails, with clients that publish, vanish and come back on any node.
///
/// Of four seeds, three have clients that only receive, by Server-Sent Events or by lines.
/// The Redis of each 25th seed is a Redis Cluster whose slots migrate. Of eight seeds, the rooms of one keep few publications,
/// those of one are caches, and those of one keep nothing.
///
/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 100; `SLUICE_SEED=7` or `SLUICE_SEED=7-90` runs those.
/// A seed gives the same run in each process only with `SWIFT_DETERMINISTIC_HASHING=1`, as `deploy/test` sets it, because
/// the order of dictionaries decides who is served first.
@Suite("Clusters whose nodes and whose Redis fail")
struct ClusterSimulationTests {
    private static let batches = SimulationSeeds.batches(
        usual: 100, environment: ProcessInfo.processInfo.environment)

    @Test(arguments: Self.batches)
    func nothingIsLostDoubledOrOutOfOrder(_ seeds: [UInt64]) async throws {
        for seed in seeds {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try ClusterLoad(seed: seed)
            try load.run()
            guard !load.complaints.isEmpty else { continue }
            let replay = "replay with SWIFT_DETERMINISTIC_HASHING=1 SLUICE_SEED=\(seed)"
            Issue.record("\(replay)\n\(load.complaints.joined(separator: "\n"))")
        }
    }

    /// A member with a filter got what it leaves out, behind what had come before the member.
    @Test func filterAppliesBehindMessagesFromBeforeTheMember() throws {
        let load = try ClusterLoad(seed: 4532)
        try load.run()
        #expect(load.complaints == [])
    }

    /// The simulation covers every failure, recoveries, subscriptions that the nodes ended, and each kind of client.
    @Test func loadCoversFailuresAndRecoveries() async throws {
        var counts: [String: Int] = [:]
        for seed in UInt64(1)...24 {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try ClusterLoad(seed: seed)
            try load.run()
            counts.merge(load.counts, uniquingKeysWith: +)
        }
        let failures = [
            "cut", "cutAll", "cutBefore", "cutAfter", "cutPush", "losePush", "pause", "forgetScripts", "restart",
            "restartEmpty", "failOver",
        ]
        let clients = [
            "skipped recoveries", "repeatedAcknowledged", "repeatedUncertain", "operationsFailed", "probed",
            "plain received", "recovered by events", "recovered by lines", "trimmed", "cached", "few loads",
            "cache loads", "alone loads", "unkept loads",
        ]
        for name in failures + clients + ["kills", "refused", "interruptions", "resubscriptions", "unrecovered"] {
            #expect(counts[name, default: 0] > 0, "\(name)")
        }
        #expect(counts["recoveries", default: 0] > 50 && counts["recovered", default: 0] > 100)
        #expect(counts["acknowledged", default: 0] > 100)
    }
}
