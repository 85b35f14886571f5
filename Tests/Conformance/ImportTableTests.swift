import Testing

@Suite("Import table")
struct ImportTableTests {
    private func rules(_ path: String, _ text: String) -> [String] {
        ImportTable.house.findings(in: SourceFile(path: path, text: text)).map(\.rule)
    }

    @Test func everySourceKeepsToTheTable() throws {
        let files = try SourceFile.all()
        #expect(files.count > 10, "the sources were not found")
        #expect(files.flatMap(ImportTable.house.findings) == [])
    }

    @Test(arguments: [
        "import Foundation", "import NIOCore", "@preconcurrency import Foundation", "package import Foundation",
        "import struct Foundation.Data", "@_exported public import Foundation", "#if os(Linux)\nimport Glibc\n#endif",
        "import ByteKernels; import Foundation",
    ])
    func findsAForbiddenImport(_ source: String) {
        #expect(self.rules("Sources/SessionTasks/A.swift", source).count == 1)
    }

    @Test(arguments: [
        "import ByteKernels", "// import Foundation", "let text = \"import Foundation\"", "case `import`",
        "self.import = a",
        "@preconcurrency import struct StreamTransport.Transport",
    ])
    func acceptsWhatIsNoForbiddenImport(_ source: String) {
        #expect(self.rules("Sources/SessionTasks/A.swift", source) == [])
    }

    @Test func letsOnlyTheSystemFolderNearTheSystem() {
        #expect(self.rules("Sources/StreamTransport/System/A.swift", "import CLinux\nimport Glibc") == [])
        #expect(self.rules("Sources/StreamTransport/Loop/A.swift", "import CLinux\nimport Glibc").count == 2)
        #expect(self.rules("Sources/TLSEngine/OpenSSL/A.swift", "import COpenSSL") == [])
        #expect(self.rules("Sources/TLSEngine/A.swift", "import COpenSSL").count == 1)
    }

    @Test func wantsALineForEveryModule() {
        #expect(self.rules("Sources/Newcomer/A.swift", "").count == 1)
    }

    @Test func pointsDownOnly() {
        let ours = Set(ImportTable.house.modules.keys)
        // A module's height is one more than that of what it imports: in a circle this never settles.
        var heights = Dictionary(uniqueKeysWithValues: ours.map { ($0, 0) })
        for _ in 0...ours.count {
            for (module, imports) in ImportTable.house.modules {
                heights[module] = imports.intersection(ours).map { (heights[$0] ?? 0) + 1 }.max() ?? 0
            }
        }
        #expect(heights.values.allSatisfy { $0 < ours.count })
    }
}
