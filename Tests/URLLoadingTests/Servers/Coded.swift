import Deflate

/// Responses with a content coding.
enum Coded {
    static func gzip(_ text: String, _ fields: [String] = []) -> Answer {
        .response(200, ["Content-Encoding: gzip"] + fields, self.deflated(Array(text.utf8), .gzip))
    }

    /// `deflate` as RFC 9110 defines it: in the zlib format.
    static func deflate(_ text: String) -> Answer {
        .response(200, ["Content-Encoding: deflate"], self.deflated(Array(text.utf8), .zlib))
    }

    /// `deflate` as some servers send it: without the zlib format.
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
