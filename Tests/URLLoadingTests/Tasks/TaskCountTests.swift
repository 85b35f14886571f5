import Foundation
import Testing
import URLLoading

@Suite("Counts and progress of tasks", .loading, .timeLimit(.minutes(20)))
struct TaskCountTests {
    @Test func countsAreRightAtEveryCallback() async throws {
        let server = try await WebServer()
        server.on("/", .chunked(["abc", "defg"]))
        server.on("/length", .text("0123456789"))
        var policies = Policies()
        let wrong = EventLog()
        policies.data = { task, data in
            if task.countOfBytesReceived != Int64(data.count) { wrong.add("received \(task.countOfBytesReceived)") }
        }
        for (path, expected) in [("/", Int64(-1)), ("/length", 10)] {
            let recorder = DataRecorder(policies)
            let session = URLSession.test(recorder)
            let task = session.dataTask(with: .to(server.url(path), "POST", body: "up up"))
            #expect(task.countOfBytesExpectedToSend == 5 && task.countOfBytesSent == 0)
            task.resume()
            let notes = try await recorder.end()
            #expect(task.countOfBytesReceived == Int64(notes.data.count) && task.countOfBytesSent == 5)
            #expect(task.countOfBytesExpectedToReceive == expected)
            session.invalidateAndCancel()
        }
        #expect(wrong.names == [])
    }

    @Test(arguments: ["/moved", "/guarded"])
    func bytesOfEachAttemptAreCountedAnew(_ path: String) async throws {
        let server = try await WebServer(["/moved": .redirect(307, to: "/"), "/": .text("taken")])
        server.on("/guarded", BasicAuthenticationTests.guarded())
        let recorder = DataRecorder(Policies.credential("user", "passwd"))
        let session = URLSession.test(recorder)
        let task = session.uploadTask(with: .to(server.url(path), "PUT"), from: Data(count: 1000))
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && server.requests.map(\.bodyCount) == [1000, 1000])
        #expect(notes.sent.map(\.now).reduce(0, +) == 2000)
        #expect(notes.sent.allSatisfy { $0.total <= 1000 && $0.expected == 1000 } && notes.sent.last?.total == 1000)
        #expect(task.countOfBytesSent == 1000 && task.countOfBytesExpectedToSend == 1000)
        session.invalidateAndCancel()
    }

    @Test func bodyThatARedirectReplacesIsExpected() async throws {
        let server = try await WebServer(["/moved": .redirect(307, to: "/"), "/": .text("taken")])
        var policies = Policies()
        policies.redirect = { _, request, answer in
            var request = request
            request.httpBody = Data("a longer body".utf8)
            answer(request)
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: .to(server.url("/moved"), "POST", body: "body"))
        task.resume()
        let notes = try await recorder.end()
        #expect(server.requests.map(\.text) == ["body", "a longer body"])
        #expect(notes.sent.first == Recorder.Sent(now: 4, total: 4, expected: 4))
        #expect(notes.sent.last?.total == 13 && notes.sent.last?.expected == 13)
        #expect(task.countOfBytesSent == 13 && task.countOfBytesExpectedToSend == 13)
        session.invalidateAndCancel()
    }

    @Test func countsExistWithoutADelegate() async throws {
        let server = try await WebServer(["/": .text("0123456789")])
        let session = URLSession.test()
        let outcome = Outcome<Bool>()
        let task = session.uploadTask(with: .to(server.url(), "PUT"), from: Data(count: 1000)) { _, _, _ in
            outcome.give(true)
        }
        task.resume()
        _ = try await outcome.value()
        #expect(task.countOfBytesSent == 1000 && task.countOfBytesReceived == 10)
        session.invalidateAndCancel()
    }

    @Test func expectedBytesOfALinkAreThoseOfItsFile() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (file, link) = (folder.appendingPathComponent("file"), folder.appendingPathComponent("link"))
        try Data(count: 100_000).write(to: file)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let session = URLSession.test()
        let task = session.uploadTask(with: .to(URL(fileURLWithPath: "/nowhere"), "PUT"), fromFile: link)
        #expect(task.countOfBytesExpectedToSend == 100_000)
        session.invalidateAndCancel()
    }

    @Test func expectedBytesOfACodedContentAreUnknown() async throws {
        let server = try await WebServer(["/": Coded.gzip("Hello World!")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("Hello World!".utf8) && notes.response?.expectedContentLength == -1)
        #expect(task.countOfBytesExpectedToReceive == -1)
        session.invalidateAndCancel()
    }

    @Test func taskWithoutABodyExpectsToSendNothing() {
        let session = URLSession.test()
        #expect(session.dataTask(with: URL(filePath: "/")).countOfBytesExpectedToSend == 0)
        session.invalidateAndCancel()
    }

    @Test func completedTaskFinishesItsProgress() async throws {
        let server = try await WebServer(["/": .text("0123456789")])
        let session = URLSession.test()
        let parent = Progress(totalUnitCount: 10)
        let outcome = Outcome<Bool>()
        let task = session.uploadTask(with: .to(server.url(), "PUT"), from: Data(count: 1000)) { _, _, _ in
            outcome.give(true)
        }
        #expect(task.progress === task.progress && !task.progress.isFinished)
        parent.addChild(task.progress, withPendingUnitCount: 10)
        task.resume()
        _ = try await outcome.value()
        #expect(task.progress.isFinished && task.progress.fractionCompleted == 1 && parent.isFinished)
        session.invalidateAndCancel()
    }

    @Test func completedTaskWithoutContentFinishesItsProgress() async throws {
        let server = try await WebServer(["/": .head(204), "/unknown": .chunked(["abc"])])
        let session = URLSession.test()
        for path in ["/", "/unknown"] {
            let outcome = Outcome<Bool>()
            let task = session.dataTask(with: server.url(path)) { _, _, _ in outcome.give(true) }
            task.resume()
            _ = try await outcome.value()
            #expect(task.progress.isFinished)
        }
        session.invalidateAndCancel()
    }

    @Test func progressControlsItsTask() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let outcome = Outcome<URLError.Code?>()
        let task = session.dataTask(with: server.url()) { outcome.give(($2 as? URLError)?.code) }
        #expect(task.progress.isCancellable && task.progress.isPausable)
        // The progress calls its handlers at any time and on any thread, and `Observations` misses a change between its read
        // and its registration: the state is polled.
        func comes(to state: URLSessionTask.State) async {
            while task.state != state { await Task.yield() }
        }
        task.progress.resume()
        await comes(to: .running)
        task.progress.pause()
        await comes(to: .suspended)
        task.progress.resume()
        await comes(to: .running)
        task.progress.cancel()
        #expect(try await outcome.value() == .cancelled)
        session.invalidateAndCancel()
    }

    @Test func cancelledParentProgressCancelsTheTask() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let parent = Progress(totalUnitCount: 2)
        let outcomes = (0..<2).map { _ in Outcome<URLError.Code?>() }
        for outcome in outcomes {
            let task = session.dataTask(with: server.url()) { outcome.give(($2 as? URLError)?.code) }
            parent.addChild(task.progress, withPendingUnitCount: 1)
            task.resume()
        }
        await server.hasReceived(2)
        parent.cancel()
        for outcome in outcomes { #expect(try await outcome.value() == .cancelled) }
        session.invalidateAndCancel()
    }
}
