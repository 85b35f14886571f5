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
}
