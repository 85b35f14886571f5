import Testing

@Suite("Import rules")
struct ImportRulesTests {
    private func rules(_ path: String, _ text: String) -> [String] {
        ImportRules.findings(in: SourceFile(path: path, text: text)).map(\.rule)
    }

    @Test func sourcesFollowTheImportRules() async throws {
        let files = try await SourceFile.all()
        #expect(files.count > 10, "the sources were not found")
        #expect(files.flatMap(ImportRules.findings) == [])
    }

    @Test(arguments: [
        "import Foundation", "import Glibc", "@preconcurrency import Foundation", "package import Foundation",
        "import struct Foundation.Data", "@_exported public import Foundation", "#if os(Linux)\nimport Glibc\n#endif",
        "import ByteKernels; import Foundation", "import FoundationNetworking",
    ])
    func forbiddenImportIsFound(_ source: String) {
        #expect(self.rules("Sources/SessionTasks/A.swift", source).count == 1)
    }

    @Test(arguments: [
        "import ByteKernels", "// import Foundation", "let text = \"import Foundation\"", "case `import`",
        "self.import = a", "@preconcurrency import struct StreamTransport.Transport",
    ])
    func otherTextIsNoForbiddenImport(_ source: String) {
        #expect(self.rules("Sources/SessionTasks/A.swift", source) == [])
    }

    @Test(arguments: ["NIOCore", "NIOPosix", "NIOHTTP1"])
    func onlyTheControlPlaneImportsNIO(_ module: String) {
        for target in [
            "URLLoading", "HTTPTransport", "SessionTasks", "StreamTransport", "GatewayCore", "ControlClient",
        ] {
            #expect(self.rules("Sources/\(target)/A.swift", "import \(module)").count == 1)
        }
        #expect(self.rules("Sources/ControlPlane/Server/A.swift", "import \(module)") == [])
    }

    @Test func systemCallsBelongToTheSystemFolder() {
        #expect(self.rules("Sources/StreamTransport/System/A.swift", "import CLinux\nimport Glibc") == [])
        #expect(self.rules("Sources/StreamTransport/Loop/A.swift", "import CLinux\nimport Glibc").count == 2)
        #expect(self.rules("Sources/TLSEngine/OpenSSL/A.swift", "import COpenSSL") == [])
        #expect(self.rules("Sources/TLSEngine/A.swift", "import COpenSSL").count == 1)
        #expect(self.rules("Sources/HTTP2Engine/NGHTTP2/A.swift", "import CNGHTTP2") == [])
        #expect(self.rules("Sources/HTTP2Engine/A.swift", "import CNGHTTP2").count == 1)
    }
}
