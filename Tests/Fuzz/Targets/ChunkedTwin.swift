/// A chunked body taken to the letter (RFC 9112 §7.1): the obvious way, of bytes that are all there.
enum ChunkedTwin {
    struct Body: Equatable {
        var content: [UInt8] = []
        /// Without chunk extensions and trailers, and every size in at most eight digits.
        var isPlain = true
        /// Bytes that it takes.
        var end = 0
    }

    /// - Returns: `nil` for an incomplete or invalid body.
    static func read(_ bytes: [UInt8]) -> Body? {
        var body = Body()
        while true {
            guard let line = self.line(bytes, from: body.end) else { return nil }
            let digits = bytes[body.end..<line].prefix { self.value($0) != nil }
            guard let size = self.size(digits) else { return nil }
            let rest = bytes[(body.end + digits.count)..<line]
            guard rest.isEmpty || self.mayFollow(rest) else { return nil }
            if !rest.isEmpty || digits.count > 8 { body.isPlain = false }
            body.end = line + 2
            if size == 0 { return self.trailers(bytes, body) }
            guard size <= bytes.count - body.end - 2 else { return nil }
            body.content += bytes[body.end..<(body.end + size)]
            body.end += size
            guard bytes[body.end] == 0x0D, bytes[body.end + 1] == 0x0A else { return nil }
            body.end += 2
        }
    }

    private static func trailers(_ bytes: [UInt8], _ body: Body) -> Body? {
        var body = body
        while let line = self.line(bytes, from: body.end) {
            let isEmpty = line == body.end
            body.end = line + 2
            if isEmpty { return body }
            body.isPlain = false
        }
        return nil
    }

    /// The position of the next line break.
    private static func line(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        while index + 1 < bytes.count {
            if bytes[index] == 0x0D, bytes[index + 1] == 0x0A { return index }
            if bytes[index] == 0x0D || bytes[index] == 0x0A { return nil }
            index += 1
        }
        return nil
    }

    /// The bytes between a size and its line break must begin like an extension.
    private static func mayFollow(_ rest: ArraySlice<UInt8>) -> Bool {
        rest.first { $0 != 0x20 && $0 != 0x09 }.map { $0 == 0x3B } ?? false
    }

    private static func size(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty else { return nil }
        var size = 0
        for digit in digits {
            guard size <= Int.max >> 4 else { return nil }
            size = size << 4 | (self.value(digit) ?? 0)
        }
        return size
    }

    private static func value(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46, 0x61...0x66: Int(byte | 0x20) - 0x57
        default: nil
        }
    }
}
