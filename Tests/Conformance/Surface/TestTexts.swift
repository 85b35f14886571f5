import Foundation

/// The texts of the library's test suites, each with the helper files that it uses.
struct TestTexts {
    /// A file that declares what suites use.
    private struct Helper {
        let text: String
        /// Names that it declares.
        let names: Set<String>
    }

    private var suites: [String: String] = [:]
    private var helpers: [Helper] = []

    /// Reads the files of `Tests/URLLoadingTests`: a suite has the name of its file.
    init() throws {
        let folder = SourceFile.projectRoot.appending(path: "Tests/URLLoadingTests")
        for path in FileManager.default.subpaths(atPath: folder.path()) ?? [] where path.hasSuffix(".swift") {
            let file = folder.appending(path: path)
            let text = try String(contentsOf: file, encoding: .utf8)
            let name = file.deletingPathExtension().lastPathComponent
            guard !name.hasSuffix("Tests") else {
                self.suites[name] = text
                continue
            }
            let declared = text.matches(of: /(?:class|struct|enum|protocol|actor|extension|func) +`?(\w+)/)
            self.helpers.append(Helper(text: text, names: Set(declared.map { String($0.output.1) })))
        }
    }

    /// The identifiers of the suites of these tests, and of all helpers that they use.
    func identifiers(of tests: [String]) -> Set<String> {
        var found: Set<String> = []
        for suite in Set(tests.compactMap { $0.split(separator: ".").first.map(String.init) }) {
            found.formUnion(Self.identifiers(in: self.suites[suite] ?? ""))
        }
        var rest = self.helpers
        while let index = rest.firstIndex(where: { !$0.names.isDisjoint(with: found) }) {
            found.formUnion(Self.identifiers(in: rest.remove(at: index).text))
        }
        return found
    }

    private static func identifiers(in text: String) -> Set<String> {
        Set(text.matches(of: /\w+/).map { String($0.output) })
    }
}

extension SurfaceEntry {
    /// Words of entries that are no identifiers, or do not distinguish an entry from others.
    private static let plainWords: Set<String> = [
        "async", "of", "the", "for", "with", "a", "and", "to", "in", "an", "one", "without", "init",
    ]

    /// For each member of the entry, the identifiers of which a test must use one: the base name of a function or
    /// property, the argument labels of an initializer, any word of a delegate method.
    var members: [[String]] {
        // Commas part members, but not inside parentheses.
        let text = self.name.replacing(/\([^)]*\)/) { $0.output.replacing(",", with: ";") }
        return text.split(separator: ",").map { part in
            let base = part.prefix { $0 != "(" }
            let words = base.matches(of: /\w+/).map { String($0.output) }.filter { !Self.plainWords.contains($0) }
            guard words.isEmpty || base.trimmingPrefix(" ").hasPrefix("init") else { return words }
            let labels = part.matches(of: /(\w+):/).map { String($0.output.1) }.filter { $0 != "_" }
            return labels.isEmpty ? ["init"] : labels
        }
    }
}
