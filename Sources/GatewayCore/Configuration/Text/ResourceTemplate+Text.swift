extension ResourceTemplate {
    /// Characters of a path and query (RFC 3986), with `{name}` where a parameter goes. Nothing, and a query alone, are
    /// about `/`.
    package init(parsing text: Substring) throws(TextFault) {
        let fault = TextFault(
            expected: "a path of RFC 3986's characters, with parameters as {name}",
            remedy: "percent-encode other characters, and close each { with }")
        var parts: [Part] = []
        var literal = text.first == "/" ? "" : "/"
        guard text.isEmpty || text.first == "/" || text.first == "?" else { throw fault }
        var rest = text
        while let first = rest.first {
            if first == "{" {
                guard let end = rest.firstIndex(of: "}") else { throw fault }
                let name = rest[..<end].dropFirst()
                guard NameText.isParameter(name) else { throw fault }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.parameter(String(name)))
                rest = rest[end...].dropFirst()
            } else {
                guard let byte = first.asciiValue, NameText.isResourceByte(byte) else { throw fault }
                literal.append(first)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.init(parts)
    }
}
