extension PathPattern {
    /// `/chat/{room}`, `/vnc`, `/files/{rest...}`, `/`. Segments are literal, or a whole segment is a parameter;
    /// percent-encoding in literals is decoded.
    package init(parsing text: String) throws(TextFault) {
        guard text.hasPrefix("/"), text.utf8.count <= 1024 else {
            throw TextFault(
                expected: "a path that begins with /, at most 1024 bytes", remedy: "write it like /chat/{room}")
        }
        var segments: [Segment] = []
        let pieces = text == "/" ? [] : text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for piece in pieces {
            if case .rest = segments.last {
                throw TextFault(expected: "{name...} as the last segment of the path")
            }
            segments.append(try Self.segment(piece))
        }
        self.init(segments)
        guard Set(self.parameters).count == self.parameters.count else {
            throw TextFault(expected: "a path whose parameters have different names")
        }
    }

    private static func segment(_ piece: Substring) throws(TextFault) -> Segment {
        guard piece.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) else {
            return .literal(try self.decoded(piece))
        }
        let inner = piece.dropFirst().dropLast()
        guard piece.first == "{", piece.last == "}" else {
            throw TextFault(
                expected: "a path in which {name} fills a whole segment", remedy: "write it like /files/{name}/raw")
        }
        let isRest = inner.hasSuffix("...")
        let name = isRest ? inner.dropLast(3) : inner
        guard NameText.isParameter(name) else {
            throw TextFault(expected: "a parameter's name of letters, digits and _", remedy: "write it like {room}")
        }
        return isRest ? .rest(String(name)) : .parameter(String(name))
    }

    private static func decoded(_ piece: Substring) throws(TextFault) -> String {
        let fault = TextFault(
            expected: "a path of RFC 3986's characters without empty segments",
            remedy: "percent-encode other characters, and leave out the query")
        var bytes: [UInt8] = []
        var rest = Array(piece.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                // Bytes above ASCII are taken as they are; `?` begins a query and has no place here.
                guard byte >= 0x80 || (NameText.isResourceByte(byte) && byte != UInt8(ascii: "?")) else { throw fault }
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hexadecimal.digit),
                let low = rest.popFirst().flatMap(Hexadecimal.digit)
            else { throw fault }
            bytes.append(high << 4 | low)
        }
        guard let text = String(validating: bytes, as: UTF8.self), !text.isEmpty else { throw fault }
        guard !PathTraversal.isPossible(with: text) else {
            throw TextFault(
                expected: "a path without dot segments and control characters, however they are encoded",
                remedy: "no request can have such a path: leave the segment out")
        }
        return text
    }
}
