import ArgumentParser
import CommandLineText
import SessionTasks
import StreamTransport
import Synchronization
import WebSocketProtocol

/// One connection with its input and output, driven by a `Conversation`.
final class ConnectSession: Sendable {
    let plan: ConnectPlan
    let link: any ConnectLink
    let output: any ConnectOutput
    private let outcome = FirstFailure()
    private let idleMonitor = IdleMonitor()
    private let events: AsyncStream<Conversation.Event>
    private let continuation: AsyncStream<Conversation.Event>.Continuation
    private let requestedClose = Mutex<(code: UInt16, reason: String)?>(nil)

    init(plan: ConnectPlan, link: any ConnectLink, output: any ConnectOutput) {
        self.plan = plan
        self.link = link
        self.output = output
        // Bounded: each event occurs once, except signals, which `ProcessSignals` limits.
        (self.events, self.continuation) = AsyncStream.makeStream()
    }

    func post(_ event: Conversation.Event) {
        self.continuation.yield(event)
    }

    /// Records a local failure, which decides the exit code, and closes the connection.
    func fail(_ failure: ConnectFailure) {
        self.outcome.note(failure)
        self.post(.interrupted)
    }

    /// Closes the connection with this close code instead of the plan's.
    func close(code: UInt16?, reason: String) {
        self.requestedClose.withLock { $0 = (code ?? self.plan.closeCode.rawValue, reason) }
        self.post(.interrupted)
    }

    // MARK: Running

    /// - Returns: the failure, already reported; `nil` after a clean close.
    func run(_ conversation: Conversation, input: any ConnectInput) async -> ConnectFailure? {
        var conversation = conversation
        try? await self.output.write(.connecting("\(self.plan.url)"))
        await self.link.open(opened: { self.post(.opened) }, closed: { self.post(.closed) })
        let limit = self.after(self.plan.timeout) {
            self.outcome.note(ConnectFailure(opening: .timedOut, of: self.plan.url))
            self.link.abort()
        }
        var timers: [Task<Void, Never>] = [limit]
        var progress = Progress()
        for await event in self.events {
            if event == .opened {
                limit.cancel()
                progress.wasOpen = true
            }
            let actions = conversation.handle(event)
            for action in actions { await self.perform(action, input: input, &progress, &timers) }
            if actions.contains(.finish) { break }
        }
        for task in timers { task.cancel() }
        return await self.reportEnd(conversation, progress)
    }

    private struct Progress {
        var wasOpen = false
        /// We closed before the peer did.
        var endedFirst = false
    }

    private func perform(
        _ action: Conversation.Action, input: any ConnectInput, _ progress: inout Progress,
        _ timers: inout [Task<Void, Never>]
    ) async {
        switch action {
        case .begin:
            do {
                try await self.output.write(.opened(self.link.metadata))
            } catch {
                self.fail(error)
            }
            Task { await self.copyOutput() }
            Task { await input.feed() }
        case .awaitIdle(let duration):
            timers.append(
                Task {
                    await self.idleMonitor.untilIdle(for: duration)
                    if !Task.isCancelled { self.post(.idle) }
                })
        case .closeOutput:
            progress.endedFirst = true
            let (code, reason) =
                self.requestedClose.withLock { $0 } ?? (self.plan.closeCode.rawValue, self.plan.closeReason)
            self.link.closeOutput(code: code, reason: reason)
        case .stopReading:
            progress.endedFirst = true
            self.link.stopReading()
        case .startCloseTimer: timers.append(self.after(ConnectRun.closingTimeout) { self.post(.deadlinePassed) })
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

    // MARK: Receiving

    /// Copies data from the connection to the output. The next read starts after the last item is written.
    private func copyOutput() async {
        do throws(ConnectFailure) {
            try await self.copyUntilEnd()
        } catch {
            self.fail(error)
        }
        self.post(.outputEnded)
    }

    private func copyUntilEnd() async throws(ConnectFailure) {
        var formatter = ReceivedFormatter(plan: self.plan)
        var isOver = false
        while !isOver {
            self.idleMonitor.receiveStarted()
            let received = await self.link.receive()
            self.idleMonitor.receiveEnded()
            var events: [ConnectEvent] = []
            for one in received { events += try formatter.events(one) }
            if self.plan.settings.expectsSingleReply, let answer = events.firstIndex(where: formatter.isReply) {
                try await self.output.write(Array(events[...answer]))
                return self.post(.replied)
            }
            try await self.output.write(events)
            if case .end? = received.last { isOver = true }
        }
        if !self.plan.speaksWebSocket { try await self.output.write(.ended) }
    }

    // MARK: Closing

    private func reportEnd(_ conversation: Conversation, _ progress: Progress) async -> ConnectFailure? {
        let failure = self.failure(conversation, progress)
        let isClosed = failure == nil || failure?.kind == .closedWithCode || failure?.kind == .noAnswer
        if progress.wasOpen, isClosed {
            try? await self.output.write(.closed(self.link.closingMetadata(by: progress.endedFirst ? .us : .peer)))
        }
        if let failure { try? await self.output.write(.failed(failure)) }
        return failure
    }

    private func failure(_ conversation: Conversation, _ progress: Progress) -> ConnectFailure? {
        if let own = self.outcome.failure { return own }
        if conversation.wasAborted {
            guard conversation.wasInterrupted else {
                return ConnectFailure(.connectionLost, "the peer did not close the connection in time")
            }
            return ConnectFailure(.interrupted, "interrupted")
        }
        if let failure = self.link.failure(wasOpen: progress.wasOpen) { return failure }
        // It says why there is no answer.
        if let closing = self.closingFailure(conversation, progress) { return closing }
        guard conversation.isMissingReply, !conversation.wasInterrupted else { return nil }
        return ConnectFailure(.noAnswer, "no answer was received", remedy: "try a longer --wait")
    }

    private func closingFailure(_ conversation: Conversation, _ progress: Progress) -> ConnectFailure? {
        let hasReply = self.plan.settings.expectsSingleReply && !conversation.isMissingReply
        guard self.plan.speaksWebSocket, !hasReply else { return nil }
        let metadata = self.link.closingMetadata(by: progress.endedFirst ? .us : .peer)
        guard metadata.by == .peer, let code = metadata.code, ![1000, 1001, 1005].contains(code) else { return nil }
        let reason = metadata.reason.isEmpty ? "" : " \"\(metadata.reason)\""
        return ConnectFailure(.closedWithCode, "the peer closed with \(code)\(reason)")
    }
}

/// Runs `connect` and `attach` with validated arguments.
struct ConnectRun {
    /// Timeout for the peer's Close frame, or its end of the stream, after ours.
    static let closingTimeout: Duration = .seconds(6)

    /// Time from a signal until the process exits at the latest, even if standard output blocks: the closing handshake,
    /// and writing the last output.
    private static let signalPatience = Self.closingTimeout + .seconds(3)

    private let plan: ConnectPlan
    private let loop: Loop

    /// Runs `plan` on a loop of its own.
    static func run(_ plan: ConnectPlan) async throws -> ExitCode {
        let group = try LoopGroup(count: 1)
        let code = try await ConnectRun(plan: plan, loop: group.loops[0]).run()
        group.stop()
        return code
    }

    private func run() async throws -> ExitCode {
        let signals = try ProcessSignals(patience: Self.signalPatience)
        let streams = StandardStreams()
        let isInteractive = Terminal.isInteractive && !self.plan.printsJSON && !self.plan.settings.expectsSingleReply
        let screen = isInteractive ? Screen(streams: streams, colors: Terminal.wantsColors) : nil
        let output = self.output(streams, screen)
        if self.plan.skipsVerification {
            await output.note("warning: -k: the server's certificate is not verified")
        }
        var settings = self.plan.settings
        settings.endsWithPeer = isInteractive
        let link = await self.link()
        let session = ConnectSession(plan: self.plan, link: link, output: output)
        let input: any ConnectInput =
            if let screen { TerminalInput(session: session, streams: streams, screen: screen) } else {
                PipeInput(session: session, streams: streams)
            }
        let signalTask = Task {
            for await _ in signals.events { session.post(.interrupted) }
        }
        let failure = await session.run(Conversation(settings), input: input)
        signalTask.cancel()
        await self.awaitClosedSockets()
        await screen?.hide()
        Terminal.restore()
        return failure.map { ErrorReporter.exitCode(of: $0) } ?? .success
    }

    private func link() async -> any ConnectLink {
        switch self.plan.opening {
        case .webSocket(let opening, let options):
            await WebSocketLink(opening, options, plan: self.plan, on: self.loop)
        case .stream(let target, let startTLS):
            StreamLink(target, startTLS, plan: self.plan, on: self.loop)
        case .attachment(let attachment): AttachedLink(attachment)
        }
    }

    private func output(_ streams: StandardStreams, _ screen: Screen?) -> any ConnectOutput {
        if let screen { return TerminalOutput(screen: screen, verbosity: self.plan.verbosity) }
        if self.plan.printsJSON { return JSONOutput(streams: streams, verbosity: self.plan.verbosity) }
        return PipeOutput(
            streams: streams, endsMessages: self.plan.speaksWebSocket && self.plan.writesLines, lineEnd: [0x0A],
            verbosity: self.plan.verbosity, guardsTerminal: Terminal.isOutputTerminal)
    }

    /// Waits up to 1 s until the loop has closed its sockets. If the process exited earlier, the kernel would answer
    /// further input with a reset, and the peer could lose the data sent last.
    private func awaitClosedSockets() async {
        let loop = self.loop
        let deadline = ContinuousClock.now.advanced(by: .seconds(1))
        while ContinuousClock.now < deadline {
            let isOpen = await withCheckedContinuation { continuation in
                loop.execute { continuation.resume(returning: loop.watchedCount > 0) }
            }
            guard isOpen else { return }
            try? await Task.sleep(for: .milliseconds(2))
        }
    }
}

/// An event that `connect` writes to standard output or standard error.
enum ConnectEvent: Sendable {
    /// The first event.
    case connecting(String)
    case opened(ConnectionMetadata)
    /// A text message.
    case text(String)
    /// A binary message.
    case data([UInt8])
    /// Bytes from a stream.
    case bytes([UInt8])
    /// A line of a stream, without its terminator.
    case line([UInt8])
    case pong(payload: String, roundTrip: Duration)
    /// The peer has half-closed a stream.
    case ended
    case closed(ClosingMetadata)
    case failed(ConnectFailure)
}

/// Keeps the first failure of a session.
private final class FirstFailure: Sendable {
    private let first = Mutex<ConnectFailure?>(nil)

    var failure: ConnectFailure? { self.first.withLock { $0 } }

    func note(_ failure: ConnectFailure) {
        self.first.withLock { $0 = $0 ?? failure }
    }
}

/// Data to send: a message, or bytes of a stream.
enum OutgoingItem: Sendable, Equatable {
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
enum ReceivedItem: Sendable {
    case text(String)
    case data([UInt8])
    /// Bytes of a stream.
    case bytes([UInt8])
    /// No more items follow. The connection has the reason.
    case end
}

/// Measures the time without incoming data. Time spent writing output does not count.
private final class IdleMonitor: Sendable {
    private let idleSince = Mutex<ContinuousClock.Instant?>(nil)

    func receiveStarted() {
        self.idleSince.withLock { $0 = .now }
    }

    func receiveEnded() {
        self.idleSince.withLock { $0 = nil }
    }

    /// Returns after `duration` without incoming data, counted from this call.
    func untilIdle(for duration: Duration) async {
        let began = ContinuousClock.now
        while !Task.isCancelled {
            let now = ContinuousClock.now
            let since = max(began, self.idleSince.withLock { $0 } ?? now)
            guard since.advanced(by: duration) > now else { return }
            try? await Task.sleep(until: since.advanced(by: duration), clock: .continuous)
        }
    }
}

/// Turns received data into events, splitting a stream into lines if requested.
private struct ReceivedFormatter {
    private let wantsLines: Bool
    private let limit: Int
    private var splitter: LineSplitter

    init(plan: ConnectPlan) {
        self.wantsLines = !plan.speaksWebSocket && (plan.writesLines || plan.settings.expectsSingleReply)
        self.limit = plan.messageLimit
        self.splitter = LineSplitter(limit: plan.messageLimit)
    }

    mutating func events(_ received: ReceivedItem) throws(ConnectFailure) -> [ConnectEvent] {
        do throws(LineSplitter.Overflow) {
            switch received {
            case .text(let text): return [.text(text)]
            case .data(let bytes): return [.data(bytes)]
            case .bytes(let bytes):
                return self.wantsLines ? try self.splitter.lines(bytes).map { .line($0) } : [.bytes(bytes)]
            case .end: return try self.splitter.finish().map { [.line($0)] } ?? []
            }
        } catch {
            throw ConnectFailure(
                .connectionLost, "the peer sent a line longer than \(self.limit) bytes",
                remedy: "remove --lines to write bytes as they arrive")
        }
    }

    func isReply(_ event: ConnectEvent) -> Bool {
        switch event {
        case .text, .data, .line: true
        default: false
        }
    }
}
