import Foundation
import Testing

/// Code in the library's articles compiles: every block of Swift in them occurs, line by line, in the program
/// `Tests/Programs/Articles`.
@Suite("Code in the articles")
struct DocumentedCodeTests {
    private static func files(_ folder: String, _ ending: String) throws -> [(name: String, text: String)] {
        let folder = SourceFile.projectRoot.appending(path: folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        return try names.filter { $0.hasSuffix(ending) }.sorted().map { name in
            (name, try String(contentsOf: folder.appending(path: name), encoding: .utf8))
        }
    }

    /// Without the blanks around them.
    private static func lines(_ text: some StringProtocol) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.trimmingCharacters(in: .whitespaces)
        }
    }

    private static func blocks(of article: String) -> [[String]] {
        var blocks: [[String]] = []
        var current: [String]?
        for line in self.lines(article) {
            if line == "```swift" {
                current = []
            } else if line == "```", let block = current {
                blocks.append(block)
                current = nil
            } else {
                current?.append(line)
            }
        }
        return blocks
    }

    private static func occurs(_ block: [String], in program: [String]) -> Bool {
        guard block.count <= program.count else { return false }
        return (0...(program.count - block.count)).contains { start in
            program[start..<(start + block.count)].elementsEqual(block)
        }
    }

    @Test func documentedCodeOccursInABuiltProgram() throws {
        let programs = try Self.files("Tests/Programs/Articles", ".swift").map { Self.lines($0.text) }
        var count = 0
        for article in try Self.files("Sources/URLLoading/URLLoading.docc", ".md") {
            for block in Self.blocks(of: article.text) {
                count += 1
                #expect(
                    programs.contains { Self.occurs(block, in: $0) },
                    "\(article.name) prints what is in no program: \(block.first ?? "")")
            }
        }
        #expect(count > 10)
    }
}
