import WireText

/// Answers with the page of `sluice serve` and its script, which are part of the program.
final class PageResponder: HTTPResponder {
    static let shared = PageResponder()

    /// One document with its fields.
    private struct Document {
        let body: [UInt8]
        let entityTag: String
        let fields: [FieldLine]

        init(_ text: String, type: String, more: [FieldLine] = []) {
            self.body = Array(text.utf8)
            let digest = MessageDigest.of(self.body, by: .sha256)
            self.entityTag = "\"\(Base64.encoded(Array(digest.prefix(12))))\""
            self.fields =
                [
                    FieldLine("ETag", self.entityTag), FieldLine("Cache-Control", "no-cache"),
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
        let tags = request.head.fields.list("If-None-Match")
        guard !tags.contains(where: { ["*", document.entityTag, "W/" + document.entityTag].contains($0) }) else {
            _ = exchange.begin(304, document.fields, .none)
            return
        }
        exchange.respond(200, document.fields, body: document.body)
    }
}
