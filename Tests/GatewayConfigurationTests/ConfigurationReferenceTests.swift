import Foundation
import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("The configuration reference and the examples")
struct ConfigurationReferenceTests {
    private static let reference = "Sources/GatewayCore/GatewayCore.docc/Configuration.md"

    @Test(arguments: ConfigurationSamples.examples)
    func everyExampleIsRight(_ path: String) throws {
        let problems = ConfigurationSamples.problems(try ConfigurationSamples.text(path))
        #expect(problems == [])
    }

    @Test func thereAreExamples() {
        #expect(ConfigurationSamples.examples.count >= 6)
    }

    /// With `SLUICE_WRITE_REFERENCE` set, writes the entries of all keys into the article.
    @Test func everyKeyHasItsEntry() throws {
        let article = try ConfigurationSamples.text(Self.reference)
        let start = try #require(article.firstRange(of: "\n## Keys of "), "no keys").lowerBound
        let expected = article[..<start] + ConfigurationReference.markdown
        if ProcessInfo.processInfo.environment["SLUICE_WRITE_REFERENCE"] != nil {
            let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../\(Self.reference)").standardized
            try expected.write(to: file, atomically: true, encoding: .utf8)
        } else {
            #expect(article == expected, "run SLUICE_WRITE_REFERENCE=1 swift test --filter everyKeyHasItsEntry")
        }
    }

    @Test func articleShowsTheBuiltInConfiguration() throws {
        let article = try ConfigurationSamples.text(Self.reference)
        let example = "```yaml\n\(Configuration.builtInText)\n```\n"
        #expect(article.contains("Without a file the service runs this:\n\n\(example)"))
    }

    @Test func everySnippetPassesTheCheck() throws {
        let snippets = try self.snippets()
        #expect(snippets.count >= 5)
        for snippet in snippets {
            #expect(ConfigurationSamples.problems(snippet) == [], "\(snippet)")
        }
    }

    /// The configuration inside the Kubernetes example; and the pod must not be killed while it drains.
    @Test func theExampleForKubernetesIsRight() throws {
        let lines = try ConfigurationSamples.text("deploy/kubernetes.yaml").components(separatedBy: "\n")
        let start = try #require(lines.firstIndex(of: "  sluice.yaml: |"))
        let block = lines[(start + 1)...].prefix { $0.isEmpty || $0.hasPrefix("    ") }
        let text = block.map { $0.dropFirst(4) }.joined(separator: "\n")
        #expect(ConfigurationSamples.problems(text) == [])
        let drain = try ConfigurationSamples.configuration(text).drain.timeout
        func number(behind key: String) -> Int? {
            lines.first { $0.contains(key) }?.components(separatedBy: key)[1].split { !$0.isNumber }.first.flatMap {
                Int($0)
            }
        }
        let grace = try #require(number(behind: "terminationGracePeriodSeconds: "))
        let pause = try #require(number(behind: "command: [sleep, "))
        #expect(.seconds(grace - pause) > drain)
    }

    private func snippets() throws -> [String] {
        try ConfigurationSamples.text(Self.reference).components(separatedBy: "```yaml\n").dropFirst()
            .map { $0.components(separatedBy: "```")[0] }
    }
}
