import Foundation

/// One Swift file of `Sources`, as the rules look at it.
struct SourceFile {
    /// From the top of the project, as in `Sources/Deflate/Inflater.swift`.
    let path: String
    let lineCount: Int
    let tokens: [Token]

    init(path: String, text: String) {
        self.path = path
        self.lineCount = text.utf8.count { $0 == UInt8(ascii: "\n") } + (text.isEmpty || text.hasSuffix("\n") ? 0 : 1)
        self.tokens = Tokenizer.tokens(of: text)
    }

    /// The folder under `Sources`.
    var module: String {
        self.path.split(separator: "/").dropFirst().first.map(String.init) ?? ""
    }

    /// The root of the project, relative to this file.
    static let projectRoot = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every Swift file under `Sources`, in the order of their paths.
    static func all() async throws -> [SourceFile] {
        let sources = self.projectRoot.appending(path: "Sources")
        let names = FileManager.default.subpaths(atPath: sources.path()) ?? []
        var files: [SourceFile] = []
        for name in names.filter({ $0.hasSuffix(".swift") }).sorted() {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
            files.append(SourceFile(path: "Sources/\(name)", text: text))
        }
        return files
    }
}
