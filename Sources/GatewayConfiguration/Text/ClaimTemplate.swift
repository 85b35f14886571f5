/// Text with placeholders for claims of the client's token: `user {claim.sub}`. Other braces are plain text.
package struct ClaimTemplate: Sendable, Hashable {
    package enum Part: Sendable, Hashable {
        case text(String)
        case claim(String)
    }

    package let parts: [Part]

    private static let opening = "{\(ClaimParameter.prefix)"

    package init(_ text: String) {
        var parts: [Part] = []
        var rest = text[...]
        while let start = rest.firstRange(of: Self.opening)?.lowerBound, let end = rest[start...].firstIndex(of: "}") {
            let name = rest[start..<end].dropFirst()
            if let claim = ClaimParameter.claim(of: name) {
                if start > rest.startIndex { parts.append(.text(String(rest[..<start]))) }
                parts.append(.claim(claim))
            } else {
                parts.append(.text(String(rest[...end])))
            }
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        self.parts = parts
    }

    /// Names of the claims that it needs.
    package var claims: [String] {
        self.parts.compactMap { part in
            if case .claim(let name) = part { name } else { nil }
        }
    }

    /// - Returns: `nil` if a claim has no value.
    package func text(_ value: (String) -> String?) -> String? {
        var text = ""
        for part in self.parts {
            switch part {
            case .text(let piece): text += piece
            case .claim(let name):
                guard let value = value(name) else { return nil }
                text += value
            }
        }
        return text
    }
}

/// Parameters of paths that stand for claims: `claim.sub`.
package enum ClaimParameter {
    package static let prefix = "claim."

    /// Name of the claim; `nil` for other parameters. 1 to 64 letters, digits, `-`, `_` and `.`.
    package static func claim(of parameter: some StringProtocol) -> String? {
        guard parameter.hasPrefix(self.prefix) else { return nil }
        let name = parameter.dropFirst(self.prefix.count)
        let isValid =
            (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                NameText.isAlphanumeric(byte)
                    || [UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ".")].contains(byte)
            }
        return isValid ? String(name) : nil
    }
}
