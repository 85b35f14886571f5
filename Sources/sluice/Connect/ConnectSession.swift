import CommandLineText
import SessionTasks
import Synchronization
import WebSocketProtocol

/// A connection and what is shown of it, steered by a `Conversation`.
final class ConnectSession: Sendable {
    let plan: ConnectPlan
    let link: any ConnectLink
    let face: any ConnectFace
    let outcome = ConnectOutcome()
    private let pulse = Pulse()
    private let events: AsyncStream<Conversation.Event>
    private let reports: AsyncStream<Conversation.Event>.Continuation
    private let closing = Mutex<(code: UInt16, reason: String)?>(nil)

    init(plan: ConnectPlan, link: any ConnectLink, face: any ConnectFace) {
        self.plan = plan
        self.link = link
        self.face = face
        // Each event comes once but for signals, so this is bounded by the patience of who sends them.
        (self.events, self.reports) = AsyncStream.makeStream()
    }

    func happened(_ event: Conversation.Event) {
        self.reports.yield(event)
    }

    /// Something of ours went wrong: the connection is ended in order, and the exit code tells.
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

    /// - Returns: what went wrong, told already; `nil` when all ended in order.
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

    /// From the connection to where it is shown, one after the other: what is not shown yet is not asked for.
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
