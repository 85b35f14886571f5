/// Rules that can be checked for a single source file.
enum HouseRules {
    static let largestFile = 600
    static let largestFunction = 40
    static let rooms = [
        "Sources/WireText/", "Sources/ByteKernels/", "Sources/Deflate/", "Sources/TLSEngine/OpenSSL/",
        "Sources/ContentCodings/Libraries/", "Sources/GSSEngine/GSSAPI/", "Sources/HTTP2Engine/NGHTTP2/",
        "Sources/PACEngine/Duktape/", "Sources/PublicSuffixList/Library/", "Sources/SQLiteStorage/Library/",
        "Sources/StreamTransport/System/",
        // One call, whose name alone is unsafe: NIO's generic way to ask a socket for an option.
        "Sources/ControlPlane/Access/PeerProcess.swift",
    ]
    /// The products, and WireText, whose fields are part of WebSocketProtocol's interface.
    static let publicModules: Set<String> = [
        "SessionTasks", "TLSEngine", "URLLoading", "WebSocketProtocol", "WireText",
    ]

    static func findings(in file: SourceFile) -> [Finding] {
        var findings = self.size(of: file)
        findings += self.traps(in: file)
        findings += self.unsafeOutsideRooms(in: file)
        findings += self.publicOutsideTheLibrary(in: file)
        return findings.sorted { $0.line < $1.line }
    }

    static func size(of file: SourceFile) -> [Finding] {
        var findings: [Finding] = []
        if file.lineCount > self.largestFile {
            findings.append(
                Finding(path: file.path, line: file.lineCount, rule: "file of more than \(self.largestFile) lines"))
        }
        for function in Declarations.functions(in: file.tokens) where function.lineCount > self.largestFunction {
            let rule = "function \(function.name) of \(function.lineCount) lines, more than \(self.largestFunction)"
            findings.append(Finding(path: file.path, line: function.line, rule: rule))
        }
        return findings
    }

    /// Bytes from outside must never reach a trap, so nothing that traps occurs.
    static func traps(in file: SourceFile) -> [Finding] {
        var findings: [Finding] = []
        for (index, token) in file.tokens.enumerated() {
            if token.text == "fatalError" || token.text == "preconditionFailure" {
                findings.append(Finding(path: file.path, line: token.line, rule: token.text))
            }
            guard token.text == "!", token.touchesPrevious, index > 0 else { continue }
            let before = file.tokens[index - 1]
            let after = file.tokens[(index + 1)...].first
            // `a!=b` compares.
            if let after, after.text == "=", after.touchesPrevious { continue }
            if before.text == "try" || before.text == "as" {
                findings.append(Finding(path: file.path, line: token.line, rule: "\(before.text)!"))
            } else if before.isWord || [")", "]", "?", "\"", "`", ">"].contains(before.text) {
                findings.append(Finding(path: file.path, line: token.line, rule: "force unwrap"))
            }
        }
        return findings
    }

    static func unsafeOutsideRooms(in file: SourceFile) -> [Finding] {
        guard !self.rooms.contains(where: file.path.hasPrefix) else { return [] }
        return file.tokens.filter { $0.text.lowercased().contains("unsafe") }.map { token in
            Finding(path: file.path, line: token.line, rule: "\(token.text) outside the rooms")
        }
    }

    static func publicOutsideTheLibrary(in file: SourceFile) -> [Finding] {
        guard !self.publicModules.contains(file.module) else { return [] }
        return file.tokens.filter { $0.text == "public" || $0.text == "open" && $0.isModifier(in: file) }.map { token in
            Finding(path: file.path, line: token.line, rule: "\(token.text) in \(file.module)")
        }
    }
}

extension Token {
    /// `open` is a word of the language only before a declaration: elsewhere it names a case, a function, a state.
    func isModifier(in file: SourceFile) -> Bool {
        guard let index = file.tokens.firstIndex(of: self), index + 1 < file.tokens.count else { return false }
        if index > 0, file.tokens[index - 1].text == "." { return false }
        return ["class", "func", "var", "subscript", "override"].contains(file.tokens[index + 1].text)
    }
}
