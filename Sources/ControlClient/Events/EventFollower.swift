import ControlAPI
import Foundation

/// Follows a stream of numbered events, and comes back to it where it was when the connection is lost.
package struct EventFollower: Sendable {
    /// Pauses between attempts, which begin anew with each event.
    static let pauses: [Duration] = [.milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2), .seconds(4)]

    private let session: ControlSession
    private let request: ControlRequest
    /// The id of the last event, for the server to go on behind it.
    private var lastID = ""
    private var body: ControlBody?
    private var parser = EventStreamParser()
    private var waiting: [ServerSentEvent] = []
    private var failures = 0
    private var wasOpen = false

    /// - Parameter request: a GET.
    package init(_ session: ControlSession, _ request: ControlRequest) {
        self.session = session
        self.request = request
    }

    /// What comes next.
    package enum Step: Sendable {
        case event(ServerSentEvent)
        /// The connection is lost; it is tried again after the pause.
        case lost(ControlFailure, pause: Duration)
    }

    /// - Throws: `ControlFailure` when it cannot be opened at first, is refused later, or cannot be opened again.
    package mutating func next() async throws(ControlFailure) -> Step {
        while true {
            if !self.waiting.isEmpty { return .event(self.taken()) }
            do throws(ControlFailure) {
                try await self.read()
            } catch {
                guard self.wasOpen, [.noConnection, .later].contains(error.kind), self.failures < Self.pauses.count
                else {
                    throw error
                }
                let pause = Self.pauses[self.failures]
                self.failures += 1
                self.body = nil
                return .lost(error, pause: pause)
            }
        }
    }

    private mutating func taken() -> ServerSentEvent {
        let event = self.waiting.removeFirst()
        self.lastID = event.lastID
        self.failures = 0
        return event
    }

    private mutating func read() async throws(ControlFailure) {
        guard let body = self.body else { return try await self.open() }
        guard let bytes = try await body.next() else {
            self.body = nil
            throw ControlFailure(
                .noConnection, "\(self.session.address) ended the stream of events",
                remedy: "the gateway may have ended; its log says more")
        }
        do throws(EventStreamParser.Overflow) {
            self.waiting = try self.parser.events(bytes)
        } catch {
            throw ControlFailure(.nonsense, "an event is too long")
        }
    }

    private mutating func open() async throws(ControlFailure) {
        var request = self.request
        if !self.lastID.isEmpty {
            request.headers["Last-Event-ID"] = self.lastID
            request.parameters.removeAll { $0.name == "after" }
        }
        let (headers, body) = try await self.session.open(request, accept: "text/event-stream")
        guard headers.mediaType == "text/event-stream" else {
            throw ControlFailure(foreign: 200, at: self.session.address)
        }
        self.parser = EventStreamParser()
        self.body = body
        self.wasOpen = true
    }
}
