import Foundation
import Testing
import URLLoading

@Suite("Timeouts", .loading, .timeLimit(.minutes(20)))
struct TimeoutTests {
    @Test func requestTimeoutEndsAnIdleTask() async throws {
        let server = try await WebServer([
            "/": .hang, "/half": .head(200, ["Content-Length: 9"]).then(.send([1]), .hang),
        ])
        let session = URLSession.test { $0.timeoutIntervalForRequest = 0.3 }
        for path in ["/", "/half"] {
            let loaded = try await session.load(server.url(path))
            #expect(loaded.code == .timedOut, "\(path)")
            #expect((loaded.error as? URLError)?.failingURL == server.url(path))
        }
        session.invalidateAndCancel()
    }

    @Test func requestsTimeoutReplacesTheSessions() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test { $0.timeoutIntervalForRequest = 600 }
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 0.3
        #expect(try await session.load(request).code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test func requestTimeoutCountsFromTheLastByte() async throws {
        let server = try await WebServer()
        let gates = (0..<6).map { _ in Gate() }
        var steps = Answer.head(200, ["Content-Length: 6"]).steps
        for gate in gates { steps += [.wait(gate), .send([UInt8(ascii: "x")])] }
        server.on("/", Answer(steps))
        let pace = StepTimer()
        var policies = Policies()
        policies.data = { _, data in
            pace.step()
            // Each step is shorter than the timeout; together they are longer.
            guard data.count < gates.count else { return }
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.7) { gates[data.count].open() }
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.timeoutIntervalForRequest = 3 }
        session.dataTask(with: server.url()).resume()
        await server.hasReceived(1)
        pace.step()
        gates[0].open()
        let notes = try await recorder.end()
        pace.step()
        // On a machine that was paused for longer, the timeout is correct.
        #expect(notes.error == nil && notes.data.count == 6 || pace.longest > .seconds(2))
        session.invalidateAndCancel()
    }

    @Test func resourceTimeoutEndsAnActiveTask() async throws {
        let server = try await WebServer()
        let gates = (0..<40).map { _ in Gate() }
        var steps = Answer.head(200, ["Content-Length: 40"]).steps
        for gate in gates { steps += [.wait(gate), .send([1])] }
        server.on("/", Answer(steps))
        var policies = Policies()
        policies.data = { _, data in
            guard data.count < gates.count else { return }
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { gates[data.count].open() }
        }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder) { $0.timeoutIntervalForResource = 0.8 }
        gates[0].open()
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect((notes.error as? URLError)?.code == .timedOut && notes.data.count < 40)
        session.invalidateAndCancel()
    }

    /// One timer serves the session: it continues for tasks that began later.
    @Test func resourceTimeoutEndsEachTaskOfASession() async throws {
        let server = try await WebServer(["/": .hang])
        let session = URLSession.test { $0.timeoutIntervalForResource = 0.6 }
        async let first = session.load(server.url())
        // A session handles its tasks in order: when this load ends, the first task has begun.
        #expect(try await session.load(#require(URL(string: "data:,x"))).text == "x")
        async let second = session.load(server.url())
        #expect(try await first.code == .timedOut)
        #expect(try await second.code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test func resourceTimeoutCoversAllAttempts() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            let gate = Gate()
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { gate.open() }
            return Answer.redirect(to: "/?\(request.query.count % 5)").after(gate)
        }
        let session = URLSession.test { $0.timeoutIntervalForResource = 0.6 }
        #expect(try await session.load(server.url()).code == .timedOut)
        session.invalidateAndCancel()
    }

    @Test func timeoutsPauseWhileATaskIsSuspended() async throws {
        let gate = Gate()
        let server = try await WebServer(["/": .text("late").after(gate)])
        let recorder = DataRecorder()
        let session = URLSession.test(recorder) { $0.timeoutIntervalForRequest = 2 }
        let task = session.dataTask(with: server.url())
        let begun = ContinuousClock.now
        task.resume()
        await server.hasReceived(1)
        task.suspend()
        // A session handles its tasks in order: when this load ends, the other task is suspended.
        #expect(try await session.load(#require(URL(string: "data:,x"))).text == "x")
        // On a machine that is too slow for this, the timeout is correct.
        let before = begun.duration(to: .now)
        let passed = Gate()
        DispatchQueue.global().asyncAfter(deadline: .now() + 2.5) { passed.open() }
        await passed.pass()
        #expect(recorder.notes.completions == 0 || before >= .seconds(2))
        gate.open()
        let resumed = ContinuousClock.now
        task.resume()
        let notes = try await recorder.end()
        let running = before + resumed.duration(to: .now)
        #expect(notes.data == Data("late".utf8) || running >= .seconds(2))
        session.invalidateAndCancel()
    }

    @Test func timeoutsPauseWhileADelegateDecides() async throws {
        let server = try await WebServer(["/": .redirect(to: "/asks")])
        server.on("/asks", BasicAuthenticationTests.guarded())
        var policies = Policies()
        let pace = StepTimer()
        let later = { @Sendable (work: @escaping @Sendable () -> Void) in
            pace.step()
            DispatchQueue.global().asyncAfter(deadline: .now() + 2.5) {
                pace.begin()
                work()
            }
        }
        policies.redirect = { _, request, answer in later { answer(request) } }
        policies.challenge = { _, answer in
            later { answer(.useCredential, URLCredential(user: "user", password: "passwd", persistence: .none)) }
        }
        policies.response = { _, answer in later { answer(.allow) } }
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(server.url()) { $0.timeoutIntervalForRequest = 2 }
        pace.step()
        // Except where the paused machine delayed the server for that long.
        #expect(notes.error == nil && notes.data == Data("in".utf8) || pace.longest > .seconds(1))
    }

    @Test func redirectedRequestBringsItsTimeout() async throws {
        let server = try await WebServer(["/": .redirect(to: "/there"), "/there": .hang])
        var policies = Policies()
        // The redirected request has the only timeout of this test.
        policies.redirect = { _, request, answer in
            var request = request
            request.timeoutInterval = 0.3
            answer(request)
        }
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 600
        let recorder = DataRecorder(policies)
        let notes = try await recorder.run(request)
        #expect((notes.error as? URLError)?.code == .timedOut)
        #expect(notes.redirects.map(\.request.timeoutInterval) == [600])
    }
}
