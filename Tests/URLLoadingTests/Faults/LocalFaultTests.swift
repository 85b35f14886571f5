import Foundation
import Testing
import URLLoading

@Suite("Local failures", .loading, .timeLimit(.minutes(20)))
struct LocalFaultTests {
    @Test func shrinkingFileFailsTheUpload() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data(count: 64 << 20).write(to: file)
        let reading = Gate()
        let server = try await WebServer()
        // Without an answer: one that came before the rest of the body would be a success.
        server.onHead("/") { _ in Answer([.stopReading(reading), .hang]) }
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.uploadTask(with: .to(server.url(), "PUT"), fromFile: file).resume()
        #expect(await recorder.log.has("sent"))
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: 1000)
        try handle.close()
        reading.open()
        let notes = try await recorder.end()
        #expect(notes.error is URLError && notes.completions == 1)
        session.invalidateAndCancel()
    }

    @Test func uploadOfADeletedFileIsCompleteOrFails() async throws {
        // An open file outlives its name: either the body is complete, or the task fails.
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data(count: 8 << 20).write(to: file)
        let server = try await WebServer(["/": .text("taken")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.uploadTask(with: .to(server.url(), "PUT"), fromFile: file).resume()
        try FileManager.default.removeItem(at: file)
        let notes = try await recorder.end()
        #expect(notes.error != nil || server.requests.first?.bodyCount == 8 << 20)
        session.invalidateAndCancel()
    }

    @Test(arguments: ["", "relative", "foobar://127.0.0.1/Nepal", "mailto:a@b.test", "http:///nohost", "ftp://h.test/"])
    func urlThatCannotBeLoadedIsRefused(_ text: String) async throws {
        let session = URLSession.test()
        var request = URLRequest(url: URL(filePath: "/"))
        request.url = text.isEmpty ? nil : URL(string: text)
        let loaded = try await session.load(request)
        let code = try #require(loaded.code)
        #expect([.unsupportedURL, .badURL, .cannotFindHost].contains(code))
        #expect(loaded.data == nil && loaded.response == nil)
        session.invalidateAndCancel()
    }

    @Test func failingURLIsNamedAsInFoundation() async throws {
        let session = URLSession.test()
        var request = URLRequest(url: URL(filePath: "/"))
        request.url = nil
        #expect(try await session.load(request).code == .unsupportedURL)
        let unknown = try #require(URL(string: "foobar://127.0.0.1:1/Nepal"))
        #expect(try await session.load(unknown).code == .unsupportedURL)
        if let odd = URL(string: "http://127.0.0.1:-1/Nepal") { #expect(try await session.load(odd).code == .badURL) }
        for place in ["127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:99999999999999999999", "[::1]:9999999999999999999"] {
            let url = try #require(URL(string: "http://\(place)/"))
            #expect(try await session.load(url).code == .badURL, "\(place)")
        }
        session.invalidateAndCancel()
    }

    @Test func requestWithControlCharactersIsRefused() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        for (name, value) in [("X-A", "b\r\nX-Evil: 1"), ("X-A\r\nX-Evil", "1"), ("X A", "b"), ("X-A", "b\0c")] {
            let request = URLRequest.to(server.url(), "GET", [name: value])
            _ = try await session.load(request)
        }
        for method in ["GET / HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET", "G ET", ""] {
            _ = try await session.load(.to(server.url(), method))
        }
        #expect(server.requests.allSatisfy { $0["X-Evil"] == nil && ["GET"].contains($0.method) })
        session.invalidateAndCancel()
    }

    @Test func unsupportedFeatureIsAnError() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let proxied = URLSession.test { $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1] }
        #expect(try await proxied.load(server.url()).code == .unsupportedURL)
        #expect(server.requests.isEmpty)
        proxied.invalidateAndCancel()
    }

    @Test func reservedFieldsOfARequestAreIgnored() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test {
            $0.httpAdditionalHeaders = [
                "Host": "evil.test", "WWW-Authenticate": "Basic x", "Connection": "close", "Content-Length": "9",
                "Transfer-Encoding": "chunked", "Proxy-Authorization": "x", "X-Kept": "1", 7: "odd", "X-Number": 7,
            ]
        }
        #expect(try await session.load(server.url()).text == "hello")
        let heard = try #require(server.requests.first)
        #expect(heard["Host"] == "127.0.0.1:\(server.port)" && heard["WWW-Authenticate"] == nil)
        #expect(heard["X-Kept"] == "1" && heard["Content-Length"] == nil && heard["Transfer-Encoding"] == nil)
        session.invalidateAndCancel()
    }
}
