import Foundation
import Testing
import URLLoading

@Suite("Broken connections", .loading, .timeLimit(.minutes(20)))
struct BrokenConnectionTests {
    private static let answer = Answer.raw(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n"
    )

    enum ConnectionEnd: CaseIterable { case close, reset }

    @Test(arguments: ConnectionEnd.allCases)
    func incompleteResponseFailsTheTask(_ way: ConnectionEnd) async throws {
        let server = try await WebServer()
        let session = URLSession.test()
        let whole = Self.answer.bytes.count
        server.on("/") { request in
            Self.answer.broken(at: Int(request.query) ?? 0, by: way == .close ? .close : .reset)
        }
        for count in 0..<whole {
            let loaded = try await session.load(server.url("/?\(count)"))
            #expect(loaded.code == .networkConnectionLost && loaded.data == nil, "\(count) of \(whole)")
        }
        server.on("/", Self.answer)
        #expect(try await session.load(server.url()).text == "abcdefg")
        session.invalidateAndCancel()
    }

    @Test(arguments: ConnectionEnd.allCases)
    func brokenConnectionIsReportedOnceAndLast(_ way: ConnectionEnd) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            Self.answer.broken(at: Int(request.query) ?? 0, by: way == .close ? .close : .reset)
        }
        for count in stride(from: 0, to: Self.answer.bytes.count, by: 3) {
            let recorder = DataRecorder()
            let notes = try await recorder.run(server.url("/?\(count)"))
            #expect(notes.completions == 1 && recorder.eventsOfTheTask.last == "complete", "\(count)")
            #expect((notes.error as? URLError)?.code == .networkConnectionLost, "\(count)")
        }
    }

    @Test func handlerGetsTheResponseOfABrokenLoad() async throws {
        let whole = Answer.text("hello")
        let server = try await WebServer(["/": whole.broken(at: whole.bytes.count - 1, by: .close), "/early": .close])
        let session = URLSession.test()
        let loaded = try await session.load(server.url())
        #expect(loaded.code == .networkConnectionLost && loaded.status == 200 && loaded.data == nil)
        let download = Outcome<Loaded>()
        session.downloadTask(with: server.url()) { file, response, error in
            #expect(file == nil)
            download.give(Loaded(data: nil, response: response, error: error))
        }.resume()
        let downloaded = try await download.value()
        #expect(downloaded.status == 200 && downloaded.code == .networkConnectionLost)
        let early = try await session.load(server.url("/early"))
        #expect(early.code == .networkConnectionLost && early.response == nil)
        session.invalidateAndCancel()
    }

    @Test func connectionBrokenWithinARequestBodyFailsTheTask() async throws {
        let server = try await WebServer()
        server.onHead("/") { _ in .reset }
        let session = URLSession.test()
        let loaded = Outcome<Loaded>()
        session.uploadTask(with: .to(server.url(), "POST"), from: Data(count: 32 << 20)) {
            loaded.give(Loaded(data: $0, response: $1, error: $2))
        }.resume()
        #expect(try await loaded.value().code == .networkConnectionLost)
        session.invalidateAndCancel()
    }

    @Test func responseBeforeTheEndOfTheBodyIsDelivered() async throws {
        let server = try await WebServer()
        server.onHead("/") { _ in .text("too large", ["Connection: close"], status: 413) }
        let session = URLSession.test()
        let loaded = Outcome<Loaded>()
        session.uploadTask(with: .to(server.url(), "POST"), from: Data(count: 32 << 20)) {
            loaded.give(Loaded(data: $0, response: $1, error: $2))
        }.resume()
        #expect(try await loaded.value().status == 413)
        session.invalidateAndCancel()
    }

    @Test(.exceptForwarded) func connectionToAClosedPortIsRefused() async throws {
        let server = try ClosedPort()
        let session = URLSession.test()
        for method in ["GET", "POST"] {
            let error = try #require(try await session.load(.to(server.url(), method)).error as? URLError)
            #expect(error.code == .cannotConnectToHost && error.failingURL == server.url())
            #expect(error.userInfo[NSUnderlyingErrorKey] != nil)
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyDirect("a proxy looks the name up")) func unknownNameIsAFailure() async throws {
        let url = try #require(URL(string: "http://no-such-name.invalid/"))
        let session = URLSession.test()
        let code = try await session.load(url).code
        #expect([.cannotFindHost, .dnsLookupFailed].contains(code))
        session.invalidateAndCancel()
    }
}
