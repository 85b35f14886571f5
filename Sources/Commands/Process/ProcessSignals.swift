import ArgumentParser
import ControlClient
import Foundation
import StreamTransport
import Synchronization

/// Signals that stop or reload the process, as an asynchronous sequence.
struct ProcessSignals {
    enum Event: Sendable {
        case stop
        case reload

        init(_ signal: Int32) {
            self = signal == SIGHUP ? .reload : .stop
        }
    }

    /// A third signal exits the process anyway.
    private static let bufferLimit = 2

    let events: AsyncStream<Event>

    /// Takes over SIGTERM, SIGINT and SIGHUP. The process still exits with `ExitStatus.interrupted` one second after a second signal,
    /// at a third signal, and when `patience` has passed after the first.
    /// - Parameter patience: `nil` waits for a second signal.
    init(patience: Duration?) throws(SystemError) {
        let (events, continuation) = AsyncStream.makeStream(
            of: Event.self, bufferingPolicy: .bufferingOldest(Self.bufferLimit))
        self.events = events
        if let host = HostProcess.current {
            host.onInterrupt { continuation.yield(.stop) }
            return
        }
        // Writing to a closed pipe must not end the process.
        signal(SIGPIPE, SIG_IGN)
        SignalSource.setExitTimeout(patience)
        try SignalSource.install(
            ending: [SIGTERM, SIGINT, SIGHUP], others: [], exitCode: ExitStatus.interrupted.rawValue)
        try SignalSource.startThread { continuation.yield(Event($0)) }
    }
}

/// Cancels work at the first signal; a second signal exits the process at once.
final class Interruption: Sendable {
    private struct State {
        var isRequested = false
        var cancel: (@Sendable () -> Void)?
    }

    /// Time from a signal until the process exits at the latest: work is cancelled, and its final state is fetched.
    private static let patience = Duration.seconds(30)

    private let state = Mutex(State())

    /// Starts handling signals, also those that arrive before the work starts.
    init() throws {
        let signals = try ProcessSignals(patience: Self.patience)
        Task {
            for await _ in signals.events { self.handleSignal() }
        }
    }

    private func handleSignal() {
        let (isSecond, cancel) = self.state.withLock { state in
            defer { state.isRequested = true }
            return (state.isRequested, state.cancel)
        }
        if isSecond { exit(ExitStatus.interrupted.rawValue) }
        cancel?()
    }

    /// - Parameter cancelled: runs after a signal, and replaces the result of `work`.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value, cancelled: () async throws -> Value
    ) async throws -> Value {
        let working = Task { try await work() }
        let isLate = self.state.withLock { state in
            state.cancel = { working.cancel() }
            return state.isRequested
        }
        if isLate { working.cancel() }
        do {
            return try await working.value
        } catch let error where working.isCancelled && Self.isCancellation(error) {
            return try await cancelled()
        }
    }

    private static func isCancellation(_ error: any Error) -> Bool {
        error is CancellationError || (error as? ControlFailure)?.kind == .cancelled
    }
}
