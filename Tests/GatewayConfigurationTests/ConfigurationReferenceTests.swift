import Foundation
import GatewayConfiguration
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

    @Test func everyKeyHasAnEntryWithItsParts() throws {
        let entries = try self.entries()
        for key in ConfigurationSchema.keyNames {
            let entry = try #require(entries[key], "\(key) has no entry")
            for part in ["Syntax", "Default", "Effect", "Example"] {
                #expect(entry.contains("- \(part): "), "\(key) lacks \(part)")
            }
        }
    }

    @Test func everyEntryIsOfAKeyThatThereIs() throws {
        let known = Set(ConfigurationSchema.keyNames)
        for key in try self.entries().keys {
            #expect(known.contains(key), "\(key)")
        }
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

    /// What follows each heading of the form `` ### `listeners[].name` ``.
    private func entries() throws -> [String: String] {
        var entries: [String: String] = [:]
        for part in try ConfigurationSamples.text(Self.reference).components(separatedBy: "\n### `").dropFirst() {
            guard let end = part.firstIndex(of: "`") else { continue }
            entries[String(part[..<end])] = part.components(separatedBy: "\n## ")[0]
        }
        return entries
    }

    private func snippets() throws -> [String] {
        try ConfigurationSamples.text(Self.reference).components(separatedBy: "```yaml\n").dropFirst()
            .map { $0.components(separatedBy: "```")[0] }
    }
}
