import Foundation
import SessionTasks
import Synchronization
import Testing
import URLLoading
import WebSocketProtocol

@Suite("Data tasks that become stream tasks", .loading, .timeLimit(.minutes(20)))
struct BecomingStreamTests {
    @Test func streamContinuesOnTheUpgradedConnection() async throws {
        let server = try await ConnectionServer { task in
            let head = try await task.head()
            guard head.fields["Upgrade"] == "echo" else { return }
            try await task.say("HTTP/1.1 101 Yes\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nearly")
            try await StreamTaskTests.echo(task)
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        var request = URLRequest(url: server.url("/up", scheme: "http"))
        request.setValue("echo", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        let data = session.dataTask(with: request)
        data.resume()
        let task = try await recorder.stream.value()
        #expect(task.taskIdentifier == data.taskIdentifier && task.state == .running)
        #expect(task.originalRequest?.url == request.url && (task.response as? HTTPURLResponse)?.statusCode == 101)
        try await task.write(Data("later".utf8), timeout: 0)
        let (bytes, _) = try await task.readData(ofMinLength: 10, maxLength: 10, timeout: 0)
        #expect(bytes == Data("earlylater".utf8) && data.state == .completed)
        #expect(task.countOfBytesReceived == 10 && task.countOfBytesSent == 5)
        #expect(try await session.liveTasks().map(\.taskIdentifier) == [task.taskIdentifier])
        task.closeWrite()
        let (_, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        let notes = try await recorder.end()
        #expect(isAtEnd && notes.error == nil && notes.metrics?.transactionMetrics.count == 1)
        #expect(
            recorder.eventsOfTheTask
                == ["created", "response", "became stream", "write closed", "read closed", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    @Test func progressOfTheTaskIsThatOfTheStream() async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.head()
            try await task.say("HTTP/1.1 101 Yes\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let request = URLRequest.to(
            server.url("/up", scheme: "http"), "GET", ["Upgrade": "echo", "Connection": "Upgrade"])
        let data = session.dataTask(with: request)
        let progress = data.progress
        data.resume()
        let task = try await recorder.stream.value()
        #expect(data.state == .completed && task.progress === progress && !progress.isFinished)
        progress.cancel()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .cancelled && notes.completions == 1)
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
    }

    /// Long after both sides have closed.
    @Test func endOfStreamIsReportedToALateRead() async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.head()
            try await task.say("HTTP/1.1 101 Yes\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nall")
            _ = try await task.hearAll()
            task.closeWrite()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        let request = URLRequest.to(
            server.url("/up", scheme: "http"), "GET", ["Upgrade": "echo", "Connection": "Upgrade"])
        session.dataTask(with: request).resume()
        let task = try await recorder.stream.value()
        task.closeWrite()
        #expect(await recorder.log.has("read closed"))
        let (first, isAtEndAlready) = try await task.readData(ofMinLength: 2, maxLength: 2, timeout: 0)
        let (second, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 9, timeout: 0)
        #expect(first == Data("al".utf8) && !isAtEndAlready && second == Data("l".utf8) && isAtEnd)
        #expect(try await recorder.end().error == nil)
        session.invalidateAndCancel()
    }

    @Test func streamThatATaskBecameCanBeCancelled() async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.head()
            try await task.say("HTTP/1.1 101 Yes\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        var request = URLRequest(url: server.url("/up", scheme: "http"))
        request.setValue("echo", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        session.dataTask(with: request).resume()
        let task = try await recorder.stream.value()
        task.cancel()
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        session.invalidateAndCancel()
    }

    /// The content is raw: chunked framing and codings included.
    @Test(
        .onlyWithHTTP11,
        arguments: [
            "200 OK\r\nContent-Length: 5\r\n\r\nearly", "200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK\r\n\r\nearly",
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n0\r\n\r\n", "204 No Content\r\n\r\n",
            "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nearly",
            "404 Not Found\r\nConnection: close\r\nContent-Length: 900\r\n\r\nearly",
        ])
    func streamGetsContentAsItIsOnTheWire(_ response: String) async throws {
        let server = try await ConnectionServer { task in
            _ = try await task.head()
            try await task.say("HTTP/1.1 \(response)")
            try await StreamTaskTests.echo(task)
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url(scheme: "http")).resume()
        let task = try await recorder.stream.value()
        #expect("\((task.response as? HTTPURLResponse)?.statusCode ?? 0)" == response.prefix(3))
        try await task.write(Data("later".utf8), timeout: 0)
        task.closeWrite()
        let (bytes, isAtEnd) = try await task.readData(ofMinLength: 900, maxLength: 900, timeout: 0)
        let content = response.firstRange(of: "\r\n\r\n").map { response[$0.upperBound...] } ?? ""
        #expect(String(decoding: bytes ?? Data(), as: UTF8.self) == content + "later" && isAtEnd)
        #expect(task.countOfBytesReceived == content.utf8.count + 5 && task.countOfBytesSent == 5)
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.metrics?.transactionMetrics.count == 1)
        #expect(
            recorder.eventsOfTheTask
                == ["created", "response", "became stream", "write closed", "read closed", "metrics", "complete"])
        session.invalidateAndCancel()
    }

    /// The third of four requests on a connection becomes a stream; the fourth is sent again on another connection.
    @Test(.onlyWithHTTP11) func streamOfAPipelinedRequestReadsOnly() async throws {
        let connections = Mutex(0)
        let asked = Gate()
        let server = try await ConnectionServer { task in
            let number = connections.withLock { count in
                count += 1
                return count
            }
            guard number == 1 else {
                _ = try await task.head()
                return try await task.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")
            }
            _ = try await task.head()
            try await task.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
            var text = ""
            while text.ranges(of: "\r\n\r\n").count < 3 { text += try await task.hear(1) }
            try await task.say(
                "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"
                    + "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nearly")
            await asked.pass()
            try await task.say("late")
            _ = try await task.hearAll()
        }
        let recorder = ConnectionRecorder()
        let session = URLSession.test(recorder) {
            $0.httpMaximumConnectionsPerHost = 1
            $0.httpShouldUsePipelining = true
            $0.urlCache = nil
        }
        let url = server.url(scheme: "http")
        #expect(try await session.load(url).text == "first")
        let (second, last) = (Outcome<Data?>(), Outcome<Data?>())
        session.dataTask(with: url) { data, _, _ in second.give(data) }.resume()
        session.dataTask(with: url).resume()
        session.dataTask(with: url) { data, _, _ in last.give(data) }.resume()
        #expect(try await second.value() == Data("second".utf8))
        let task = try await recorder.stream.value()
        #expect(await recorder.log.has("write closed"))
        await #expect(throws: URLError.self) { try await task.write(Data("more".utf8), timeout: 0) }
        asked.open()
        let (bytes, _) = try await task.readData(ofMinLength: 9, maxLength: 9, timeout: 0)
        #expect(bytes == Data("earlylate".utf8) && task.countOfBytesSent == 0)
        #expect(try await last.value() == Data("last".utf8) && connections.withLock { $0 } == 2)
        task.cancel()
        session.invalidateAndCancel()
    }
}
