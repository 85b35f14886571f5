import FuzzTargets
import Testing

@Suite("Corpus of the fuzz targets")
struct FuzzCorpusTests {
    @Test(arguments: FuzzTarget.allCases)
    func everyCorpusInputKeepsTheInvariant(_ target: FuzzTarget) async throws {
        let inputs = try FuzzCorpus.inputs(of: target)
        #expect(inputs.count >= 5, "the corpus of \(target.rawValue) is empty or nearly so")
        for input in inputs {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            #expect(throws: Never.self, "\(input.name)") { try target.check(input.bytes) }
        }
    }

    /// Short inputs test the parsing of an input's layout.
    @Test(arguments: FuzzTarget.allCases)
    func everyPrefixOfTheCorpusKeepsTheInvariant(_ target: FuzzTarget) async throws {
        for input in try FuzzCorpus.inputs(of: target) {
            await Task.yield()
            for count in 0...min(input.bytes.count, 24) {
                #expect(throws: Never.self, "\(input.name), \(count) bytes") {
                    try target.check(Array(input.bytes.prefix(count)))
                }
            }
        }
    }

    @Test func corpusHasAFolderForEachTargetAndNoOther() throws {
        #expect(try FuzzCorpus.folders() == FuzzTarget.allCases.map(\.rawValue).sorted())
    }
}
