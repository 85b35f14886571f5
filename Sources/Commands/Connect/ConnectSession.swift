import ArgumentParser
import CommandLineText
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// A connection and its output, driven by a `Conversation`.
final class ConnectSession: Sendable {
    let plan: ConnectPlan
    let link: any ConnectLink
    let face: any ConnectOutput
    let outcome = ConnectOutcome()
    private let pulse = Pulse()
    private let events: AsyncStream<Conversation.Event>
    private let reports: AsyncStream<Conversation.Event>.Continuation
    private let closing = Mutex<(code: UInt16, reason: String)?>(nil)

    init(plan: ConnectPlan, link: any ConnectLink, face: any ConnectOutput) {
        self.plan = plan
        self.link = link
        self.face = face
        // Each event occurs once except signals, so the sender of signals limits it.
        (self.events, self.reports) = AsyncStream.makeStream()
    }

    func happened(_ event: Conversation.Event) {
        self.reports.yield(event)
    }

    /// Handles a local failure: ends the connection in order, and sets the exit code.
    func fail(_ failure: ConnectFailure) {
        self.outcome.note(failure)
        self.happened(.interrupted)
    }

    /// Begins the end with this code in place of the plan's.
    func close(code: UInt16?, reason: String) {
        self.closing.withLock { $0 = (code ?? self.plan.closeCode.rawValue, reason) }
        self.happened(.interrupted)
    }

    // MARK: Life

    /// - Returns: the failure, already reported; `nil` for a clean end.
    func live(_ conversation: Conversation, input: any ConnectInput) async -> ConnectFailure? {
        var conversation = conversation
        try? await self.face.tell(.connecting("\(self.plan.url)"))
        await self.link.open(opened: { self.happened(.opened) }, closed: { self.happened(.closed) })
        let limit = self.after(self.plan.timeout) {
            self.outcome.note(ConnectFailure(opening: .timedOut, of: self.plan.url))
            self.link.abort()
        }
        var waiting: [Task<Void, Never>] = [limit]
        var progress = Progress()
        for await event in self.events {
            if event == .opened {
                limit.cancel()
                progress.wasOpen = true
            }
            let orders = conversation.happened(event)
            for order in orders { await self.perform(order, input: input, &progress, &waiting) }
            if orders.contains(.finish) { break }
        }
        for task in waiting { task.cancel() }
        return await self.conclude(conversation, progress)
    }

    private struct Progress {
        var wasOpen = false
        /// We said our end before the peer's was known.
        var endedFirst = false
    }

    private func perform(
        _ order: Conversation.Order, input: any ConnectInput, _ progress: inout Progress,
        _ waiting: inout [Task<Void, Never>]
    ) async {
        switch order {
        case .begin:
            do {
                try await self.face.tell(.opened(self.link.facts))
            } catch {
                self.fail(error)
            }
            Task { await self.carryOut() }
            Task { await input.feed() }
        case .awaitSilence(let duration):
            waiting.append(
                Task {
                    await self.pulse.silence(of: duration)
                    if !Task.isCancelled { self.happened(.silent) }
                })
        case .end:
            progress.endedFirst = true
            let (code, reason) = self.closing.withLock { $0 } ?? (self.plan.closeCode.rawValue, self.plan.closeReason)
            self.link.end(code: code, reason: reason)
        case .leave:
            progress.endedFirst = true
            self.link.leave()
        case .awaitClosing: waiting.append(self.after(ConnectRun.closingTimeout) { self.happened(.deadlinePassed) })
        case .abort: self.link.abort()
        case .finish: break
        }
    }

    private func after(_ duration: Duration, _ act: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            do {
                try await Task.sleep(for: duration)
                act()
            } catch {}
        }
    }

    // MARK: What comes

    /// Moves data from the connection to the output, one item after the other: nothing is read before the last item is
    /// shown.
    private func carryOut() async {
        do throws(ConnectFailure) {
            try await self.carryAll()
        } catch {
            self.fail(error)
        }
        self.happened(.outputEnded)
    }

    private func carryAll() async throws(ConnectFailure) {
        var lines = ReceivedLines(plan: self.plan)
        var isOver = false
        while !isOver {
            self.pulse.rest()
            let received = await self.link.receive()
            self.pulse.work()
            var events: [ConnectEvent] = []
            for one in received { events += try lines.events(one) }
            if self.plan.terms.wantsOneAnswer, let answer = events.firstIndex(where: lines.isAnswer) {
                try await self.face.tell(Array(events[...answer]))
                return self.happened(.answered)
            }
            try await self.face.tell(events)
            if case .end? = received.last { isOver = true }
        }
        if !self.plan.speaksWebSocket { try await self.face.tell(.ended) }
    }

    // MARK: The end

    private func conclude(_ conversation: Conversation, _ progress: Progress) async -> ConnectFailure? {
        let failure = self.failure(conversation, progress)
        let isClosed = failure == nil || failure?.kind == .closedWithCode || failure?.kind == .noAnswer
        if progress.wasOpen, isClosed {
            try? await self.face.tell(.closed(self.link.closingFacts(by: progress.endedFirst ? .us : .peer)))
        }
        if let failure { try? await self.face.tell(.failed(failure)) }
        return failure
    }

    private func failure(_ conversation: Conversation, _ progress: Progress) -> ConnectFailure? {
        if let own = self.outcome.failure { return own }
        if conversation.wasAborted {
            guard conversation.wasInterrupted else {
                return ConnectFailure(.outOfOrder, "the peer did not answer our end of the connection in time")
            }
            return ConnectFailure(.interrupted, "interrupted")
        }
        if let failure = self.link.failure(wasOpen: progress.wasOpen) { return failure }
        if conversation.lacksAnswer, !conversation.wasInterrupted {
            return ConnectFailure(.noAnswer, "no answer came", remedy: "a longer --wait waits for longer")
        }
        guard !progress.endedFirst, self.plan.speaksWebSocket else { return nil }
        let facts = self.link.closingFacts(by: .peer)
        guard let code = facts.code, ![1000, 1001, 1005].contains(code) else { return nil }
        let reason = facts.reason.isEmpty ? "" : " \"\(facts.reason)\""
        return ConnectFailure(.closedWithCode, "the peer closed with \(code)\(reason)")
    }
}

/// One `connect` from its beginning to its exit code.
struct ConnectRun {
    /// How long our end may take to be answered.
    static let closingTimeout: Duration = .seconds(6)

    /// From a signal to the end at the latest, even if a reader sleeps: our end, its answer, and the output sent last.
    private static let signalPatience = Self.closingTimeout + .seconds(3)

    let plan: ConnectPlan
    let loop: Loop

    func untilEnd() async throws -> ExitCode {
        let signals = try ProcessSignals(patience: Self.signalPatience)
        let streams = StandardStreams()
        let isInteractive = Terminal.isInteractive && !self.plan.printsJSON && !self.plan.terms.wantsOneAnswer
        let screen = isInteractive ? Screen(streams: streams, colors: Terminal.wantsColors) : nil
        let face = self.face(streams, screen)
        if self.plan.trustsAnyone {
            await face.note("warning: -k: the server's certificate is not verified; anybody may be the server")
        }
        var terms = self.plan.terms
        terms.endsWithPeer = isInteractive
        let link = await self.link()
        let session = ConnectSession(plan: self.plan, link: link, face: face)
        let source: any ConnectInput =
            if let screen { TypedInput(session: session, streams: streams, screen: screen) } else {
                PipedInput(session: session, streams: streams)
            }
        let watch = Task {
            for await _ in signals.wishes { session.happened(.interrupted) }
        }
        let failure = await session.live(Conversation(terms), input: source)
        watch.cancel()
        await self.awaitDeparture()
        await screen?.end()
        Terminal.giveBack()
        return failure?.exitCode ?? .success
    }

    private func link() async -> any ConnectLink {
        switch self.plan.opening {
        case .messages(let opening, let options):
            await MessageLink(opening, options, plan: self.plan, on: self.loop)
        case .stream(let target, let startTLS):
            StreamLink(target, startTLS, plan: self.plan, on: self.loop)
        case .attachment(let place): AttachedLink(place)
        }
    }

    private func face(_ streams: StandardStreams, _ screen: Screen?) -> any ConnectOutput {
        if let screen { return TerminalOutput(screen: screen, voice: self.plan.voice) }
        if self.plan.printsJSON { return JSONOutput(streams: streams, voice: self.plan.voice) }
        return PipeOutput(
            streams: streams, endsMessages: self.plan.speaksWebSocket && self.plan.writesLines, lineEnd: [0x0A],
            voice: self.plan.voice, guardsTerminal: Terminal.showsOutput)
    }

    /// If the process ended earlier, the kernel would answer further input with a reset, which destroys the output sent
    /// last. At most 1 s.
    private func awaitDeparture() async {
        let loop = self.loop
        let deadline = ContinuousClock.now.advanced(by: .seconds(1))
        while ContinuousClock.now < deadline {
            let isLeft = await withCheckedContinuation { continuation in
                loop.execute { continuation.resume(returning: loop.watchedCount > 0) }
            }
            guard isLeft else { return }
            try? await Task.sleep(for: .milliseconds(2))
        }
    }
}

/// Something that happened, as standard output or standard error may tell it.
enum ConnectEvent: Sendable {
    /// Before anything else.
    case connecting(String)
    case opened(ConnectionMetadata)
    /// A text message, or with `--binary` unset nothing else to say of it.
    case text(String)
    /// A binary message.
    case data([UInt8])
    /// Bytes from a stream.
    case bytes([UInt8])
    /// A line of a stream, without its end.
    case line([UInt8])
    case pong(payload: String, roundTrip: Duration)
    /// The peer has finished sending on a stream.
    case ended
    case closed(ClosingMetadata)
    case failed(ConnectFailure)
}

/// Source of the data to send.
protocol ConnectInput: Sendable {
    /// Sends until the input ends or nothing more can be sent; then notifies the session.
    func feed() async
}

/// The first failure, from whatever part noticed it.
final class ConnectOutcome: Sendable {
    private let first = Mutex<ConnectFailure?>(nil)

    var failure: ConnectFailure? { self.first.withLock { $0 } }

    func note(_ failure: ConnectFailure) {
        self.first.withLock { $0 = $0 ?? failure }
    }
}

/// One thing to send: a message, or bytes of a stream.
enum Outgoing: Sendable, Equatable {
    case text(String)
    case data([UInt8])

    var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let bytes): bytes.count
        }
    }
}

/// An item received from a connection.
enum Received: Sendable {
    case text(String)
    case data([UInt8])
    /// Of a stream.
    case bytes([UInt8])
    /// No more items; the connection's end says why.
    case end
}

/// Measures how long nothing was received; time spent writing output does not count.
final class Pulse: Sendable {
    private let idleSince = Mutex<ContinuousClock.Instant?>(nil)

    func rest() {
        self.idleSince.withLock { $0 = .now }
    }

    func work() {
        self.idleSince.withLock { $0 = nil }
    }

    /// Returns when nothing has come for `duration` from now on.
    func silence(of duration: Duration) async {
        let began = ContinuousClock.now
        while !Task.isCancelled {
            let now = ContinuousClock.now
            let since = max(began, self.idleSince.withLock { $0 } ?? now)
            guard since.advanced(by: duration) > now else { return }
            try? await Task.sleep(until: since.advanced(by: duration), clock: .continuous)
        }
    }
}
