import ArgumentParser
import CommandLineText
import SessionTasks
import StreamTransport

/// One `connect` from its beginning to its exit code.
struct ConnectRun {
    /// How long our end may take to be answered.
    static let closingTimeout: Duration = .seconds(6)

    /// From a signal to the end at the latest, whoever sleeps meanwhile: our end, its answer, and what was sent last.
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

    private func face(_ streams: StandardStreams, _ screen: Screen?) -> any ConnectFace {
        if let screen { return TerminalFace(screen: screen, voice: self.plan.voice) }
        if self.plan.printsJSON { return JSONFace(streams: streams, voice: self.plan.voice) }
        return PipeFace(
            streams: streams, endsMessages: self.plan.speaksWebSocket && self.plan.writesLines, lineEnd: [0x0A],
            voice: self.plan.voice, guardsTerminal: Terminal.showsOutput)
    }

    /// Were the process to end earlier, the kernel would answer what still arrives with a reset, which destroys what
    /// was sent last. Bounded by 1 s.
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
