import GatewayConfiguration
import Testing

@Suite("Patterns of hosts, origins and paths")
struct PatternTests {
    @Test(
        arguments: [
            ("/", []), ("/vnc", [.literal("vnc")]), ("/chat/{room}", [.literal("chat"), .parameter("room")]),
            ("/files/{rest...}", [.literal("files"), .rest("rest")]),
            ("/a%20b/%C3%A4", [.literal("a b"), .literal("ä")]),
            ("/{a}/{b}/c", [.parameter("a"), .parameter("b"), .literal("c")]),
        ] as [(String, [PathPattern.Segment])])
    func pathIsRead(text: String, segments: [PathPattern.Segment]) throws {
        #expect(try PathPattern(parsing: text).segments == segments)
    }

    @Test(arguments: [
        "", "vnc", "//", "/a//b", "/a/", "/{", "/}", "/{}", "/{a", "/a{b}", "/{a}b", "/{a}/{a}", "/{a...}/b", "/{1a}",
        "/{a-b}",
        "/{...}", "/a?b", "/a#b", "/a b", "/%", "/%4", "/%zz", "/%00", "/%ff", "/.", "/a/..", "/%2e%2e", "/a\u{7}",
        "/..;", "/..%5ca", "/a%2f..", "/%0d%0a", "/%252e%252e", "/a%7f",
        "/" + String(repeating: "a", count: 1024),
    ])
    func invalidPathIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try PathPattern(parsing: text) }
    }

    @Test func wildcardMatchesOneLabel() throws {
        let pattern = try ValueSyntax<HostPattern>.hostPattern.parse("*.Example.com")
        #expect(pattern.matches("a.example.COM"))
        #expect(!pattern.matches("example.com"))
        #expect(!pattern.matches("a.b.example.com"))
        #expect(!pattern.matches(".example.com"))
        #expect(!pattern.matches("aexample.com"))
        #expect(!pattern.matches(""))
        #expect(try ValueSyntax<HostPattern>.hostPattern.parse("Example.com").matches("eXample.com"))
    }

    @Test(arguments: ["", "*", "*.", "a.*.b", "**.a", "host:80", "http://host", "a b", "*.1.2.3.4"])
    func textThatIsNoHostPatternIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<HostPattern>.hostPattern.parse(text) }
    }

    @Test(arguments: [
        ("https://Example.com", "https://example.com"), ("http://a:80", "http://a"),
        ("https://a:8443", "https://a:8443"),
        ("https://*.a.b", "https://*.a.b"), ("http://[::1]:3000", "http://::1:3000"), ("app://local", "app://local"),
        ("*", "*"), ("null", "null"),
    ])
    func originIsReadInNormalForm(text: String, normal: String) throws {
        #expect(try ValueSyntax<OriginPattern>.originPattern.parse(text).description == normal)
    }

    @Test(arguments: [
        "", "example.com", "https://", "https://a/", "https://a/b", "https://a:x", "https://u@a", "**", "NULL", "*://a",
    ])
    func textThatIsNoOriginIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<OriginPattern>.originPattern.parse(text) }
    }

    @Test(arguments: [
        "Host: a", "connection: x", "Sec-WebSocket-Key: a", "X-Forwarded-For: a", "a b: c", ": c", "a", "a: b\r\nc: d",
        "a: \u{7F}",
    ])
    func reservedHeadersAreRefused(line: String) {
        #expect(throws: ValueSyntaxError.self) { try ValueSyntax<ExtraHeader>.headerLine.parse(line) }
    }

    @Test func headerLineIsReadIntoNameAndValue() throws {
        #expect(
            try ValueSyntax<ExtraHeader>.headerLine.parse("Authorization: Basic YTpi")
                == ExtraHeader(name: "Authorization", value: "Basic YTpi"))
        #expect(try ValueSyntax<ExtraHeader>.headerLine.parse("X-A:b: c") == ExtraHeader(name: "X-A", value: "b: c"))
        #expect(try ValueSyntax<ExtraHeader>.headerLine.parse("X-Empty:") == ExtraHeader(name: "X-Empty", value: ""))
    }
}
