import Foundation
import Observation
import Testing
import URLLoading

@Suite("Observed tasks", .loading, .timeLimit(.minutes(5)))
struct TaskObservationTests {
    @Test func tellOfTheirState() async throws {
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

    @Test func tellOfWhatCameAndOfTheEnd() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("hello").after(gate)])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        let told = (0..<4).map { _ in Outcome<Bool>() }
        withObservationTracking {
            _ = task.countOfBytesReceived
        } onChange: {
            told[0].give(true)
        }
        withObservationTracking {
            _ = task.response
        } onChange: {
            told[1].give(true)
        }
        withObservationTracking {
            _ = task.countOfBytesExpectedToReceive
        } onChange: {
            told[2].give(true)
        }
        withObservationTracking {
            _ = task.error
        } onChange: {
            told[3].give(true)
        }
        task.resume()
        await server.hasHeard(1)
        gate.open()
        for index in 0..<3 { #expect(try await told[index].value()) }
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

    @Test func areWatchedAsASequence() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test()
        let task = session.dataTask(with: server.url())
        let watching = Task {
            for await state in Observations({ task.state }) where state == .completed { return true }
            return false
        }
        task.resume()
        #expect(await watching.value)
        session.invalidateAndCancel()
    }
}
