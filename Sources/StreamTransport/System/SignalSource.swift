import CLinux

/// Signals that control the process, taken by a handler that needs no thread, loop or lock to end it.
///
/// The first signal to terminate starts the exit timeout, a second one shortens it to one second; when it passes, and at a
/// third signal, the process ends with `_exit`, whatever its threads are doing. The code that acts on signals (a loop or a
/// thread) receives them through an eventfd and usually ends the process cleanly long before.
@safe
package final class SignalSource {
    private let loop: Loop
    private let descriptor: Descriptor
    private var token: UInt64 = 0
    /// Called with each signal's number, once for several of the same kind that arrived since the last call.
    private let handler: (Int32) -> Void

    /// Replaces the default actions of these signals; they are kept until received. Once in a process, before its other
    /// threads are started.
    /// - Parameters:
    ///   - ending: signals that request the end of the process.
    ///   - others: all others.
    ///   - code: exit code after the exit timeout.
    /// - Throws: `SystemError` when there are not enough descriptors.
    package static func install(ending: [Int32], others: [Int32], exitCode code: Int32) throws(SystemError) {
        guard sluice_take_signals(Self.bits(ending), Self.bits(others), code) >= 0 else { throw .last }
    }

    private static func bits(_ signals: [Int32]) -> UInt64 {
        signals.reduce(0) { $0 | 1 << UInt64($1) }
    }

    /// - Parameter timeout: from the first ending signal to the end of the process, rounded up to seconds; `nil` waits for
    ///   a second signal. Counted from now if a signal was received already.
    package static func setExitTimeout(_ timeout: Duration?) {
        let seconds = timeout.map { max(1, $0.components.seconds + ($0.components.attoseconds > 0 ? 1 : 0)) }
        sluice_set_patience(UInt32(clamping: seconds ?? 0))
    }

    /// Receives the signals on `loop`, earlier ones included.
    /// - Throws: `SystemError` when there are not enough descriptors.
    package init(on loop: Loop, handler: @escaping (Int32) -> Void) throws(SystemError) {
        self.loop = loop
        self.handler = handler
        self.descriptor = try Descriptor(sluice_signal_waker()).duplicated().get()
        switch loop.watch(self.descriptor, for: .readable, self) {
        case .success(let token): self.token = token
        case .failure(let error):
            loop.system.close(self.descriptor)
            throw error
        }
    }

    /// Receives the signals on a thread of their own.
    /// - Throws: `SystemError` when the system gives no thread.
    package static func startThread(handler: @escaping @Sendable (Int32) -> Void) throws(SystemError) {
        let isStarted = SystemThread.start(named: "signals") {
            while true {
                sluice_await_signal()
                Self.deliver(to: handler)
            }
        }
        guard isStarted else { throw .wouldBlock }
    }

    private static func deliver(to handler: (Int32) -> Void) {
        let signals = sluice_signals_taken()
        for number in Int32(1)..<64 where signals & 1 << UInt64(number) != 0 { handler(number) }
    }

    /// Whether the exit after the timeout restores the present settings of the terminal on standard input.
    package static func keepTerminal(_ keeps: Bool) {
        sluice_keep_terminal(keeps ? 1 : 0)
    }
}

extension SignalSource: Watchable {
    package func ready(_ events: Interest) {
        Self.deliver(to: self.handler)
    }
}
