import ByteKernels
import Deflate
import WireText

/// Answers with the page of `sluice serve` and its script, which are part of the program.
final class PageResponder: HTTPResponder {
    static let shared = PageResponder()

    /// A document as it is sent.
    private struct Representation {
        let body: [UInt8]
        let entityTag: String
        let coding: FileCoding?

        init(_ body: [UInt8], coding: FileCoding? = nil) {
            self.body = body
            self.coding = coding
            let digest = MessageDigest.of(body, by: .sha256)
            self.entityTag = "\"\(Base64.encoded(Array(digest.prefix(12))))\""
        }
    }

    /// One document with its fields.
    private struct Document {
        let plain: Representation
        /// `nil` without memory for a compressor.
        let compressed: Representation?
        let fields: [FieldLine]

        init(_ text: String, type: String, more: [FieldLine] = []) {
            let body = Array(text.utf8)
            self.plain = Representation(body)
            self.compressed = Deflater(DeflaterSettings(format: .gzip, level: 9)).map { deflater in
                var compressed: [UInt8] = []
                body.withRawSpan { deflater.deflate($0, flush: .finish, appendingTo: &compressed) }
                return Representation(compressed, coding: .gzip)
            }
            self.fields =
                [
                    FieldLine("Cache-Control", "no-cache"), FieldLine("Vary", "Accept-Encoding"),
                    FieldLine("X-Content-Type-Options", "nosniff"), FieldLine("Referrer-Policy", "no-referrer"),
                    FieldLine("Content-Type", type),
                ] + more
        }
    }

    private let page = Document(
        PageText.page, type: "text/html; charset=utf-8",
        more: [FieldLine("Content-Security-Policy", PageText.policy)])
    private let script = Document(ChatScript.text, type: "text/javascript; charset=utf-8")

    let methods = ["GET", "HEAD"]
    let bodyLimit = 0

    func respond(to request: PlainRequest, _ exchange: PlainExchange) {
        let path = request.head.target.prefix { $0 != "?" }
        let document = path.hasSuffix(".js") ? self.script : self.page
        let takesGzip = FileCoding.accepted(request.head.fields).contains(.gzip)
        let chosen = takesGzip ? document.compressed ?? document.plain : document.plain
        let fields = [FieldLine("ETag", chosen.entityTag)] + document.fields
        let tags = request.head.fields.list("If-None-Match")
        guard !tags.contains(where: { ["*", chosen.entityTag, "W/" + chosen.entityTag].contains($0) }) else {
            _ = exchange.begin(304, fields, .none)
            return
        }
        let coding = chosen.coding.map { [FieldLine("Content-Encoding", $0.rawValue)] } ?? []
        exchange.respond(200, fields + coding, body: chosen.body)
    }
}
