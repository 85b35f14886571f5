import Foundation
import Testing
import URLLoading

@Suite("Upload tasks", .loading, .timeLimit(.minutes(20)))
struct UploadTaskTests {
    private func server() async throws -> WebServer { try await WebServer(["/": .text("taken")]) }

    @Test func uploadedDataReplacesTheRequestsBody() async throws {
        let server = try await self.server()
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let bytes = Data(repeating: 7, count: 16_384)
        let task: URLSessionUploadTask = session.uploadTask(
            with: .to(server.url(), "PUT", body: "ignored"), from: bytes)
        #expect(task.countOfBytesExpectedToSend == 16_384)
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("taken".utf8))
        #expect(server.requests.first.map { Data($0.body) } == bytes)
        #expect(server.requests.first?["Content-Length"] == "16384")
        #expect(notes.sent.last?.total == 16_384 && notes.sent.allSatisfy { $0.expected == 16_384 })
        #expect(notes.sent.map(\.now).reduce(0, +) == 16_384 && task.countOfBytesSent == 16_384)
        session.invalidateAndCancel()
    }

    @Test func fileIsUploaded() async throws {
        let server = try await self.server()
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("up")
        let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
        try bytes.write(to: file)
        let session = URLSession.test()
        let outcome = Outcome<Loaded>()
        let task = session.uploadTask(with: .to(server.url(), "POST", body: "ignored"), fromFile: file) {
            outcome.give(Loaded(data: $0, response: $1, error: $2))
        }
        task.resume()
        #expect(try await outcome.value().text == "taken")
        let heard = try #require(server.requests.first)
        #expect(Data(heard.body) == bytes && heard["Content-Length"] == "200000" && heard["Transfer-Encoding"] == nil)
        #expect(task.countOfBytesSent == 200_000 && task.countOfBytesExpectedToSend == 200_000)
        session.invalidateAndCancel()
    }

    @Test(arguments: [true, false])
    func suspendedUploadSendsNoMoreOfItsBody(_ isData: Bool) async throws {
        let server = try await WebServer(["/": .text("taken"), "/other": .text("other")])
        let size = 32 << 20
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("up")
        try Data(count: size).write(to: file)
        let hasBegun = Gate()
        var policies = Policies()
        policies.sent = { task, _ in
            guard !hasBegun.isOpen else { return }
            task.suspend()
            hasBegun.open()
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let request = URLRequest.to(server.url(), "PUT")
        let task =
            isData
            ? session.uploadTask(with: request, from: Data(count: size))
            : session.uploadTask(with: request, fromFile: file)
        task.resume()
        #expect(await hasBegun.pass())
        // The session's tasks are handled in order: the task is suspended before the first of these loads begins.
        #expect(try await session.load(server.url("/other")).text == "other")
        let sent = task.countOfBytesSent
        for _ in 0..<50 { #expect(try await session.load(server.url("/other")).text == "other") }
        #expect(task.countOfBytesSent < sent + 1 << 20)
        task.resume()
        #expect(try await recorder.end().error == nil && task.countOfBytesSent == size)
        session.invalidateAndCancel()
    }

    @Test func missingFileFailsTheUpload() async throws {
        let server = try await self.server()
        let folder = try TemporaryFolder()
        let session = URLSession.test()
        for missing in [folder.url.appendingPathComponent("not there"), folder.url] {
            let outcome = Outcome<Loaded>()
            session.uploadTask(with: .to(server.url(), "PUT"), fromFile: missing) {
                outcome.give(Loaded(data: $0, response: $1, error: $2))
            }.resume()
            let expected: [URLError.Code] = [.fileDoesNotExist, .fileIsDirectory]
            let code = try #require(try await outcome.value().code)
            #expect(expected.contains(code))
        }
        #expect(server.requests.isEmpty)
        session.invalidateAndCancel()
    }

    @Test func noDataIsSentAsAnEmptyBody() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        for body in [nil, Data()] {
            let outcome = Outcome<Loaded>()
            session.uploadTask(with: .to(server.url(), "PUT"), from: body) {
                outcome.give(Loaded(data: $0, response: $1, error: $2))
            }.resume()
            #expect(try await outcome.value().text == "taken")
            #expect(server.requests.last?["Content-Length"] == "0" && server.requests.last?.bodyCount == 0)
        }
        session.invalidateAndCancel()
    }

    @Test(arguments: ["PUT", "POST", "DELETE", "HEAD"])
    func delegateIsAskedForTheBodyStream(_ method: String) async throws {
        let server = try await self.server()
        let bytes = Data(repeating: 9, count: 16_384)
        var policies = Policies()
        policies.stream = { $0(InputStream(data: bytes)) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.uploadTask(withStreamedRequest: .to(server.url(), method))
        #expect(task.countOfBytesExpectedToSend == -1)
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.sent.last?.total == 16_384 && notes.sent.last?.expected == -1)
        let body = method == "HEAD" ? [] : ["data"]
        #expect(
            recorder.eventsOfTheTask.filter { $0 != "created" && $0 != "metrics" }
                == ["needs body", "sent", "response 200"] + body + ["complete"])
        let heard = try #require(server.requests.first)
        #expect(
            Data(heard.body) == bytes
                && heard["Transfer-Encoding"] == WebProtocol.current.transferCoding(isChunked: true))
        #expect(heard["Content-Type"] == (method == "POST" ? "application/x-www-form-urlencoded" : nil))
        session.invalidateAndCancel()
    }

    @Test func streamOfAGETIsRefused() async throws {
        let server = try await self.server()
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data([1]))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url(), "GET")).resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .dataLengthExceedsMaximum && error.failingURL == server.url())
        #expect(
            recorder.eventsOfTheTask.filter { $0 != "created" && $0 != "metrics" } == ["needs body", "complete"])
        session.invalidateAndCancel()
    }

    @Test func missingStreamFailsTheUpload() async throws {
        let server = try await self.server()
        var policies = Policies()
        policies.stream = { $0(nil) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url(), "PUT")).resume()
        #expect(try await recorder.end().error is URLError)
        session.invalidateAndCancel()
    }

    @Test func repeatedRequestRequestsTheStreamAgain() async throws {
        let server = try await self.server()
        server.on("/moved", .redirect(307, to: "/"))
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Data("again".utf8))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url("/moved"), "POST")).resume()
        #expect(try await recorder.end().error == nil)
        #expect(recorder.log.count("needs body") == 2)
        #expect(server.requests.map(\.text) == ["again", "again"])
        session.invalidateAndCancel()
    }

    @Test func errorOfTheStreamFailsTheUpload() async throws {
        let server = try await self.server()
        var policies = Policies()
        policies.stream = { $0(InputStream(url: URL(filePath: "/nowhere/at/all"))) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withStreamedRequest: .to(server.url(), "PUT")).resume()
        #expect(try await recorder.end().error != nil)
        session.invalidateAndCancel()
    }

    @Test func invalidUploadResumeDataIsRefused() async throws {
        let session = URLSession.test()
        let outcome = Outcome<Loaded>()
        session.uploadTask(withResumeData: Data([1, 2, 3])) {
            outcome.give(Loaded(data: $0, response: $1, error: $2))
        }.resume()
        #expect(try await outcome.value().error is URLError)
        let recorder = Recorder()
        let recorded = URLSession.test(recorder)
        recorded.uploadTask(withResumeData: Data()).resume()
        #expect(try await recorder.end().error is URLError)
        recorded.invalidateAndCancel()
        session.invalidateAndCancel()
    }

    @Test func serverWithoutResumptionGivesNoResumeData() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let task = session.uploadTask(with: .to(server.url(), "PUT"), from: Data([1]))
        task.resume()
        await server.hasReceived(1)
        #expect(await task.cancelByProducingResumeData() == nil)
        let other = session.uploadTask(with: .to(server.url(), "PUT"), from: Data([1]))
        let outcome = Outcome<Bool>()
        other.cancel { outcome.give($0 == nil) }
        #expect(try await outcome.value())
        session.invalidateAndCancel()
    }
}
