import Foundation
import SessionTasks
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
}
