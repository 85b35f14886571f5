import Foundation
import Testing
import URLLoading

@Suite("Bytes as a sequence", .loading, .timeLimit(.minutes(20)))
struct AsyncBytesTests {
    @Test func bytesBeginWithTheHead() async throws {
        let gate = Gate()
        let server = try await WebServer([
            "/": .head(200, ["Content-Length: 6"]).then(.send(Array("abc".utf8)), .wait(gate), .send(Array("def".utf8)))
        ])
        let session = URLSession.test()
        let (bytes, response) = try await session.bytes(from: server.url())
        #expect((response as? HTTPURLResponse)?.statusCode == 200 && !gate.isOpen)
        var iterator = bytes.makeAsyncIterator()
        for letter in "abc".utf8 { #expect(try await iterator.next() == letter) }
        #expect(bytes.task.state == .running && bytes.task.response != nil)
        gate.open()
        for letter in "def".utf8 { #expect(try await iterator.next() == letter) }
        #expect(try await iterator.next() == nil)
        session.invalidateAndCancel()
    }

    @Test func bytesComeForARequest() async throws {
        let server = try await WebServer(["/": .chunked(["one", "two"])])
        let session = URLSession.test()
        let (bytes, _) = try await session.bytes(for: .to(server.url(), "GET", ["X-A": "b"]))
        var all: [UInt8] = []
        for try await byte in bytes { all.append(byte) }
        #expect(all == Array("onetwo".utf8) && server.requests.first?["X-A"] == "b")
        session.invalidateAndCancel()
    }

    @Test func linesComeFromBytes() async throws {
        let text = "one\r\ntwo\n\n  three  \rfour\u{2028}five\u{85}six"
        let server = try await WebServer()
        // Split everywhere, also within a line break and within a character.
        server.on(
            "/bytes",
            Answer(
                Answer.head(200, ["Transfer-Encoding: chunked"]).steps
                    + text.utf8.map { .send(Answer.chunk([$0])) } + [.send(Array("0\r\n\r\n".utf8))]))
        let session = URLSession.test()
        var lines: [String] = []
        for try await line in try await session.bytes(from: server.url("/bytes")).0.lines { lines.append(line) }
        #expect(lines == ["one", "two", "  three  ", "four", "five", "six"])
        session.invalidateAndCancel()
    }

    @Test func charactersAndScalarsComeFromBytes() async throws {
        let text = "aé👨‍👩‍👧e\u{301}\u{1F1E9}\u{1F1EA}z"
        let server = try await WebServer()
        server.on(
            "/",
            Answer(
                Answer.head(200, ["Transfer-Encoding: chunked"]).steps
                    + text.utf8.map { .send(Answer.chunk([$0])) } + [.send(Array("0\r\n\r\n".utf8))]))
        let session = URLSession.test()
        var characters: [Character] = []
        for try await one in try await session.bytes(from: server.url()).0.characters { characters.append(one) }
        #expect(characters == Array(text))
        var scalars: [Unicode.Scalar] = []
        for try await one in try await session.bytes(from: server.url()).0.unicodeScalars { scalars.append(one) }
        #expect(scalars == Array(text.unicodeScalars))
        session.invalidateAndCancel()
    }

    @Test func errorIsThrownAfterTheReceivedBytes() async throws {
        let server = try await WebServer(["/": .text("abcdef").broken(at: 69, by: .close)])
        let session = URLSession.test()
        let (bytes, _) = try await session.bytes(from: server.url())
        let error = await #expect(throws: URLError.self) { for try await _ in bytes {} }
        #expect(error?.code == .networkConnectionLost && bytes.task.error != nil)
        session.invalidateAndCancel()
    }

    @Test func releasedBytesCancelTheirTask() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 10"]).then(.send([1, 2]), .hang)])
        let session = URLSession.test()
        do {
            let (bytes, _) = try await session.bytes(from: server.url())
            var iterator = bytes.makeAsyncIterator()
            #expect(try await iterator.next() == 1)
        }
        #expect(await server.hasLost(0))
        session.invalidateAndCancel()
    }

    @Test func bytesEndWithTheTask() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 10"]).then(.send([1, 2]), .hang)])
        let session = URLSession.test()
        let (bytes, _) = try await session.bytes(from: server.url())
        var iterator = bytes.makeAsyncIterator()
        _ = try await iterator.next()
        bytes.task.cancel()
        var error: (any Error)?
        do { while try await iterator.next() != nil {} } catch let thrown { error = thrown }
        #expect((error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func unreadBytesHoldTheServerBack() async throws {
        let server = try await WebServer()
        server.on("/", .response(200, [], [UInt8](repeating: 7, count: 64 << 20)))
        let session = URLSession.test()
        let (bytes, _) = try await session.bytes(from: server.url())
        var iterator = bytes.makeAsyncIterator()
        #expect(try await iterator.next() == 7)
        // Buffered: the sockets' buffers and a bounded amount, much less than all.
        for _ in 0..<200 { await Task.yield() }
        #expect(bytes.task.countOfBytesReceived < 16 << 20)
        var count = 1
        while try await iterator.next() != nil, count < 10_000 { count += 1 }
        #expect(count == 10_000)
        bytes.task.cancel()
        session.invalidateAndCancel()
    }

    @Test(.onlyPlain("the shared session trusts the system's roots alone"))
    func bytesComeForAURL() async throws {
        let server = try await WebServer(["/": .text("one\ntwo\n")])
        var lines: [String] = []
        for try await line in server.url().lines { lines.append(line) }
        #expect(lines == ["one", "two"])
        var count = 0
        for try await _ in server.url().resourceBytes { count += 1 }
        #expect(count == 8)
    }
}
