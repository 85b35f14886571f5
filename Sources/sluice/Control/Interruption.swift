import ControlClient
import Foundation
import Synchronization

/// Signals as a wish to end work in order; a second one ends the process at once.
final class Interruption: Sendable {
    private struct State {
        var isAsked = false
        var cancel: (@Sendable () -> Void)?
    }

    /// From a signal to the end at the latest: work is ended in order, and the gateway is asked how it ended.
    private static let patience = Duration.seconds(30)

    private let state = Mutex(State())

    /// From here on signals are heard, before there is any work too.
    init() throws {
        let signals = try ProcessSignals(patience: Self.patience)
        Task {
            for await _ in signals.wishes { self.happened() }
        }
    }

    private func happened() {
        let (isSecond, cancel) = self.state.withLock { state in
            defer { state.isAsked = true }
            return (state.isAsked, state.cancel)
        }
        if isSecond { exit(130) }
        cancel?()
    }

    /// - Parameter cancelled: what is done after a signal, in place of what `work` would have given.
    func guarding<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value, cancelled: () async throws -> Value
    ) async throws -> Value {
        let working = Task { try await work() }
        let isLate = self.state.withLock { state in
            state.cancel = { working.cancel() }
            return state.isAsked
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
