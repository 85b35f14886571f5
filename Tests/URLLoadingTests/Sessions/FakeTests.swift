import Foundation
import Testing
import URLLoading

/// What a program asks of its HTTP client: the requirements are those of URLSession's methods, without a delegate.
private protocol LoadingClient: Sendable {
    func data(for request: URLRequest) async throws -> (Data, URLResponse)
    func data(from url: URL) async throws -> (Data, URLResponse)
    func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse)
    func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse)
    func upload(resumeFrom resumeData: Data) async throws -> (Data, URLResponse)
    func download(for request: URLRequest) async throws -> (URL, URLResponse)
    func download(from url: URL) async throws -> (URL, URLResponse)
    func download(resumeFrom resumeData: Data) async throws -> (URL, URLResponse)
    func bytes(for request: URLRequest) async throws -> (URLSession.AsyncBytes, URLResponse)
    func bytes(from url: URL) async throws -> (URLSession.AsyncBytes, URLResponse)
}

extension URLSession: LoadingClient {}

/// Programs replace sessions and tasks in their own tests: by a protocol, or by subclasses that load nothing.
@Suite("Fakes of sessions and tasks", .loading, .timeLimit(.minutes(20)))
struct FakeTests {
    @available(*, deprecated)
    final class FakeTask: URLSessionDataTask, @unchecked Sendable {
        let log: EventLog

        init(_ log: EventLog) { self.log = log }

        override func resume() { self.log.add("resume") }
        override func cancel() { self.log.add("cancel") }
    }

    @available(*, deprecated)
    final class FakeUpload: URLSessionUploadTask, @unchecked Sendable { override init() {} }
    @available(*, deprecated)
    final class FakeDownload: URLSessionDownloadTask, @unchecked Sendable { override init() {} }
    @available(*, deprecated)
    final class FakeStream: URLSessionStreamTask, @unchecked Sendable { override init() {} }
    @available(*, deprecated)
    final class FakeWebSocket: URLSessionWebSocketTask, @unchecked Sendable { override init() {} }
    @available(*, deprecated)
    final class FakeAnyTask: URLSessionTask, @unchecked Sendable { override init() {} }

    @available(*, deprecated)
    final class FakeSession: URLSession, @unchecked Sendable {
        let log = EventLog()

        override init() { super.init() }

        override func dataTask(
            with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> URLSessionDataTask {
            self.log.add("made")
            completionHandler(Data("fake".utf8), nil, nil)
            return FakeTask(self.log)
        }

        override func dataTask(with request: URLRequest) -> URLSessionDataTask {
            self.log.add("made")
            return FakeTask(self.log)
        }
    }

    /// Has an initializer because its superclass has one without parameters.
    @available(*, deprecated)
    final class SilentSession: URLSession, @unchecked Sendable {}

    @Test func sessionIsAClientByItsOwnMethods() async throws {
        let server = try await WebServer()
        server.on("/") { .response(200, [], $0.body.isEmpty ? Array("hello".utf8) : $0.body) }
        let session = URLSession.test()
        let client: any LoadingClient = session
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data("file".utf8).write(to: file)
        let put = URLRequest.to(server.url(), "PUT")
        #expect(try await client.data(for: .to(server.url())).0 == Data("hello".utf8))
        #expect(try await client.data(from: server.url()).0 == Data("hello".utf8))
        #expect(try await client.upload(for: put, from: Data("up".utf8)).0 == Data("up".utf8))
        #expect(try await client.upload(for: put, fromFile: file).0 == Data("file".utf8))
        let (byRequest, _) = try await client.download(for: .to(server.url()))
        let (byURL, _) = try await client.download(from: server.url())
        for url in [byRequest, byURL] {
            #expect(try Data(contentsOf: url) == Data("hello".utf8))
            try FileManager.default.removeItem(at: url)
        }
        let (ofRequest, _) = try await client.bytes(for: .to(server.url()))
        let (ofURL, _) = try await client.bytes(from: server.url())
        for bytes in [ofRequest, ofURL] {
            #expect(try await bytes.lines.first { _ in true } == "hello")
        }
        await #expect(throws: URLError.self) { try await client.upload(resumeFrom: Data([1])) }
        await #expect(throws: URLError.self) { try await client.download(resumeFrom: Data([1])) }
        session.invalidateAndCancel()
    }

    @available(*, deprecated)
    @Test func fakeSessionMakesTheProgramsTasks() throws {
        let url = try #require(URL(string: "http://localhost/"))
        let session = FakeSession()
        let data = Outcome<Data?>()
        session.dataTask(with: url) { bytes, _, _ in data.give(bytes) }.resume()
        session.dataTask(with: URLRequest(url: url)).cancel()
        #expect(data.now == Data("fake".utf8))
        #expect(session.log.names == ["made", "resume", "made", "cancel"])
        session.invalidateAndCancel()
    }

    @available(*, deprecated)
    @Test(.onlyPlain("a session without a configuration trusts the system's roots alone"))
    func sessionsOwnMethodsMakeNoTasksOfASubclass() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = FakeSession()
        #expect(try await session.data(from: server.url()).0 == Data("hello".utf8))
        #expect(try await session.data(for: .to(server.url())).0 == Data("hello".utf8))
        #expect(session.log.names == [])
        session.invalidateAndCancel()
    }

    @available(*, deprecated)
    @Test func fakeTasksDoNothing() {
        for task in [FakeUpload(), FakeDownload(), FakeStream(), FakeWebSocket(), FakeAnyTask()] as [URLSessionTask] {
            task.resume()
            task.suspend()
            task.cancel()
            #expect(task.originalRequest == nil && task.error == nil && task.taskIdentifier == 0)
        }
        #expect(SilentSession().delegate == nil)
    }
}
