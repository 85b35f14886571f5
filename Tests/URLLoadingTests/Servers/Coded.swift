import Deflate

/// Answers whose content is coded.
enum Coded {
    static func gzip(_ text: String, _ fields: [String] = []) -> Answer {
        .response(200, ["Content-Encoding: gzip"] + fields, self.deflated(Array(text.utf8), .gzip))
    }

    /// As the field's word is meant: in zlib's wrapping.
    static func deflate(_ text: String) -> Answer {
        .response(200, ["Content-Encoding: deflate"], self.deflated(Array(text.utf8), .zlib))
    }

    /// As some servers take it: without the wrapping.
    static func rawDeflate(_ text: String) -> Answer {
        .response(200, ["Content-Encoding: deflate"], self.deflated(Array(text.utf8), .raw))
    }

    static func deflated(_ bytes: [UInt8], _ format: DeflateFormat) -> [UInt8] {
        var coded: [UInt8] = []
        guard let deflater = Deflater(DeflaterSettings(format: format)) else { return [] }
        deflater.deflate(bytes.span.bytes, flush: .finish, appendingTo: &coded)
        return coded
    }
}
