import Foundation
import Testing
import URLLoading

@Suite("Transfers by async functions", .loading, .timeLimit(.minutes(20)))
struct AsyncTransferTests {
    @Test func dataAndResponseAreReturned() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let (byURL, response) = try await session.data(from: server.url())
        #expect(byURL == Data("hello".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
        let (byRequest, _) = try await session.data(for: .to(server.url(), "GET", ["X-A": "b"]))
        #expect(byRequest == Data("hello".utf8) && server.requests.last?["X-A"] == "b")
        session.invalidateAndCancel()
    }

    @Test func asyncUploadSendsDataAndFiles() async throws {
        let server = try await WebServer()
        server.on("/") { .response(200, [], $0.body) }
        let session = URLSession.test()
        let (echo, _) = try await session.upload(for: .to(server.url(), "POST"), from: Data("from data".utf8))
        #expect(echo == Data("from data".utf8))
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("f")
        try Data("from file".utf8).write(to: file)
        let (other, _) = try await session.upload(for: .to(server.url(), "PUT"), fromFile: file)
        #expect(other == Data("from file".utf8))
        await #expect(throws: URLError.self) { try await session.upload(resumeFrom: Data([1])) }
        session.invalidateAndCancel()
    }

    @Test func downloadedFileIsLeftWithTheProgram() async throws {
        let server = try await WebServer(["/": .text("yours")])
        let session = URLSession.test()
        let recorder = DataRecorder()
        let (byURL, response) = try await session.download(from: server.url(), delegate: recorder)
        let (byRequest, _) = try await session.download(for: .to(server.url()))
        for url in [byURL, byRequest] {
            #expect(try Data(contentsOf: url) == Data("yours".utf8))
            try FileManager.default.removeItem(at: url)
        }
        #expect((response as? HTTPURLResponse)?.statusCode == 200 && recorder.log.count("downloaded") == 0)
        session.invalidateAndCancel()
    }

    @Test func asyncDataReportsContentToItsDelegate() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let (own, shared) = (DataRecorder(), DataRecorder())
        let session = URLSession.test(shared)
        let (data, _) = try await session.data(from: server.url(), delegate: own)
        // Before the result, as FoundationNetworking does it.
        #expect(data == Data("hello".utf8) && own.notes.data == data)
        #expect(own.eventsOfTheTask == ["created", "redirect 302", "response 200", "data", "metrics"])
        #expect(own.notes.metrics?.redirectCount == 1)
        // The session's delegate gets no calls for awaited transfers.
        _ = try await session.data(from: server.url())
        #expect(await shared.log.has("metrics"))
        #expect(shared.eventsOfTheTask == ["created", "redirect 302", "metrics"])
        session.invalidateAndCancel()
    }

    @Test func asyncUploadReportsProgressToItsDelegate() async throws {
        let server = try await WebServer()
        server.on("/") { .response(200, [], $0.body) }
        let own = DataRecorder()
        let session = URLSession.test()
        let (echo, _) = try await session.upload(for: .to(server.url(), "POST"), from: Data("up".utf8), delegate: own)
        #expect(
            own.eventsOfTheTask == ["created", "sent", "response 200", "data", "metrics"] && own.notes.data == echo)
        session.invalidateAndCancel()
    }

    @Test(.onlyPlain("a suspended delegate queue decides on no certificate"))
    func resultFollowsTheCallsOfTheSessionsDelegate() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = Recorder()
        let session = URLSession.test(recorder)
        let other = URLSession.test()
        session.delegateQueue.isSuspended = true
        let running = Task {
            let (data, _) = try await session.upload(for: .to(server.url(), "PUT"), from: Data("up".utf8))
            recorder.log.add("result")
            return data
        }
        await server.hasReceived(1)
        // Meanwhile a result that does not wait for the delegate queue arrives.
        for _ in 0..<50 { #expect(try await other.load(server.url()).text == "hello") }
        session.delegateQueue.isSuspended = false
        #expect(try await running.value == Data("hello".utf8))
        #expect(recorder.eventsOfTheTask == ["created", "sent", "metrics", "result"])
        session.invalidateAndCancel()
        other.invalidateAndCancel()
    }

    @Test func slowDelegateHoldsTheServerBack() async throws {
        let server = try await WebServer()
        let size = 8 << 20
        server.on("/", .response(200, [], [UInt8](repeating: 7, count: size)))
        let (reached, gate) = (Gate(), DispatchSemaphore(value: 0))
        var policies = Policies()
        policies.data = { _, data in
            guard !reached.isOpen else { return }
            reached.open()
            gate.wait()
        }
        let own = DataRecorder(policies)
        let session = URLSession.test { $0.urlCache = nil }
        let running = Task { try await session.data(from: server.url(), delegate: own) }
        #expect(await reached.pass())
        let task = try #require(own.notes.created.first)
        for _ in 0..<1000 { await Task.yield() }
        #expect(task.countOfBytesReceived < size / 2)
        gate.signal()
        #expect(try await running.value.0.count == size && own.notes.data.count == size)
        session.invalidateAndCancel()
    }

    @Test func delegateCanRefuseATransfer() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        var policies = Policies()
        policies.response = { $1(.cancel) }
        let error = await #expect(throws: URLError.self) {
            try await session.data(from: server.url(), delegate: DataRecorder(policies))
        }
        #expect(error?.code == .cancelled)
        // An awaited data task cannot become a download.
        policies.response = { $1(.becomeDownload) }
        let (data, _) = try await session.data(from: server.url(), delegate: DataRecorder(policies))
        #expect(data == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func asyncDownloadReportsProgressToItsDelegate() async throws {
        let server = try await WebServer(["/": .text("yours")])
        let (own, shared) = (DataRecorder(), DataRecorder())
        let session = URLSession.test(shared)
        let (file, _) = try await session.download(from: server.url(), delegate: own)
        try FileManager.default.removeItem(at: file)
        #expect(own.eventsOfTheTask == ["created", "written", "metrics"])
        #expect(own.notes.written == [Recorder.Sent(now: 5, total: 5, expected: 5)])
        #expect(shared.eventsOfTheTask.contains("written") == false)
        session.invalidateAndCancel()
    }

    @Test func asyncTransferThrowsTheErrorOfItsTask() async throws {
        let server = try await WebServer(["/": .close])
        let session = URLSession.test()
        let error = await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        #expect(error?.code == .networkConnectionLost && error?.failingURL == server.url())
        session.invalidateAndCancel()
    }

    @Test func cancelledSwiftTaskEndsTheTransfer() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let works: [@Sendable () async throws -> Void] = [
            { _ = try await session.data(from: server.url()) },
            { _ = try await session.upload(for: .to(server.url(), "PUT"), from: Data([1])) },
            { _ = try await session.download(from: server.url()) },
            { _ = try await session.bytes(from: server.url()) },
        ]
        for (index, work) in works.enumerated() {
            let running = Task { try await work() }
            await server.hasReceived(index + 1)
            running.cancel()
            let error = await #expect(throws: URLError.self) { try await running.value }
            #expect(error?.code == .cancelled)
        }
        #expect(try await session.liveTasks().isEmpty)
        session.invalidateAndCancel()
    }

    @Test func transferEndsWheneverItIsCancelled() async throws {
        let server = try await WebServer(["/": .redirect(307, to: "/there")])
        server.on("/there", .chunked(["one", "two"]))
        let session = URLSession.test { $0.urlCache = nil }
        for patience in 0..<150 {
            let running = Task { try await session.data(for: .to(server.url(), "PUT", body: "up")).0 }
            for _ in 0..<patience { await Task.yield() }
            running.cancel()
            switch await running.result {
            case .success(let data): #expect(data == Data("onetwo".utf8))
            case .failure(let error): #expect((error as? URLError)?.code == .cancelled)
            }
        }
        let settled = Gate()
        session.delegateQueue.addOperation { settled.open() }
        await settled.pass()
        #expect(try await session.liveTasks().isEmpty)
        session.invalidateAndCancel()
    }

    @Test func cancelledSwiftTaskBeginsNothing() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let gate = Gate()
        let running = Task {
            await gate.pass()
            return try await session.data(from: server.url())
        }
        running.cancel()
        gate.open()
        let error = await #expect(throws: URLError.self) { _ = try await running.value }
        #expect(error?.code == .cancelled)
        session.invalidateAndCancel()
    }
}
