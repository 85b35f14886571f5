import Foundation
import SessionTasks
import Testing
import URLLoading

@Suite("Loading with pipelined requests", .loading, .onlyWithHTTP11, .timeLimit(.minutes(20)))
struct PipeliningLoadingTests {
    private static func answer(_ text: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
    }

    /// Reads `count` heads of requests without a body.
    private static func readHeads(_ count: Int, of task: StreamTask) async throws {
        var text = ""
        while text.ranges(of: "\r\n\r\n").count < count { text += try await task.hear(1) }
    }

    /// The server answers the second and the third request only when both have arrived.
    @Test(arguments: [true, false])
    func requestsOfASessionOrByThemselvesArePipelined(isSessions: Bool) async throws {
        let server = try await ConnectionServer { task in
            try await Self.readHeads(1, of: task)
            try await task.say(Self.answer("first"))
            try await Self.readHeads(2, of: task)
            try await task.say(Self.answer("second") + Self.answer("third"))
        }
        let session = URLSession.test {
            $0.httpMaximumConnectionsPerHost = 1
            $0.httpShouldUsePipelining = isSessions
            $0.urlCache = nil
        }
        var request = URLRequest(url: server.url(scheme: "http"))
        request.httpShouldUsePipelining = !isSessions
        #expect(try await session.load(request).text == "first")
        let wanted = request
        let texts = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<2 { group.addTask { try await session.load(wanted).text } }
            return try await group.reduce(into: Set<String>()) { if let text = $1 { $0.insert(text) } }
        }
        #expect(texts == ["second", "third"])
        session.invalidateAndCancel()
    }
}
