import GatewayConfiguration
import GatewayCore
import HTTPSemantics
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WireText

@Suite("Static files of a route")
struct StaticFileTests {
    private let folder: ServedFolder

    init() throws {
        self.folder = try ServedFolder()
    }

    private func scene(_ more: String = "", faults: FaultPlan = .calm) throws -> GatewayScene {
        try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes:
              - {name: files, path: "/{path...}", files: {directory: "\(self.folder.path)"\(more)}}
              - {name: echo, path: /echo, target: echo}
              - {name: docs, path: "/docs/{path...}", files: "\(self.folder.path)"}
            """, faults: faults)
    }

    @Test func filesHaveTheirTypeLengthAndValidators() throws {
        try self.folder.write("index.html", "<p>home").write("sub/a.css", "b {}")
        let scene = try self.scene()
        let home = try scene.fetch("/")
        #expect(home.status == 200 && home.text == "<p>home" && home["Content-Type"] == "text/html; charset=utf-8")
        #expect(home["X-Content-Type-Options"] == "nosniff" && home["Cache-Control"] == "no-cache")
        #expect(home["Accept-Ranges"] == "bytes" && home["Vary"] == "Accept-Encoding" && home["Last-Modified"] != nil)
        let style = try scene.fetch("/sub/a.css?v=3")
        #expect(style.text == "b {}" && style["Content-Type"] == "text/css; charset=utf-8")
        let head = try scene.fetch("/sub/a.css", method: "HEAD")
        #expect(head["Content-Length"] == "4" && head["ETag"] == style["ETag"] && head.body == [])
        let tag = try #require(home["ETag"])
        let unchanged = try scene.fetch("/", "If-None-Match: \(tag)\r\n")
        #expect(unchanged.status == 304 && unchanged["ETag"] == tag && unchanged["Content-Length"] == nil)
        #expect(try scene.fetch("/", "If-Match: \"x\"\r\n").status == 412)
        scene.finish()
    }

    @Test func fieldsOfTheRouteAreInResponsesWithFiles() throws {
        try self.folder.write("index.html", "<p>home").write("sub/a.css", "b {}")
        let scene = try self.scene(
            ", listing: true, headers: [\"Content-Security-Policy: default-src 'self'\", 'Link: <a>', 'Link: <b>']")
        let home = try scene.fetch("/")
        let tag = try #require(home["ETag"])
        let responses = [
            home, try scene.fetch("/", "If-None-Match: \(tag)\r\n"), try scene.fetch("/", "Range: bytes=0-1\r\n"),
            try scene.fetch("/sub"), try scene.fetch("/sub/a.css", method: "HEAD"),
        ]
        #expect(responses.map(\.status) == [200, 304, 206, 301, 200])
        for response in responses {
            #expect(response.fields.values("Content-Security-Policy") == ["default-src 'self'"])
            #expect(response.fields.values("Link") == ["<a>", "<b>"])
        }
        // Both apply in a browser.
        #expect(try scene.fetch("/sub/").fields.values("Content-Security-Policy").count == 2)
        #expect(try scene.fetch("/none")["Link"] == nil)
        #expect(try scene.fetch("/docs/")["Link"] == nil)
        scene.finish()
    }

    @Test func changeInTheFutureIsDatedNow() throws {
        try self.folder.write("a.txt", "a").setChange(of: "a.txt", in: 86_400)
        let scene = try self.scene()
        let response = try scene.fetch("/a.txt")
        let now = try #require(response["Date"].flatMap { HTTPDate($0, now: HTTPDate(seconds: 0)) })
        let changed = try #require(response["Last-Modified"].flatMap { HTTPDate($0, now: now) })
        #expect(changed <= now)
        // The date names no version, but the tag does.
        let range = "Range: bytes=0-0\r\n"
        #expect(try scene.fetch("/a.txt", "\(range)If-Range: \(changed.formatted)\r\n").status == 200)
        #expect(try scene.fetch("/a.txt", "\(range)If-Range: \(response["ETag"] ?? "")\r\n").status == 206)
        scene.finish()
    }

    @Test func directoriesLeadToTheirIndex() throws {
        try self.folder.write("index.html", "top").write("sub/index.html", "sub").write("empty/x.txt", "x")
        let scene = try self.scene()
        #expect(try scene.fetch("/sub/").text == "sub")
        let redirect = try scene.fetch("/sub?a=b")
        #expect(redirect.status == 301 && redirect["Location"] == "./sub/?a=b")
        #expect(try scene.fetch("/docs")["Location"] == "./docs/")
        #expect(try scene.fetch("/docs/").text == "top")
        #expect(try scene.fetch("/empty/").status == 404)
        #expect(try scene.fetch("/index.html/").status == 404)
        #expect(try scene.fetch("/index.html/x").status == 404)
        scene.finish()
    }

    @Test func directoriesAreListedOnlyIfAsked() throws {
        try self.folder.write("a <b>&.txt", "x").write(".hidden", "x").write("sub/y", "y").write("c:d.txt", "x")
        let scene = try self.scene(", listing: true")
        let listing = try scene.fetch("/")
        #expect(listing.status == 200 && listing["Content-Type"] == "text/html; charset=utf-8")
        #expect(listing.text.contains("<a href=\"./a%20%3Cb%3E%26.txt\">a &lt;b&gt;&amp;.txt</a>"))
        #expect(listing.text.contains("<a href=\"./sub/\">sub/</a>") && !listing.text.contains("hidden"))
        #expect(listing.text.contains("<a href=\"./c%3Ad.txt\">c:d.txt</a>") && !listing.text.contains("../"))
        #expect(try scene.fetch("/sub/").text.contains("<a href=\"../\">"))
        #expect(try scene.fetch("/none/").status == 404)
        scene.finish()
    }

    @Test func linksAreFollowedWithinTheDirectoryOnly() throws {
        try self.folder.write("real/a.txt", "a")
        let outside = try ServedFolder().write("secret.txt", "secret")
        try self.folder.link("inner.txt", to: "real/a.txt")
        try self.folder.link("dir", to: "real")
        try self.folder.link("out.txt", to: "\(outside.path)/secret.txt")
        try self.folder.link("absolute.txt", to: "\(self.folder.path)/real/a.txt")
        try self.folder.link("up", to: "../\(outside.path.split(separator: "/").last ?? "")")
        try self.folder.link("loop", to: "loop")
        let scene = try self.scene()
        #expect(try scene.fetch("/inner.txt").text == "a")
        #expect(try scene.fetch("/dir/a.txt").text == "a")
        for target in ["/out.txt", "/absolute.txt", "/up/secret.txt", "/loop", "/up"] {
            let response = try scene.fetch(target)
            #expect(response.status == 404 && !response.text.contains("secret"), "\(target)")
        }
        scene.finish()
    }

    @Test func rangesGiveTheirParts() throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try self.folder.write("a.bin", bytes)
        let scene = try self.scene()
        let one = try scene.fetch("/a.bin", "Range: bytes=10-19\r\n")
        #expect(one.status == 206 && one.body == Array(bytes[10..<20]) && one["Content-Range"] == "bytes 10-19/100000")
        #expect(try scene.fetch("/a.bin", "Range: bytes=99990-\r\n").body == Array(bytes[99_990...]))
        let none = try scene.fetch("/a.bin", "Range: bytes=100000-\r\n")
        #expect(none.status == 416 && none["Content-Range"] == "bytes */100000")
        let stale = try scene.fetch("/a.bin", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n")
        #expect(stale.status == 200 && stale.body == bytes)
        let tag = try #require(one["ETag"])
        #expect(try scene.fetch("/a.bin", "Range: bytes=0-1\r\nIf-Range: \(tag)\r\n").status == 206)
        #expect(try scene.fetch("/a.bin", "Range: bytes=0-1\r\n", method: "HEAD").status == 200)
        scene.finish()
    }

    @Test func severalRangesComeAsMultipart() throws {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        try self.folder.write("a.bin", bytes)
        let scene = try self.scene()
        let response = try scene.fetch("/a.bin", "Range: bytes=0-9, -5\r\n")
        let type = try #require(response["Content-Type"])
        #expect(response.status == 206 && type.hasPrefix("multipart/byteranges; boundary="))
        let boundary = type.dropFirst("multipart/byteranges; boundary=".count)
        func part(_ range: Range<Int>) -> [UInt8] {
            Array(
                "\r\n--\(boundary)\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/1000\r\n\r\n"
                    .utf8) + bytes[range]
        }
        #expect(response.body == part(0..<10) + part(995..<1000) + Array("\r\n--\(boundary)--\r\n".utf8))
        scene.finish()
    }

    @Test func compressedCopiesAreSentToThoseWhoAcceptThem() throws {
        try self.folder.write("a.js", "plain").write("a.js.gz", "gzipped").write("a.js.br", "brotli")
        try self.folder.write("b.js", "plain").write("c.png", "plain").write("c.png.gz", "gzipped")
        let scene = try self.scene()
        let accepts = "Accept-Encoding: gzip, br\r\n"
        let best = try scene.fetch("/a.js", accepts)
        #expect(best.text == "brotli" && best["Content-Encoding"] == "br" && best["Vary"] == "Accept-Encoding")
        #expect(best["Content-Type"] == "text/javascript; charset=utf-8")
        let second = try scene.fetch("/a.js", "Accept-Encoding: gzip\r\n")
        #expect(second.text == "gzipped" && second["Content-Encoding"] == "gzip")
        let plain = try scene.fetch("/a.js")
        #expect(plain.text == "plain" && plain["Content-Encoding"] == nil && plain["Vary"] == "Accept-Encoding")
        #expect(Set([best["ETag"], second["ETag"], plain["ETag"]]).count == 3)
        #expect(try scene.fetch("/b.js", accepts)["Content-Encoding"] == nil)
        #expect(try scene.fetch("/c.png", accepts).text == "plain")
        scene.finish()
    }

    @Test func compressedCopyThatIsOlderIsNotSent() throws {
        try self.folder.write("a.js.gz", "gzipped")
        let deadline = ContinuousClock.now.advanced(by: .seconds(10))
        // The file system's clock advances in steps.
        repeat {
            try self.folder.write("a.js", "plain")
        } while try self.isOlder("a.js", "a.js.gz") && ContinuousClock.now < deadline
        let scene = try self.scene()
        #expect(try scene.fetch("/a.js", "Accept-Encoding: gzip\r\n").text == "plain")
        scene.finish()
    }

    @Test(arguments: [(0.5, true), (0, true), (0.25, false), (-1, false), (-0.5, false)])
    func compressedCopyMayHaveTheTimeInWholeSeconds(_ fraction: Double, _ isSent: Bool) throws {
        try self.folder.write("a.js", "plain").setChange(of: "a.js", at: 1_700_000_000.5)
        try self.folder.write("a.js.gz", "gzipped").setChange(of: "a.js.gz", at: 1_700_000_000 + fraction)
        let scene = try self.scene()
        let accepts = "Accept-Encoding: gzip\r\n"
        #expect(try scene.fetch("/a.js", accepts).text == (isSent ? "gzipped" : "plain"))
        scene.finish()
    }

    private func isOlder(_ name: String, _ other: String) throws -> Bool {
        let folder = try OpenFolder(self.folder.path)
        return try folder.open(name).modified <= folder.open(other).modified
    }

    @Test func cacheControlIsThatOfTheRoute() throws {
        try self.folder.write("a.txt", "a")
        let scene = try self.scene(", cache-control: \"public, max-age=60\"")
        #expect(try scene.fetch("/a.txt")["Cache-Control"] == "public, max-age=60")
        scene.finish()
    }

    @Test(arguments: [
        "/.git/config", "/a%2fb", "/..%2f..%2fetc/passwd", "/%5c..%5cetc", "/sub//a", "/none", "/sub/.x",
    ])
    func otherNamesAreNotFound(_ target: String) throws {
        try self.folder.write("sub/.x", "x").write(".git/config", "x").write("sub/a", "a")
        let scene = try self.scene()
        let response = try scene.fetch(target)
        #expect(response.status == 404 || response.status == 400)
        scene.finish()
    }

    @Test func directoryThatWasReplacedIsServed() throws {
        try self.folder.write("a.txt", "old")
        let scene = try self.scene()
        #expect(try scene.fetch("/a.txt").text == "old")
        try self.folder.replace().write("a.txt", "new")
        #expect(try scene.fetch("/a.txt").text == "new")
        try self.folder.remove()
        #expect(try scene.fetch("/a.txt").status == 404)
        scene.finish()
    }

    @Test func emptyFileHasAnEmptyBody() throws {
        try self.folder.write("a.txt", "")
        let scene = try self.scene()
        let response = try scene.fetch("/a.txt")
        #expect(response.status == 200 && response["Content-Length"] == "0")
        scene.finish()
    }

    // MARK: Large files

    @Test(arguments: [FaultPlan.calm, .harsh])
    func largeFileArrivesWholeAndItsMemoryIsBounded(_ faults: FaultPlan) throws {
        let bytes = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 / 17) }
        try self.folder.write("a.bin", bytes)
        let scene = try self.scene(faults: faults)
        let (peer, reader) = try scene.web("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.isReading = false
        _ = scene.network.run(for: .seconds(1))
        #expect((1...(256 << 10)).contains(scene.gateway.parts[0].largestQueue(onRoute: "files")))
        peer.isReading = true
        let response = try #require(reader.next(scene))
        #expect(response.body == bytes)
        scene.finish()
    }

    /// The loop shares its turns: others are served while a large file is sent.
    @Test func largeFilesDelayNoOthers() throws {
        try self.folder.write("a.bin", [UInt8](repeating: 1, count: 32 << 20)).write("b.txt", "b")
        let scene = try self.scene()
        let downloads = try (0..<4).map { _ in try scene.web("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n") }
        #expect(scene.run { downloads.allSatisfy { $0.peer.received.count > 1 << 20 } })
        #expect(try scene.fetch("/b.txt").text == "b")
        #expect(downloads.allSatisfy { $0.peer.received.count < 32 << 20 })
        for index in downloads.indices { #expect(downloads[index].reader.next(scene)?.body.count == 32 << 20) }
        scene.finish()
    }

    @Test func fileThatShrinksEndsTheConnection() throws {
        try self.folder.write("a.bin", [UInt8](repeating: 1, count: 4 << 20))
        let scene = try self.scene()
        let (peer, _) = try scene.web("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.isReading = false
        _ = scene.network.run(for: .seconds(1))
        try self.folder.truncate("a.bin", to: 1 << 20)
        peer.isReading = true
        #expect(scene.run { peer.failure == .reset } && !peer.sawEnd)
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/relaying/system"])
        scene.finish()
    }

    @Test func clientThatLeavesClosesTheFile() throws {
        try self.folder.write("a.bin", [UInt8](repeating: 1, count: 4 << 20))
        let scene = try self.scene()
        let (peer, _) = try scene.web("GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(scene.run { peer.received.count > 100_000 })
        peer.reset()
        scene.settle()
        #expect(scene.gateway.liveCount == 0)
        #expect(scene.gateway.endings.map(\.reason) == ["downstream/relaying/reset"])
        scene.finish()
    }
}

extension FaultPlan {
    /// Short reads and writes, small segments.
    fileprivate static let harsh = {
        var plan = FaultPlan()
        plan.segmentSize = 1000...9000
        (plan.shortRead, plan.shortWrite, plan.spuriousWouldBlock) = (0.2, 0.2, 0.1)
        return plan
    }()
}
