/// Which module may import which. Arrows point down only; what is not named here is not allowed.
struct ImportTable {
    /// What a whole module may import.
    let modules: [String: Set<String>]
    /// What only the files under a folder may import, besides what their module may.
    let folders: [String: Set<String>]

    static let house = ImportTable(
        modules: [
            "ByteKernels": [],
            "Deflate": ["CZlib"],
            "TLSEngine": [],
            "WebSocketProtocol": ["ByteKernels", "Deflate"],
            "HTTPSemantics": ["HTTPTypes"],
            "StreamTransport": ["ByteKernels", "DequeModule", "HeapModule", "Logging", "Synchronization"],
            "SessionTasks": [
                "ByteKernels", "Deflate", "DequeModule", "StreamTransport", "Synchronization", "TLSEngine",
                "WebSocketProtocol",
            ],
            "HTTPTransport": [
                "ByteKernels", "HTTPSemantics", "Logging", "NIOCore", "NIOPosix", "StreamTransport",
                "Synchronization", "TLSEngine",
            ],
            // StreamTransport: a captured stream is the transport that SessionTasks hands over, and the failures of both
            // engines are its own. ByteKernels: so that no pointer is spelt out here either.
            "URLLoading": [
                "ByteKernels", "Deflate", "DequeModule", "Dispatch", "Foundation", "HTTPSemantics", "HTTPTransport",
                "HTTPTypes", "Observation", "SessionTasks", "StreamTransport", "Synchronization", "TLSEngine",
                "WebSocketProtocol",
            ],
            "GatewayCore": [
                "ByteKernels", "Deflate", "DequeModule", "HTTPSemantics", "Logging", "Metrics", "SessionTasks",
                "StreamTransport", "Synchronization", "TLSEngine", "WebSocketProtocol", "Yams",
            ],
            "CommandLineText": [],
            "ControlAPI": [],
            "ControlClient": ["CommandLineText", "ControlAPI", "Foundation", "URLLoading"],
            "ControlPlane": [
                "ByteKernels", "ControlAPI", "CoreMetrics", "DequeModule", "Foundation", "FoundationEssentials",
                "GatewayCore",
                "HTTPSemantics", "HTTPTransport", "HTTPTypes", "Hummingbird", "HummingbirdCore", "Logging", "NIOCore",
                "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOPosix", "ServiceLifecycle", "SessionTasks",
                "StreamTransport", "Synchronization",
                "TLSEngine", "URLLoading",
                "WebSocketProtocol",
            ],
            "sluice": [
                "ArgumentParser", "CommandLineText", "ControlAPI", "ControlClient", "ControlPlane", "Foundation",
                "GatewayCore", "HTTPSemantics", "Logging", "SessionTasks", "StreamTransport", "Synchronization",
                "TLSEngine", "URLLoading", "WebSocketProtocol",
            ],
            "TestSupport": ["ByteKernels", "COpenSSL", "StreamTransport", "Synchronization", "Testing"],
        ],
        folders: [
            "Sources/TLSEngine/OpenSSL/": ["COpenSSL", "Synchronization"],
            "Sources/StreamTransport/System/": ["CLinux", "Glibc"],
            // The status of files, which the compiler takes for this module's wherever both are seen.
            "Sources/ControlPlane/Transfers/": ["CLinux"],
            // What Foundation offers of run loops does not let one go on.
            "Sources/URLLoading/Streams/": ["CRunLoop"],
        ])

    func findings(in file: SourceFile) -> [Finding] {
        guard var allowed = self.modules[file.module] else {
            return [Finding(path: file.path, line: 1, rule: "module \(file.module) has no line in the import table")]
        }
        for (folder, more) in self.folders where file.path.hasPrefix(folder) {
            allowed.formUnion(more)
        }
        return Self.imports(of: file).filter { !allowed.contains($0.text) }.map { name in
            Finding(path: file.path, line: name.line, rule: "\(file.module) may not import \(name.text)")
        }
    }

    /// The module named by every import declaration: of `import struct A.B`, that is `A`.
    static func imports(of file: SourceFile) -> [Token] {
        let kinds: Set<String> = ["struct", "class", "enum", "protocol", "typealias", "func", "var", "let"]
        return file.tokens.indices.compactMap { index in
            // `import` is a reserved word: in backticks or behind a dot it is a name.
            guard file.tokens[index].text == "import" else { return nil }
            if index > 0, [".", "`"].contains(file.tokens[index - 1].text) { return nil }
            return file.tokens[(index + 1)...].first { !kinds.contains($0.text) }
        }
    }
}
