import CLinux

/// Signals that control the process, taken by a handler that needs no thread, loop or lock to enforce the end.
///
/// The first signal to terminate starts a clock of `patience`, a second one a clock of one second; when it expires, and
/// at a third signal, the process ends with `_exit`, whatever its threads are doing. The code that acts on signals (a
/// loop or a thread) receives them through an eventfd and usually ends the process cleanly long before.
@safe
package final class SignalWatch {
    private let loop: Loop
    private let descriptor: Descriptor
    private var token: UInt64 = 0
    /// Called with each signal's number, once for several of the same kind that arrived since the last call.
    private let handler: (Int32) -> Void

    /// From here on these signals do not act by themselves; they wait to be heard. Once in a process, before its other
    /// threads are started.
    /// - Parameters:
    ///   - ending: those that ask for the end.
    ///   - others: those that do not.
    ///   - code: exit code of an end that the clock brings.
    /// - Throws: `SystemError` when there are not enough descriptors.
    package static func take(ending: [Int32], others: [Int32], exitCode code: Int32) throws(SystemError) {
        guard sluice_take_signals(Self.bits(ending), Self.bits(others), code) >= 0 else { throw .last }
    }

    private static func bits(_ signals: [Int32]) -> UInt64 {
        signals.reduce(0) { $0 | 1 << UInt64($1) }
    }

    /// - Parameter patience: maximum time from the first ending signal to the end of the process, rounded up to seconds;
    ///   `nil` waits for a second signal. If a signal was received already, counted from now.
    package static func set(patience: Duration?) {
        let seconds = patience.map { max(1, $0.components.seconds + ($0.components.attoseconds > 0 ? 1 : 0)) }
        sluice_set_patience(UInt32(clamping: seconds ?? 0))
    }

    /// Receives the signals on `loop`, earlier ones included.
    /// - Throws: `SystemError` when there are not enough descriptors.
    package init(on loop: Loop, heard: @escaping (Int32) -> Void) throws(SystemError) {
        self.loop = loop
        self.handler = heard
        self.descriptor = try Descriptor(sluice_signal_waker()).duplicated().get()
        switch loop.watch(self.descriptor, for: .readable, self) {
        case .success(let token): self.token = token
        case .failure(let error):
            loop.system.close(self.descriptor)
            throw error
        }
    }

    /// Hears the signals that were taken on a thread of their own.
    /// - Throws: `SystemError` when the system gives no thread.
    package static func hear(_ heard: @escaping @Sendable (Int32) -> Void) throws(SystemError) {
        let isStarted = SystemThread.start(named: "signals") {
            while true {
                sluice_await_signal()
                Self.taken(heard)
            }
        }
        guard isStarted else { throw .wouldBlock }
    }

    private static func taken(_ heard: (Int32) -> Void) {
        let signals = sluice_signals_taken()
        for number in Int32(1)..<64 where signals & 1 << UInt64(number) != 0 { heard(number) }
    }

    /// From here on the clock's end sets the terminal that standard input is to what it is set to now; or no more.
    package static func keepTerminal(_ keeps: Bool) {
        sluice_keep_terminal(keeps ? 1 : 0)
    }
}

extension SignalWatch: Watchable {
    package func ready(_ events: Interest) {
        Self.taken(self.handler)
    }
}
