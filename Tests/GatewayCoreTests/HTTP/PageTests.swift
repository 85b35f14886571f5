import Testing

@Suite("The built-in page")
struct PageTests {
    private func scene() throws -> GatewayScene {
        try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes:
              - {name: page, path: /, target: page}
              - {name: script, path: /sluice-chat.js, target: page}
            """)
    }

    @Test(arguments: ["/", "/sluice-chat.js"])
    func unchangedDocumentIsNotSentAgain(_ path: String) throws {
        let scene = try self.scene()
        let tag = try #require(try scene.fetch(path)["ETag"])
        // `*` is any version (RFC 9110 §13.1.2).
        for value in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
            let response = try scene.fetch(path, "If-None-Match: \(value)\r\n")
            #expect(response.status == 304 && response["ETag"] == tag && response.body == [], "\(value)")
        }
        #expect(try scene.fetch(path, "If-None-Match: \"x\"\r\n").status == 200)
        scene.finish()
    }

    @Test(arguments: ["/", "/sluice-chat.js"])
    func documentIsCompressedForClientsThatAcceptGzip(_ path: String) throws {
        let scene = try self.scene()
        let plain = try scene.fetch(path, "Accept-Encoding: br, gzip;q=0\r\n")
        #expect(plain["Content-Encoding"] == nil && plain["Vary"] == "Accept-Encoding")
        let packed = try scene.fetch(path, "Accept-Encoding: gzip, deflate, br, zstd\r\n")
        #expect(packed["Content-Encoding"] == "gzip" && packed["Vary"] == "Accept-Encoding")
        #expect(packed["Content-Type"] == plain["Content-Type"] && packed.body.count < plain.body.count / 2)
        #expect(packed.body.starts(with: [0x1F, 0x8B]))
        // RFC 1952: the length of the document is at the end.
        let length = packed.body.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(length == plain.body.count)
        if path.hasSuffix(".js") { #expect(packed.body.count < 4096) }
        let head = try scene.fetch(path, "Accept-Encoding: gzip\r\n", method: "HEAD")
        #expect(head["Content-Length"] == "\(packed.body.count)" && head["ETag"] == packed["ETag"])
        scene.finish()
    }

    @Test func eachRepresentationHasItsOwnValidator() throws {
        let scene = try self.scene()
        let plain = try #require(try scene.fetch("/")["ETag"])
        let packed = try #require(try scene.fetch("/", "Accept-Encoding: gzip\r\n")["ETag"])
        #expect(plain != packed)
        let unchanged = try scene.fetch("/", "Accept-Encoding: gzip\r\nIf-None-Match: \(packed)\r\n")
        #expect(unchanged.status == 304 && unchanged["ETag"] == packed && unchanged["Vary"] == "Accept-Encoding")
        #expect(try scene.fetch("/", "Accept-Encoding: gzip\r\nIf-None-Match: \(plain)\r\n").status == 200)
        #expect(try scene.fetch("/", "If-None-Match: \(packed)\r\n").status == 200)
        scene.finish()
    }
}
