import Foundation
import Observation
import Testing
import URLLoading

@Suite("Observed tasks", .loading, .timeLimit(.minutes(20)))
struct TaskObservationTests {
    @Test func stateIsObservable() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        let running = Outcome<Bool>()
        withObservationTracking {
            _ = task.state
        } onChange: {
            running.give(true)
        }
        task.resume()
        #expect(try await running.value())
        let ending = Outcome<Bool>()
        withObservationTracking {
            _ = task.state
        } onChange: {
            ending.give(true)
        }
        task.cancel()
        #expect(try await ending.value())
        session.invalidateAndCancel()
    }

    @Test func receivedBytesAndTheEndAreObservable() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("hello").after(gate)])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        let notifications = (0..<4).map { _ in Outcome<Bool>() }
        withObservationTracking {
            _ = task.countOfBytesReceived
        } onChange: {
            notifications[0].give(true)
        }
        withObservationTracking {
            _ = task.response
        } onChange: {
            notifications[1].give(true)
        }
        withObservationTracking {
            _ = task.countOfBytesExpectedToReceive
        } onChange: {
            notifications[2].give(true)
        }
        withObservationTracking {
            _ = task.error
        } onChange: {
            notifications[3].give(true)
        }
        task.resume()
        await server.hasReceived(1)
        gate.open()
        for index in 0..<3 { #expect(try await notifications[index].value()) }
        let failing = session.dataTask(with: server.url("/"))
        let error = Outcome<Bool>()
        withObservationTracking {
            _ = failing.error
        } onChange: {
            error.give(true)
        }
        failing.cancel()
        #expect(try await error.value())
        session.invalidateAndCancel()
    }

    @Test func byteCountsAreObservableAtTheEnd() async throws {
        let streams = try await ConnectionServer(StreamTaskTests.echo)
        let webSockets = try await ConnectionServer { task in _ = await (try await task.accept()).echo() }
        let session = URLSession.test()
        let stream = session.streamTask(withHostName: "127.0.0.1", port: streams.port)
        let webSocket = session.webSocketTask(with: webSockets.url())
        let notifications = [stream, webSocket].map { (task: URLSessionTask) in
            let (sent, received) = (Outcome<Bool>(), Outcome<Bool>())
            withObservationTracking {
                _ = task.countOfBytesSent
            } onChange: {
                sent.give(true)
            }
            withObservationTracking {
                _ = task.countOfBytesReceived
            } onChange: {
                received.give(true)
            }
            task.resume()
            return (sent, received)
        }
        try await stream.write(Data("hello".utf8), timeout: 0)
        _ = try await stream.readData(ofMinLength: 5, maxLength: 5, timeout: 0)
        try await webSocket.send(.string("four"))
        _ = try await webSocket.receive()
        stream.cancel()
        webSocket.cancel(with: .normalClosure, reason: nil)
        for (sent, received) in notifications {
            #expect(try await sent.value())
            #expect(try await received.value())
        }
        session.finishTasksAndInvalidate()
        #expect(stream.countOfBytesSent == 5 && stream.countOfBytesReceived == 5)
        #expect(webSocket.countOfBytesSent == 4 && webSocket.countOfBytesReceived == 4)
    }

    /// An observer that reads again at once, on another thread, gets no further notification: it must see the new value.
    @Test func observationReportsTheCurrentValue() async throws {
        let session = URLSession.test()
        let task = session.dataTask(with: try #require(URL(string: "http://127.0.0.1:1/")))
        let seen = Outcome<URLSessionTask.State>()
        withObservationTracking {
            _ = task.state
        } onChange: {
            let hasLooked = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                seen.give(task.state)
                hasLooked.signal()
            }
            hasLooked.wait()
        }
        task.cancel()
        #expect(try await seen.value() != .suspended)
        session.invalidateAndCancel()
    }

    @Test func stateIsObservedAsASequence() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        // The sequence misses a change between its read and its registration, so each change is awaited.
        var states = Observations { task.state }.makeAsyncIterator()
        #expect(await states.next() == .suspended)
        task.resume()
        #expect(await states.next() == .running)
        task.cancel()
        let last = await states.next()
        #expect(last == .canceling || last == .completed)
        session.invalidateAndCancel()
    }
}
