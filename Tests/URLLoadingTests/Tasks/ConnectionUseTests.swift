import Foundation
import Testing
import URLLoading

@Suite("Connections that tasks share", .loading, .timeLimit(.minutes(20)))
struct ConnectionUseTests {
    @Test func connectionIsUsedAgain() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        for _ in 0..<5 { #expect(try await session.load(server.url()).text == "hello") }
        #expect(server.connections == 1 && server.requests.map(\.turn) == Array(0..<5))
        session.invalidateAndCancel()
        #expect(await server.hasLost(0))
    }

    @Test(.onlyWithHTTP11) func connectionsAreNoMoreThanTheConfigurationAllows() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("hello").after(gate)])
        let session = URLSession.test { $0.httpMaximumConnectionsPerHost = 2 }
        let outcomes = (0..<8).map { _ in Outcome<Loaded>() }
        for outcome in outcomes {
            session.dataTask(with: server.url()) { outcome.give(Loaded(data: $0, response: $1, error: $2)) }.resume()
        }
        await server.hasReceived(2)
        #expect(server.connections == 2)
        gate.open()
        for outcome in outcomes { #expect(try await outcome.value().text == "hello") }
        #expect(server.connections == 2)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func highestPriorityGoesFirst() async throws {
        let gate = Gate()
        let server = try await WebServer(["/first": .text("").after(gate)])
        for path in ["/low", "/default", "/high"] { server.on(path, .text(path)) }
        let other = try await WebServer(["/": .text("")])
        let session = URLSession.test { configuration in
            configuration.httpMaximumConnectionsPerHost = 1
            configuration.urlCache = nil
        }
        let first = session.dataTask(with: server.url("/first"))
        first.resume()
        await server.hasReceived(1)
        let done = (0..<3).map { _ in Outcome<Bool>() }
        let order: [(String, Float)] = [("/low", 0.25), ("/default", 0.5), ("/high", 0.25)]
        var tasks: [URLSessionTask] = []
        for (index, (path, priority)) in order.enumerated() {
            let task = session.dataTask(with: server.url(path)) { _, _, _ in done[index].give(true) }
            task.priority = priority
            task.resume()
            tasks.append(task)
        }
        // While it waits, too.
        tasks[2].priority = 0.9
        // A session handles its calls in order: when this load has ended, the others are queued.
        _ = try await session.data(from: other.url())
        gate.open()
        for outcome in done { _ = try await outcome.value() }
        #expect(server.requests.map(\.path) == ["/first", "/high", "/default", "/low"])
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func suspendedTaskLetsOthersHaveItsTurn() async throws {
        let gate = Gate()
        let server = try await WebServer(["/first": .text("").after(gate), "/": .text("late"), "/third": .text("soon")])
        let session = URLSession.test { $0.httpMaximumConnectionsPerHost = 1 }
        session.dataTask(with: server.url("/first")).resume()
        await server.hasReceived(1)
        let late = Outcome<Loaded>()
        let suspended = session.dataTask(with: server.url()) {
            late.give(Loaded(data: $0, response: $1, error: $2))
        }
        suspended.resume()
        async let third = session.load(server.url("/third"))
        // A session handles its calls in order: when this load has ended, the others are queued.
        #expect(try await session.load(#require(URL(string: "data:,x"))).text == "x")
        suspended.suspend()
        #expect(try await session.load(#require(URL(string: "data:,x"))).text == "x")
        gate.open()
        #expect(await server.hasReceived(2))
        #expect(server.requests.map(\.path) == ["/first", "/third"])
        suspended.resume()
        #expect(try await third.text == "soon")
        #expect(try await late.value().text == "late")
        session.invalidateAndCancel()
    }

    @Test func connectionMayBeClosedAfterEveryResponse() async throws {
        // Like small servers: the response does not announce that the connection closes.
        let server = try await WebServer(["/": .text("hello").closing])
        let session = URLSession.test()
        for _ in 0..<50 {
            for method in ["GET", "POST", "PUT", "DELETE", "HEAD"] {
                let loaded = try await session.load(.to(server.url(), method, body: method == "PUT" ? "up" : nil))
                #expect(loaded.error == nil && loaded.status == 200, "\(method)")
            }
        }
        session.invalidateAndCancel()
    }

    @Test func connectionMayBeClosedWhileAHandlerMakesTheNextRequest() async throws {
        let server = try await WebServer(["/": .text("hello").closing])
        let session = URLSession.test()
        for _ in 0..<50 {
            let outcome = Outcome<Loaded>()
            session.dataTask(with: .to(server.url(), "POST")) { _, _, _ in
                session.dataTask(with: .to(server.url(), "POST", body: "next")) {
                    outcome.give(Loaded(data: $0, response: $1, error: $2))
                }.resume()
            }.resume()
            #expect(try await outcome.value().error == nil)
        }
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func connectionCloseOfAResponseClosesTheConnection() async throws {
        let server = try await WebServer(["/": .text("hello", ["Connection: close"])])
        let session = URLSession.test()
        for _ in 0..<3 { #expect(try await session.load(server.url()).text == "hello") }
        #expect(server.connections == 3)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func requestLostOnAnIdleConnectionIsRepeated() async throws {
        let server = try await WebServer()
        server.on("/") { $0.turn == 0 ? .text("hello") : .close }
        let session = URLSession.test()
        #expect(try await session.load(server.url()).text == "hello")
        #expect(try await session.load(server.url()).text == "hello")
        #expect(server.requests.count == 3 && server.connections == 2)
        session.invalidateAndCancel()
    }
}
