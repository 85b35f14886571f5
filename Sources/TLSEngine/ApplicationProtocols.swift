/// The protocol name lists of ALPN (RFC 7301 §3.1).
enum ApplicationProtocols {
    /// The wire form of `names`: each after its length in one byte.
    /// - Returns: `nil` if a name is empty or longer than 255 bytes, or all of them exceed 65535.
    static func encode(_ names: [String]) -> [UInt8]? {
        var encoded: [UInt8] = []
        for name in names {
            guard let count = UInt8(exactly: name.utf8.count), count > 0 else { return nil }
            encoded.append(count)
            encoded.append(contentsOf: name.utf8)
        }
        return encoded.count <= 0xFFFF ? encoded : nil
    }

    /// Where in the client's list the server's most wanted common name is, without its length byte.
    /// - Returns: `nil` if the lists have nothing in common; a malformed list ends where it breaks.
    static func choose(from offered: RawSpan, wanted: [[UInt8]]) -> Range<Int>? {
        for name in wanted {
            var offset = 0
            while offset < offered.byteCount {
                let start = offset + 1
                let end = start + Int(offered[byte: offset])
                guard end <= offered.byteCount else { break }
                if end - start == name.count, self.equal(offered, from: start, name) { return start..<end }
                offset = end
            }
        }
        return nil
    }

    private static func equal(_ bytes: RawSpan, from start: Int, _ name: [UInt8]) -> Bool {
        for index in name.indices where bytes[byte: start + index] != name[index] { return false }
        return true
    }
}
