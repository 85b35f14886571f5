import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Response dispositions", .loading, .timeLimit(.minutes(20)))
struct ResponseDispositionTests {
    private func answering(_ disposition: URLSession.ResponseDisposition) -> DataRecorder {
        var policies = Policies()
        policies.response = { _, answer in answer(disposition) }
        return DataRecorder(policies)
    }

    @Test func cancelledResponseIsTheEnd() async throws {
        let server = try await WebServer(["/": .text("never seen")])
        let recorder = self.answering(.cancel)
        let notes = try await recorder.run(server.url())
        #expect((notes.error as? URLError)?.code == .cancelled && notes.data.isEmpty)
        #expect(recorder.eventsOfTheTask == ["created", "response 200", "metrics", "complete"])
    }

    @Test func contentWaitsForTheDelegatesAnswer() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let kept = Outcome<@Sendable () -> Void>()
        var policies = Policies()
        policies.response = { _, answer in kept.give { answer(.allow) } }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url()).resume()
        let goOn = try await kept.value()
        for _ in 0..<100 { await Task.yield() }
        #expect(recorder.eventsOfTheTask == ["created", "response 200"])
        goOn()
        #expect(try await recorder.end().data == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func responseCanBecomeADownload() async throws {
        let body = String(repeating: "to a file ", count: 30_000)
        let server = try await WebServer(["/": .text(body)])
        let recorder = self.answering(.becomeDownload)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.fileContent == Data(body.utf8))
        #expect(notes.download?.taskIdentifier == task.taskIdentifier)
        #expect((notes.download?.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(notes.written.last?.total == 300_000)
        let expected = ["created", "response 200", "became download", "written", "downloaded", "metrics", "complete"]
        #expect(recorder.eventsOfTheTask == expected && notes.completions == 1)
        session.invalidateAndCancel()
    }

    @Test func taskThatBecameADownloadIsCompleted() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 9"]).then(.send([1]), .hang)])
        let recorder = self.answering(.becomeDownload)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        let progress = task.progress
        task.resume()
        #expect(await recorder.log.has("became download"))
        #expect(task.state == .completed && task.error == nil && task.delegate == nil)
        let download = try #require(recorder.notes.download)
        #expect(download.state == .running && download.progress === progress && !progress.isFinished)
        #expect(try await session.liveTasks() == [download])
        // Of the old task no longer.
        task.cancel()
        #expect(download.state == .running)
        progress.cancel()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
    }

    @Test func progressFirstReadAfterwardsIsThatOfTheDownload() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 9"]).then(.send([1]), .hang)])
        let recorder = self.answering(.becomeDownload)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("became download"))
        let progress = task.progress
        #expect(progress === recorder.notes.download?.progress && !progress.isFinished)
        progress.cancel()
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    /// What the program does with the data task between its answer and `didBecome`, which brings the other task.
    @Test(.onlyWithHTTP11, arguments: [URLSession.ResponseDisposition.becomeDownload, .becomeStream], [true, false])
    func taskThatBecomesAnotherCanBeCancelled(
        _ disposition: URLSession.ResponseDisposition, _ isForSession: Bool
    ) async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 9"]).then(.send([1]), .hang)])
        let current = Outcome<(URLSession, URLSessionDataTask)>()
        var policies = Policies()
        policies.response = { _, answer in
            answer(disposition)
            guard let (session, task) = current.now else { return }
            if isForSession { session.invalidateAndCancel() } else { task.cancel() }
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        current.give((session, task))
        task.resume()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
        #expect(task.state == .completed && recorder.log.names.last == "invalid")
    }

    @Test func taskThatBecomesADownloadCanBeSuspended() async throws {
        let server = try await WebServer(["/": .head(200, ["Content-Length: 9"]).then(.send([1]), .hang)])
        let current = Outcome<URLSessionDataTask>()
        var policies = Policies()
        policies.response = { _, answer in
            answer(.becomeDownload)
            current.now?.suspend()
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        current.give(task)
        task.resume()
        #expect(await recorder.log.has("became download"))
        #expect(recorder.notes.download?.state == .suspended && task.state == .completed)
        session.invalidateAndCancel()
        #expect(await recorder.log.has("invalid"))
    }

    @Test func suspensionsOfATaskThatBecomesADownloadAreCounted() async throws {
        let server = try await WebServer(["/": .text("ninebytes")])
        let current = Outcome<URLSessionDataTask>()
        var policies = Policies()
        policies.response = { _, answer in
            current.now?.suspend()
            answer(.becomeDownload)
            current.now?.suspend()
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        current.give(task)
        task.resume()
        #expect(await recorder.log.has("became download"))
        let download = try #require(recorder.notes.download)
        download.resume()
        #expect(download.state == .suspended)
        download.resume()
        #expect(try await recorder.end().error == nil && download.countOfBytesReceived == 9)
        session.invalidateAndCancel()
    }

    @Test func responseAfterAnUpgradeCanBecomeAStream() async throws {
        let gate = Gate()
        let server = try await WebServer([
            "/": .raw("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                .then(.send(Array("first".utf8)), .wait(gate), .send(Array("second".utf8)), .close)
        ])
        let recorder = self.answering(.becomeStream)
        let session = URLSession.test(recorder)
        session.dataTask(with: .to(server.url(), "GET", ["Connection": "Upgrade", "Upgrade": "echo"])).resume()
        #expect(await recorder.log.has("became stream"))
        let stream = try #require(recorder.notes.streamTask)
        let (first, _) = try await stream.readData(ofMinLength: 5, maxLength: 100, timeout: 60)
        #expect(first == Data("first".utf8))
        gate.open()
        let (second, _) = try await stream.readData(ofMinLength: 6, maxLength: 100, timeout: 60)
        #expect(second == Data("second".utf8))
        stream.cancel()
        session.invalidateAndCancel()
    }

    @Test func responseWithoutAConnectionCannotBecomeAStream() async throws {
        let recorder = self.answering(.becomeStream)
        let notes = try await recorder.run(try #require(URL(string: "data:,hello")))
        #expect((notes.error as? URLError)?.code == .unsupportedURL && notes.streamTask == nil)
    }

    /// The whole response arrives at once, and the server resets the connection while the delegate decides.
    @Test(.onlyWithHTTP11) func contentThatCameBeforeAResetIsDelivered() async throws {
        let reset = Gate()
        let server = try await WebServer([
            "/": .raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").then(.open(reset), .reset)
        ])
        var policies = Policies()
        policies.response = { _, answer in
            Task {
                await reset.pass()
                answer(.allow)
            }
        }
        let notes = try await DataRecorder(policies).run(server.url())
        #expect(notes.error == nil && notes.data == Data("hello".utf8))
    }

    @Test func dispositionIsAskedOnlyWithoutAHandler() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = self.answering(.cancel)
        let session = URLSession.test(recorder)
        #expect(try await session.load(server.url()).text == "hello")
        session.invalidateAndCancel()
    }

    @Test func onlyTheFirstDispositionCounts() async throws {
        let server = try await WebServer(["/": .text("hello")])
        var policies = Policies()
        policies.response = { _, answer in
            answer(.allow)
            answer(.cancel)
            DispatchQueue.global().async { answer(.becomeDownload) }
        }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data == Data("hello".utf8) && notes.completions == 1)
    }

    /// More content than is pulled in advance, in parts large and small.
    @Test(arguments: [1, 1000, 100_000])
    func allPartsOfALongStreamArrive(_ size: Int) async throws {
        let count = 1_500_000 / max(size, 300)
        let frame = [UInt8](repeating: UInt8(ascii: "x"), count: size)
        let part = Array("--b\r\nContent-Type: image/x\r\n\r\n".utf8) + frame + [13, 10]
        let content = Array(repeatElement(part, count: count).joined()) + Array("--b--\r\n".utf8)
        let server = try await WebServer([
            "/": .response(200, ["Content-Type: multipart/x-mixed-replace; boundary=b"], content)
        ])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data.count == count * size)
        #expect(notes.responses.filter { $0.mimeType == "image/x" }.count == count)
    }

    private static let mixed = ["Content-Type: multipart/x-mixed-replace; boundary=b"]

    /// The server goes on with other parts. The part is longer than what is pulled in advance.
    @Test func partOfMixedContentCanBecomeADownload() async throws {
        let part = [UInt8](repeating: UInt8(ascii: "x"), count: 1_500_000)
        let server = try await WebServer([
            "/": .head(200, Self.mixed).then(
                .send(Array("--b\r\nContent-Type: image/x\r\n\r\n".utf8) + part),
                .send(Array("\r\n--b\r\nContent-Type: image/x\r\n\r\nnext".utf8)), .hang)
        ])
        var policies = Policies()
        policies.response = { response, answer in answer(response.mimeType == "image/x" ? .becomeDownload : .allow) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.fileContent == Data(part) && notes.data.isEmpty)
        #expect(notes.download?.response?.mimeType == "image/x" && notes.completions == 1)
    }

    /// The parts are in memory when the delegate decides.
    @Test func lastPartOfMixedContentCanBecomeADownload() async throws {
        let text = "--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\nContent-Type: image/x\r\n\r\ntwo\r\n--b--\r\n"
        let server = try await WebServer(["/": .response(200, Self.mixed, text.utf8)])
        var policies = Policies()
        policies.response = { response, answer in answer(response.mimeType == "image/x" ? .becomeDownload : .allow) }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data == Data("one".utf8) && notes.fileContent == Data("two".utf8))
    }

    @Test func mixedContentAsAWholeCanBecomeADownload() async throws {
        let part =
            Array("--b\r\nContent-Type: image/x\r\n\r\n".utf8) + [UInt8](repeating: 7, count: 900_000) + [13, 10]
        let content = part + part + Array("--b--\r\n".utf8)
        let server = try await WebServer(["/": .response(200, Self.mixed, content)])
        let notes = try await self.answering(.becomeDownload).run(server.url())
        #expect(notes.error == nil && notes.fileContent == Data(content) && notes.responses.count == 1)
    }

    @Test func eachPartOfMixedContentHasAResponse() async throws {
        let text =
            "--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\nContent-Type: text/html\r\n\r\ntwo\r\n--b--\r\n"
        let server = try await WebServer([
            "/": .response(200, ["Content-Type: multipart/x-mixed-replace; boundary=b"], text.utf8)
        ])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url())
        #expect(notes.error == nil && notes.data == Data("onetwo".utf8))
        let types = notes.responses.compactMap(\.mimeType)
        #expect(types.suffix(2) == ["text/plain", "text/html"])
        #expect(recorder.log.count("data") >= 2 && notes.completions == 1)
    }

    /// `countOfBytesReceived` is that of the task: the content of all its parts.
    @Test func contentOfAllPartsIsCounted() async throws {
        let text =
            "--b\r\nContent-Length: 3\r\n\r\none\r\n--b\r\nContent-Length: 5\r\n\r\nthree\r\n--b--\r\n"
        let server = try await WebServer(["/": .response(200, Self.mixed, text.utf8)])
        let counts = Mutex<[Int64]>([])
        var policies = Policies()
        policies.data = { task, _ in counts.withLock { $0.append(task.countOfBytesReceived) } }
        let notes = try await DataRecorder(policies).run(server.url())
        #expect(notes.data == Data("onethree".utf8))
        #expect(notes.responses.map(\.expectedContentLength).suffix(2) == [3, 5])
        #expect(counts.withLock { $0 } == [3, 8])
    }
}
