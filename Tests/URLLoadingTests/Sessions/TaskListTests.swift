import Foundation
import Testing
import URLLoading

@Suite("Lists of a session's tasks", .loading, .timeLimit(.minutes(20)))
struct TaskListTests {
    @Test func taskListIsSortedByKind() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let data = session.dataTask(with: server.url())
        let upload = session.uploadTask(with: .to(server.url(), "PUT"), from: Data([1]))
        let download = session.downloadTask(with: server.url())
        for task in [data, upload, download] { task.resume() }
        let lists = Outcome<[[URLSessionTask]]>()
        session.getTasksWithCompletionHandler { lists.give([$0, $1, $2]) }
        #expect(try await lists.value() == [[data], [upload], [download]])
        let found = await session.tasks
        #expect(found.0 == [data] && found.1 == [upload] && found.2 == [download])
        #expect(Set(await session.allTasks) == [data, upload, download])
        #expect(Set(try await session.liveTasks()) == [data, upload, download])
        session.invalidateAndCancel()
    }

    @Test func taskListOmitsCompletedTasks() async throws {
        let server = try await WebServer(["/": .text("done"), "/hang": .hang])
        let session = URLSession.test()
        _ = try await session.load(server.url("/"))
        let live = session.dataTask(with: server.url("/hang"))
        live.resume()
        let cancelled = session.dataTask(with: server.url("/hang"))
        cancelled.resume()
        cancelled.cancel()
        #expect(try await session.liveTasks() == [live])
        live.suspend()
        #expect(try await session.liveTasks() == [live])
        session.invalidateAndCancel()
    }

    @Test func invalidSessionHasNoTasks() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let never = session.dataTask(with: server.url())
        session.dataTask(with: server.url()).resume()
        session.invalidateAndCancel()
        #expect(try await session.liveTasks().isEmpty)
        never.resume()
        #expect(try await session.liveTasks().isEmpty)
    }

    @Test func taskListOmitsInvalidTasks() async throws {
        let server = try await WebServer(["/": .text("done")])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        task.cancel()
        task.resume()
        #expect(try await session.liveTasks().isEmpty && task.state != .running)
        session.invalidateAndCancel()
    }

    @Test func taskIdentifiersStartAtOne() {
        let session = URLSession.test()
        let url = URL(string: "http://a.test/")
        let tasks: [URLSessionTask] = (0..<4).compactMap { index in
            url.map { index % 2 == 0 ? session.dataTask(with: $0) : session.downloadTask(with: $0) }
        }
        #expect(tasks.map(\.taskIdentifier) == [1, 2, 3, 4])
        session.invalidateAndCancel()
    }
}
