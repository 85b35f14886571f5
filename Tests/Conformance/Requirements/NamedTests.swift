import Foundation

/// The tests that exist, by the names under which requirements refer to them.
struct NamedTests {
    private let names: Set<String>

    /// Reads all files of `Tests`: `func` after an `@Test` in Swift, `def test_` at the margin in Python.
    static func all() throws -> NamedTests {
        let folder = SourceFile.projectRoot.appending(path: "Tests")
        var names: Set<String> = []
        for path in FileManager.default.subpaths(atPath: folder.path()) ?? [] where Self.isRead(path) {
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            names.formUnion(Self.names(in: text, file: path.split(separator: "/").last.map(String.init) ?? path))
        }
        return NamedTests(names: names)
    }

    func contains(_ name: String) -> Bool { self.names.contains(name) }

    private static func isRead(_ path: String) -> Bool {
        path.hasSuffix(".swift") || path.hasSuffix(".py")
    }

    static func names(in text: String, file: String) -> Set<String> {
        if file.hasSuffix(".py") {
            let functions = text.matches(of: /(?m)^def (test_\w+)\(/).map { "\(file)::\($0.output.1)" }
            return Set(functions)
        }
        let type = file.dropLast(".swift".count)
        // Between the attribute and its function there are arguments, but no other function.
        let functions = text.matches(of: /@Test\b(?:(?!\bfunc\b)[\s\S])*?\bfunc\s+(\w+)/)
        return Set(functions.map { "\(type).\($0.output.1)" })
    }
}
