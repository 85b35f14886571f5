import Foundation
import Testing
import URLLoading

@Suite("States and properties of tasks", .loading, .timeLimit(.minutes(20)))
struct TaskStateTests {
    @Test func taskGoesFromSuspendedToRunningToCompleted() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("done").after(gate)])
        let session = URLSession.test()
        let outcome = Outcome<Bool>()
        let task = session.dataTask(with: server.url()) { _, _, _ in outcome.give(true) }
        #expect(task.state == .suspended && task.response == nil && task.error == nil)
        #expect(task.originalRequest?.url == server.url() && task.currentRequest?.url == server.url())
        task.resume()
        #expect(task.state == .running)
        await server.hasReceived(1)
        gate.open()
        _ = try await outcome.value()
        #expect(task.state == .completed && task.error == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
        session.invalidateAndCancel()
    }

    @Test func taskStatesHaveFoundationsRawValues() {
        let states: [URLSessionTask.State] = [.running, .suspended, .canceling, .completed]
        #expect(states.map(\.rawValue) == [0, 1, 2, 3])
        #expect(URLSessionTask.defaultPriority == 0.5 && URLSessionTask.lowPriority == 0.25)
        #expect(URLSessionTask.highPriority == 0.75)
        let answers: [URLSession.AuthChallengeDisposition] = [
            .useCredential, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace,
        ]
        #expect(answers.map(\.rawValue) == [0, 1, 2, 3])
        let responses: [URLSession.ResponseDisposition] = [.cancel, .allow, .becomeDownload, .becomeStream]
        #expect(responses.map(\.rawValue) == [0, 1, 2, 3])
        let delays: [URLSession.DelayedRequestDisposition] = [.continueLoading, .useNewRequest, .cancel]
        #expect(delays.map(\.rawValue) == [0, 1, 2])
    }

    @Test func suspensionsAreCountedAgainstResumptions() async throws {
        let mayAnswer = Gate()
        let server = try await WebServer(["/": .text("done").after(mayAnswer)])
        let session = URLSession.test()
        let outcome = Outcome<Bool>()
        let task = session.dataTask(with: server.url()) { _, _, error in outcome.give(error == nil) }
        task.suspend()
        task.suspend()
        task.resume()
        #expect(task.state == .suspended)
        task.resume()
        #expect(task.state == .suspended)
        task.resume()
        #expect(task.state == .running)
        for _ in 0..<3 { task.resume() }
        mayAnswer.open()
        #expect(try await outcome.value() && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func suspendedTaskReceivesNothingFurther() async throws {
        let gate = Gate()
        let body = [UInt8](repeating: 1, count: 8 << 20)
        let server = try await WebServer()
        server.on("/", Answer.head(200, ["Content-Length: \(body.count)"]).then(.wait(gate), .send(body)))
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        #expect(await recorder.log.has("response 200"))
        task.suspend()
        #expect(task.state == .suspended)
        gate.open()
        for _ in 0..<200 { await Task.yield() }
        #expect(recorder.notes.completions == 0)
        task.resume()
        #expect(try await recorder.end().data.count == body.count)
        session.invalidateAndCancel()
    }

    @Test func cancelledTaskEndsOnce() async throws {
        let server = try await WebServer(["/": .hang])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        await server.hasReceived(1)
        task.cancel()
        #expect([.canceling, .completed].contains(task.state))
        task.cancel()
        task.resume()
        let notes = try await recorder.end()
        let error = try #require(notes.error as? URLError)
        #expect(error.code == .cancelled && error.localizedDescription == "cancelled")
        #expect(
            error.failingURL == server.url()
                && error.userInfo["NSErrorFailingURLStringKey"] as? String == server.url().absoluteString)
        #expect(task.state == .completed && (task.error as? URLError)?.code == .cancelled)
        #expect(await server.hasLost(0) && notes.completions == 1)
        session.invalidateAndCancel()
    }

    @Test func taskCancelledBeforeItBeginsEnds() async throws {
        let server = try await WebServer(["/": .text("never")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.cancel()
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
        #expect(server.connections == 0)
        session.invalidateAndCancel()
    }

    @Test func completedTaskCannotBeCancelled() async throws {
        let server = try await WebServer(["/": .text("done")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url())
        task.resume()
        _ = try await recorder.end()
        task.cancel()
        task.suspend()
        task.resume()
        #expect(task.state == .completed && task.error == nil && recorder.notes.completions == 1)
        session.invalidateAndCancel()
    }

    @Test func currentRequestIsTheRedirectedOne() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .text("hello")])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.dataTask(with: server.url("/"))
        task.resume()
        _ = try await recorder.end()
        #expect(task.originalRequest?.url == server.url("/") && task.currentRequest?.url == server.url("/there"))
        #expect(task.response?.url == server.url("/there"))
        session.invalidateAndCancel()
    }

    @Test func responseIsSetBeforeTheDelegateIsCalled() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let had = Outcome<Bool>()
        var policies = Policies()
        policies.data = { task, _ in had.give((task.response as? HTTPURLResponse)?.statusCode == 200) }
        let recorder = DataRecorder(policies)
        try await recorder.run(server.url())
        #expect(try await had.value())
    }

    @Test func taskKeepsDescriptionAndHints() {
        let session = URLSession.test()
        let task = session.dataTask(with: URL(filePath: "/"))
        #expect(task.taskDescription == nil && task.priority == 0.5 && task.prefersIncrementalDelivery)
        #expect(task.countOfBytesClientExpectsToSend == -1 && task.countOfBytesClientExpectsToReceive == -1)
        #expect(task.earliestBeginDate == nil && task.delegate == nil)
        task.taskDescription = "mine"
        task.priority = URLSessionTask.highPriority
        task.countOfBytesClientExpectsToSend = 3
        task.countOfBytesClientExpectsToReceive = 4
        task.earliestBeginDate = .distantPast
        task.prefersIncrementalDelivery = false
        #expect(task.taskDescription == "mine" && task.priority == 0.75 && !task.prefersIncrementalDelivery)
        #expect(task.countOfBytesClientExpectsToSend == 3 && task.countOfBytesClientExpectsToReceive == 4)
        #expect(task.earliestBeginDate == .distantPast)
        session.invalidateAndCancel()
    }
}
