/// Import rules that a target's list of dependencies cannot express. Package.swift declares which of our targets may
/// import which; SwiftPM checks it in `.ci/run` (`--explicit-target-dependency-import-check error`).
enum ImportRules {
    /// Modules that only these paths under `Sources` may import: the toolchain's own, which every target can see, and C
    /// libraries that one folder of a target owns.
    static let owners: [String: [String]] = [
        "COpenSSL": ["WireText/", "TLSEngine/OpenSSL/", "TestSupport/"],
        "CNGHTTP2": ["HTTP2Engine/NGHTTP2/"],
        "CCodings": ["ContentCodings/Libraries/"],
        "CDuktape": ["PACEngine/Duktape/"],
        "CGSSAPI": ["GSSEngine/GSSAPI/"],
        "CLinux": [
            "StreamTransport/System/",
            // File status calls, which Foundation hides.
            "ControlPlane/Transfers/",
            // The error numbers of files.
            "ControlPlane/Server/ProblemMapping.swift",
        ],
        "CPublicSuffix": ["PublicSuffixList/Library/"],
        "CRunLoop": ["URLLoading/Streams/"],
        "CSQLite": ["SQLiteStorage/Library/"],
        "Glibc": ["StreamTransport/System/"],
        "Dispatch": ["URLLoading/"],
        "Foundation": [
            "BackgroundTransfers/", "TransferDaemon/", "URLLoading/", "ControlClient/", "ControlPlane/", "Commands/",
            "GatewayTestSupport/", "TestSupport/NTLMUsers.swift",
            "TestSupport/RedisProcess.swift",
            // Unicode's normal forms.
            "Rooms/State/NameRules.swift",
        ],
        "FoundationEssentials": ["ControlPlane/"],
        // URLLoading takes its place; only side-by-side tests and benchmarks link it.
        "FoundationNetworking": [],
        "Testing": ["TestSupport/", "GatewayTestSupport/GatewayTrait.swift"],
    ]
    /// SwiftNIO serves REST, and nothing else.
    static let ownersOfNIO = ["ControlPlane/"]

    static func findings(in file: SourceFile) -> [Finding] {
        self.imports(of: file).compactMap { name in
            guard let owners = self.owners[name.text] ?? (name.text.hasPrefix("NIO") ? self.ownersOfNIO : nil),
                !owners.contains(where: { file.path.hasPrefix("Sources/\($0)") })
            else { return nil }
            return Finding(path: file.path, line: name.line, rule: "\(name.text) may not be imported here")
        }
    }

    /// The module named by every import declaration: of `import struct A.B`, that is `A`.
    static func imports(of file: SourceFile) -> [Token] {
        let kinds: Set<String> = ["struct", "class", "enum", "protocol", "typealias", "func", "var", "let"]
        return file.tokens.indices.compactMap { index in
            // `import` is a reserved word: in backticks or after a dot it is a name.
            guard file.tokens[index].text == "import" else { return nil }
            if index > 0, [".", "`"].contains(file.tokens[index - 1].text) { return nil }
            return file.tokens[(index + 1)...].first { !kinds.contains($0.text) }
        }
    }
}
