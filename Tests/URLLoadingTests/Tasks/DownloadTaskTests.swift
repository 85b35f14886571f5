import Foundation
import Testing
import URLLoading

@Suite("Download tasks", .loading, .timeLimit(.minutes(20)))
struct DownloadTaskTests {
    struct Downloaded: Sendable {
        let url: URL?
        let content: Data?
        let response: URLResponse?
        let error: (any Error)?
    }

    private func run(_ make: (@escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void) -> URLSessionDownloadTask)
        async throws -> Downloaded
    {
        let outcome = Outcome<Downloaded>()
        make { url, response, error in
            let content = url.flatMap { try? Data(contentsOf: $0) }
            outcome.give(Downloaded(url: url, content: content, response: response, error: error))
        }.resume()
        return try await outcome.value()
    }

    @Test func downloadedFileIsGoneAfterTheHandler() async throws {
        let server = try await WebServer(["/country.txt": .text("A country")])
        let session = URLSession.test()
        let byURL = try await self.run { session.downloadTask(with: server.url("/country.txt"), completionHandler: $0) }
        let byRequest = try await self.run {
            session.downloadTask(with: .to(server.url("/country.txt")), completionHandler: $0)
        }
        let settled = Gate()
        session.delegateQueue.addOperation { settled.open() }
        await settled.pass()
        for downloaded in [byURL, byRequest] {
            #expect(downloaded.content == Data("A country".utf8) && downloaded.error == nil)
            #expect((downloaded.response as? HTTPURLResponse)?.statusCode == 200)
            let url = try #require(downloaded.url)
            #expect(url.isFileURL && !FileManager.default.fileExists(atPath: url.path))
        }
        session.invalidateAndCancel()
    }

    @Test func delegateReceivesTheTemporaryFile() async throws {
        let body = String(repeating: "all work ", count: 50_000)
        let server = try await WebServer(["/": .text(body)])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.downloadTask(with: server.url())
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.fileContent == Data(body.utf8) && notes.error == nil)
        #expect(notes.written.last?.total == 450_000 && notes.written.allSatisfy { $0.expected == 450_000 })
        #expect(notes.written.map(\.now).reduce(0, +) == 450_000)
        #expect(zip(notes.written, notes.written.dropFirst()).allSatisfy { $0.total + $1.now == $1.total })
        #expect(recorder.eventsOfTheTask == ["created", "written", "downloaded", "metrics", "complete"])
        #expect(task.countOfBytesReceived == 450_000 && task.countOfBytesExpectedToReceive == 450_000)
        let file = try #require(notes.file)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        session.invalidateAndCancel()
    }

    @Test func programMayMoveTheFile() async throws {
        let server = try await WebServer(["/": .text("mine")])
        let folder = try TemporaryFolder()
        let place = folder.url.appendingPathComponent("kept")
        var policies = Policies()
        policies.downloaded = { try? FileManager.default.moveItem(at: $0, to: place) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(try await recorder.end().error == nil)
        #expect(try Data(contentsOf: place) == Data("mine".utf8))
        session.invalidateAndCancel()
    }

    @Test func downloadCountsDecodedBytes() async throws {
        let server = try await WebServer(["/": Coded.gzip("Hello World!")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.fileContent == Data("Hello World!".utf8))
        #expect(notes.written.last?.total == 12 && notes.written.last?.expected == -1)
        session.invalidateAndCancel()
    }

    @Test func emptyResponseMakesAFile() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 0"])])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.fileContent == Data() && notes.error == nil)
        session.invalidateAndCancel()
    }

    @Test(arguments: [404, 500])
    func bodyOfARefusalIsDownloaded(_ status: Int) async throws {
        let server = try await WebServer(["/": .text("no", status: status)])
        let session = URLSession.test()
        let downloaded = try await self.run { session.downloadTask(with: server.url(), completionHandler: $0) }
        #expect(downloaded.content == Data("no".utf8) && downloaded.error == nil)
        #expect((downloaded.response as? HTTPURLResponse)?.statusCode == status)
        session.invalidateAndCancel()
    }

    @Test func failureLeavesNoFile() async throws {
        let server = try await WebServer(["/": .text("half of it").broken(at: 70, by: .close)])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.error is URLError && notes.file == nil && recorder.log.count("downloaded") == 0)
        session.invalidateAndCancel()
    }

    @Test func handlerReplacesTheDelegate() async throws {
        let server = try await WebServer(["/": .text("mine")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let downloaded = try await self.run { session.downloadTask(with: server.url(), completionHandler: $0) }
        #expect(downloaded.content == Data("mine".utf8))
        #expect(recorder.eventsOfTheTask.allSatisfy { ["created", "metrics"].contains($0) })
        session.invalidateAndCancel()
    }

    @Test func downloadFollowsRedirects() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("found")])
        let session = URLSession.test()
        let downloaded = try await self.run { session.downloadTask(with: server.url(), completionHandler: $0) }
        #expect(downloaded.content == Data("found".utf8) && downloaded.response?.url == server.url("/there"))
        session.invalidateAndCancel()
    }
}
