/// Seeds of a simulation: `SLUICE_TEST_SIZE=nightly` runs 10 000 instead of the usual number, `SLUICE_SEED=7` or
/// `SLUICE_SEED=7-90` those alone.
package enum SimulationSeeds {
    /// Seeds of one test case, so that the cases run beside each other.
    private static let batch = 25

    /// - Parameters:
    ///   - remembered: seeds that once found something, which run as well.
    ///   - environment: of the process.
    package static func batches(
        usual: UInt64, remembered: [UInt64] = [], environment: [String: String]
    ) -> [[UInt64]] {
        var seeds = remembered + Array(1...(environment["SLUICE_TEST_SIZE"] == "nightly" ? 10_000 : usual))
        if let asked = environment["SLUICE_SEED"].map({ $0.split(separator: "-").compactMap { UInt64($0) } }),
            let first = asked.first, let last = asked.last
        {
            seeds = Array(first...max(first, last))
        }
        return stride(from: 0, to: seeds.count, by: Self.batch).map {
            Array(seeds[$0..<min($0 + Self.batch, seeds.count)])
        }
    }
}
