import Foundation
import Testing
import URLLoading

@Suite("Resumed downloads", .loading, .timeLimit(.minutes(20)))
struct ResumedDownloadTests {
    static let whole = String(repeating: "0123456789", count: 10_000)

    static let good = ["ETag: \"v1\"", "Accept-Ranges: bytes"]

    /// Sends half of the content, then nothing.
    static func half(_ fields: [String] = good) -> Answer {
        .head(200, ["Content-Length: 100000"] + fields).then(.send(Array(self.whole.utf8.prefix(50_000))), .hang)
    }

    /// Serves the requested range.
    static func part(_ request: ReceivedRequest) -> Answer {
        let start = request["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
        let bytes = Array(self.whole.utf8.dropFirst(start))
        return .response(206, self.good + ["Content-Range: bytes \(start)-99999/100000"], bytes)
    }

    /// Downloads half, cancels, and returns the resume data.
    static func resumeData(_ server: WebServer, _ session: URLSession, _ path: String = "/") async throws -> Data? {
        let hasHalf = Gate()
        var policies = Policies()
        policies.written = { if $1 >= 50_000 { hasHalf.open() } }
        let recorder = DataRecorder(policies)
        let task = session.downloadTask(with: server.url(path))
        task.delegate = recorder
        task.resume()
        #expect(await hasHalf.pass())
        let outcome = Outcome<Data?>()
        task.cancel { outcome.give($0) }
        let data = try await outcome.value()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled)
        #expect((notes.error as? URLError)?.downloadTaskResumeData == data)
        return data
    }

    @Test func resumedDownloadRequestsTheRestAndReportsItsOffset() async throws {
        let server = try await WebServer(["/": Self.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { Self.part($0) }
        let task = session.downloadTask(withResumeData: data)
        #expect(task.originalRequest?.url == server.url("/"))
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.fileContent == Data(Self.whole.utf8))
        #expect(notes.resumes.map(\.offset) == [50_000] && notes.resumes.map(\.expected) == [100_000])
        #expect(notes.written.last?.total == 100_000 && notes.written.last?.expected == 100_000)
        let heard = try #require(server.requests.last)
        #expect(heard["Range"] == "bytes=50000-" && heard["If-Range"] == "\"v1\"")
        #expect(task.currentRequest?.value(forHTTPHeaderField: "Range") == "bytes=50000-")
        #expect(task.originalRequest?.value(forHTTPHeaderField: "Range") == nil)
        #expect(recorder.eventsOfTheTask.suffix(4) == ["written", "downloaded", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    @Test func changedContentIsDownloadedFromTheStart() async throws {
        let server = try await WebServer(["/": Self.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/", .text("quite another", ["ETag: \"v2\"", "Accept-Ranges: bytes"]))
        session.downloadTask(withResumeData: data).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.fileContent == Data("quite another".utf8))
        #expect(notes.resumes.map(\.offset) == [0] || notes.resumes.isEmpty)
        #expect(notes.written.last?.total == 13)
        session.invalidateAndCancel()
    }

    /// RFC 9110 §15.3.7: a server may send less than was asked for.
    @Test func restIsRequestedInTheServersParts() async throws {
        let server = try await WebServer(["/": Self.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { request in
            let start = request["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let bytes = Array(Self.whole.utf8.dropFirst(start).prefix(20_000))
            return .response(
                206, Self.good + ["Content-Range: bytes \(start)-\(start + bytes.count - 1)/100000"], bytes)
        }
        session.downloadTask(withResumeData: data).resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.fileContent == Data(Self.whole.utf8))
        #expect(notes.resumes.map(\.offset) == [50_000] && notes.written.last?.total == 100_000)
        let ranges = server.requests.compactMap { $0["Range"] }
        #expect(ranges == ["bytes=50000-", "bytes=70000-", "bytes=90000-"])
        session.invalidateAndCancel()
    }

    @Test func contentThatChangesBetweenPartsFailsWithResumeData() async throws {
        let server = try await WebServer(["/": Self.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { request in
            guard request["Range"] == "bytes=50000-" else { return .text("quite another", ["ETag: \"v2\""]) }
            let bytes = Array(Self.whole.utf8.dropFirst(50_000).prefix(20_000))
            return .response(206, Self.good + ["Content-Range: bytes 50000-69999/100000"], bytes)
        }
        session.downloadTask(withResumeData: data).resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.downloadTaskResumeData != nil)
        session.invalidateAndCancel()
    }

    @Test func downloadThatGotNoResponseKeepsItsResumeData() async throws {
        let server = try await WebServer(["/": Self.half()])
        let session = URLSession.test()
        var data = try #require(try await Self.resumeData(server, session))
        server.on("/", .close)
        let recorder = DataRecorder()
        let task = session.downloadTask(withResumeData: data)
        task.delegate = recorder
        task.resume()
        data = try #require((try await recorder.end().error as? URLError)?.downloadTaskResumeData)
        let asked = Gate()
        server.on("/", Answer([.open(asked), .hang]))
        let waiting = session.downloadTask(withResumeData: data)
        waiting.resume()
        #expect(await asked.pass())
        data = try #require(await waiting.cancelByProducingResumeData())
        server.on("/") { Self.part($0) }
        let (url, _) = try await session.download(resumeFrom: data)
        #expect(try Data(contentsOf: url) == Data(Self.whole.utf8))
        try FileManager.default.removeItem(at: url)
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ["Content-Range: bytes 0-99999/100000", "ETag: \"v1\""],
        ["Content-Range: bytes 50000-99999/100000", "ETag: \"v2\""],
        ["Content-Range: lines 50000-99999/100000", "ETag: \"v1\""], ["ETag: \"v1\""],
    ])
    func partThatDoesNotFitIsNotTaken(_ fields: [String]) async throws {
        let server = try await WebServer(["/": Self.half()])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { request in
            if request["Range"] == nil { return .response(200, Self.good, Self.whole.utf8) }
            return .response(206, fields, Array(Self.whole.utf8.dropFirst(50_000)))
        }
        session.downloadTask(withResumeData: data).resume()
        let notes = try await recorder.end()
        #expect(notes.error != nil || notes.fileContent == Data(Self.whole.utf8))
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ["Accept-Ranges: bytes"], ["ETag: W/\"weak\"", "Accept-Ranges: bytes"],
        ["ETag: \"v1\"", "Accept-Ranges: none"],
    ])
    func serverWithoutValidatorGivesNoResumeData(_ fields: [String]) async throws {
        let server = try await WebServer(["/": Self.half(fields)])
        let session = URLSession.test()
        #expect(try await Self.resumeData(server, session) == nil)
        session.invalidateAndCancel()
    }

    @Test func downloadIsResumedByADate() async throws {
        let fields = [
            "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT", "Date: Wed, 16 Nov 1994 12:45:26 GMT",
            "Accept-Ranges: bytes",
        ]
        let server = try await WebServer(["/": Self.half(fields)])
        let session = URLSession.test()
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { Self.part($0) }
        let outcome = Outcome<Data?>()
        session.downloadTask(withResumeData: data) { url, _, _ in
            outcome.give(url.flatMap { try? Data(contentsOf: $0) })
        }.resume()
        #expect(try await outcome.value() == Data(Self.whole.utf8))
        #expect(server.requests.last?["If-Range"] == "Tue, 15 Nov 1994 12:45:26 GMT")
        session.invalidateAndCancel()
    }

    @Test func brokenDownloadHasResumeData() async throws {
        let broken = Answer.head(200, ["Content-Length: 100000"] + Self.good)
            .then(.send(Array(Self.whole.utf8.prefix(50_000))), .close)
        let server = try await WebServer(["/": broken])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        session.downloadTask(with: server.url()).resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .networkConnectionLost)
        let data = try #require(error.downloadTaskResumeData)
        #expect(error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data == data)
        server.on("/") { Self.part($0) }
        let (url, _) = try await session.download(resumeFrom: data)
        #expect(try Data(contentsOf: url) == Data(Self.whole.utf8))
        try FileManager.default.removeItem(at: url)
        session.invalidateAndCancel()
    }

    @Test(arguments: [Data(), Data([1, 2, 3]), Data("bplist00 and so on".utf8)])
    func invalidResumeDataIsRefused(_ data: Data) async throws {
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let outcome = Outcome<Loaded>()
        session.downloadTask(withResumeData: data) { url, response, error in
            outcome.give(Loaded(data: url.map { _ in Data() }, response: response, error: error))
        }.resume()
        let loaded = try await outcome.value()
        #expect(loaded.code == .unsupportedURL && loaded.data == nil && loaded.response == nil)
        session.downloadTask(withResumeData: data).resume()
        #expect((try await recorder.end().error as? URLError)?.code == .unsupportedURL)
        await #expect(throws: URLError.self) { try await session.download(resumeFrom: data) }
        session.invalidateAndCancel()
    }

    @Test func changedResumeDataIsRefused() async throws {
        let server = try await WebServer(["/": Self.half()])
        let session = URLSession.test()
        let data = try #require(try await Self.resumeData(server, session))
        server.on("/") { Self.part($0) }
        for index in stride(from: data.startIndex, to: data.endIndex, by: max(1, data.count / 40)) {
            var changed = data
            changed[index] ^= 0x15
            // The task ends with any result, and a file is complete.
            let outcome = Outcome<Int?>()
            session.downloadTask(withResumeData: changed) { url, _, error in
                let content = error == nil ? url.flatMap { try? Data(contentsOf: $0) } : nil
                outcome.give(content?.count)
            }.resume()
            _ = try await outcome.value()
        }
        session.invalidateAndCancel()
    }

    @Test func resumeDataIsMadeOnceAndOnlyAfterTheStart() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let task = session.downloadTask(with: server.url())
        #expect(await task.cancelByProducingResumeData() == nil)
        let again = Outcome<Bool>()
        task.cancel { again.give($0 == nil) }
        #expect(try await again.value())
        session.invalidateAndCancel()
    }
}
