import RedisEngine
import Testing

/// Every event in every state. Each cell says what the event returns there.
@Suite("States of a connection to Redis")
struct ConnectionStateTests {
    enum State: CaseIterable, Sendable {
        case connecting, hello, authenticating, naming, selecting, ready, subscribed, ended
    }

    enum Input: CaseIterable, Sendable {
        case connected, submit, subscribe, ok, error, push, garbage, deadline, transportEnded, close, takeOutput
    }

    private static func harness(_ state: State) throws -> ConnectionHarness {
        var settings = RedisConnectionSettings()
        settings.credentials = RedisCredentials(password: "s3cret")
        settings.clientName = "n"
        settings.database = 1
        var harness = ConnectionHarness(settings)
        if state == .connecting { return harness }
        #expect(harness.connect() == nil)
        _ = harness.sent()
        let steps: [State: [String]] = [
            .authenticating: ["-NOPROTO no\r\n"], .naming: ["-NOPROTO no\r\n", "+OK\r\n"],
            .selecting: ["-NOPROTO no\r\n", "+OK\r\n", "+OK\r\n"],
        ]
        for reply in steps[state] ?? [] { #expect(harness.receive(reply) == []) }
        if state == .ready || state == .subscribed || state == .ended {
            #expect(harness.receive(RecordedReply.hello.bytes) == [])
            #expect(harness.receive("+OK\r\n").count == 1)
        }
        if state == .subscribed {
            _ = try harness.subscribe(.channel, "news")
            #expect(harness.receive(">3\r\n+subscribe\r\n+news\r\n:1\r\n").count == 1)
        }
        if state == .ended { #expect(harness.connection.close() != nil) }
        _ = harness.sent()
        return harness
    }

    private static func name(_ event: RedisConnection.Event?) -> String {
        switch event {
        case nil: "-"
        case .ready: "ready"
        case .reply: "reply"
        case .push: "push"
        case .ended(.violation, _): "violation"
        case .ended(.handshakeRefused, _): "refused"
        case .ended(.handshakeTimeout, _): "timeout"
        case .ended(.commandTimeout, _), .ended(.pingTimeout, _): "no answer"
        case .ended(.notPrimary, _): "no primary"
        case .ended(.lost, _): "lost"
        case .ended(.closed, _): "closed"
        }
    }

    private static func outcome(_ input: Input, _ state: State) throws -> String {
        var harness = try self.harness(state)
        func received(_ text: String) -> String {
            let events = harness.receive(text)
            return events.isEmpty ? "-" : events.map(self.name).joined(separator: " ")
        }
        switch input {
        case .connected: return self.name(harness.connect())
        case .submit:
            do {
                _ = try harness.submit("GET", "a")
                return harness.connection.hasOutput ? "output" : "queued"
            } catch {
                return "\(error)" == "\(RedisRefusal.ended)" ? "has ended" : "\(error)"
            }
        case .subscribe:
            do {
                _ = try harness.subscribe(.channel, "a")
                return harness.connection.hasOutput ? "output" : "queued"
            } catch {
                return "\(error)" == "\(RedisRefusal.ended)" ? "has ended" : "\(error)"
            }
        case .ok: return received("+OK\r\n")
        case .error: return received("-ERR no\r\n")
        case .push: return received(">3\r\n+message\r\n+a\r\n+b\r\n")
        case .garbage: return received("GET / HTTP/1.1\r\n")
        case .deadline:
            let event = harness.passTime(.seconds(60))
            return event == nil && harness.connection.hasOutput ? "output" : self.name(event)
        case .transportEnded: return self.name(harness.connection.transportEnded())
        case .close: return self.name(harness.connection.close())
        case .takeOutput: return harness.sent() == "" ? "-" : "output"
        }
    }

    /// In the order of `State.allCases`.
    private static let outcomes: [Input: [String]] = [
        .connected: ["-", "-", "-", "-", "-", "-", "-", "-"],
        .submit: ["queued", "queued", "queued", "queued", "queued", "output", "output", "has ended"],
        .subscribe: ["queued", "queued", "queued", "queued", "queued", "output", "output", "has ended"],
        .ok: ["violation", "violation", "-", "-", "ready", "violation", "violation", "-"],
        .error: ["violation", "refused", "refused", "-", "refused", "violation", "violation", "-"],
        .push: ["violation", "push", "push", "push", "push", "push", "push", "-"],
        .garbage: ["violation", "violation", "violation", "violation", "violation", "violation", "violation", "-"],
        .deadline: ["-", "timeout", "timeout", "timeout", "timeout", "output", "output", "-"],
        .transportEnded: ["lost", "lost", "lost", "lost", "lost", "lost", "lost", "-"],
        .close: ["closed", "closed", "closed", "closed", "closed", "closed", "closed", "-"],
        .takeOutput: ["-", "-", "-", "-", "-", "-", "-", "-"],
    ]

    @Test(arguments: Input.allCases)
    func everyEventHasItsOutcomeInEveryState(_ input: Input) throws {
        let expected = try #require(Self.outcomes[input])
        for (state, outcome) in zip(State.allCases, expected) {
            #expect(try Self.outcome(input, state) == outcome, "\(input) while \(state)")
        }
    }

    @Test(arguments: State.allCases)
    func endedConnectionHoldsNothing(_ state: State) throws {
        var harness = try Self.harness(state)
        _ = try? harness.submit("GET", "a")
        _ = harness.connection.close()
        #expect(!harness.connection.hasOutput)
        #expect(harness.connection.unansweredCount == 0)
        #expect(harness.connection.nextDeadline == nil)
        #expect(!harness.connection.isReady)
    }

    @Test func commandMayTimeOutBeforeTheTransportIsConnected() throws {
        var harness = ConnectionHarness()
        let id = try harness.submit("GET", "a")
        #expect(harness.connection.nextDeadline == harness.now + .seconds(1))
        #expect(
            harness.passTime(.seconds(1)) == .ended(.commandTimeout(id), RedisAbandonedCommands(unsent: [id])))
    }
}
