import CLinux

/// Signals as events of a loop (signalfd(2)): they need no thread of their own, and no handler that interrupts another.
///
/// On the loop's thread, but for `hold`.
@safe
package final class SignalWatch {
    private let loop: Loop
    private let descriptor: Descriptor
    private var token: UInt64 = 0
    /// Called with each signal's number, once for several of one kind that came before anybody looked.
    private let heard: (Int32) -> Void

    /// From here on `signals` do not act by themselves on this thread and those that it starts; they wait to be heard.
    /// Called before any thread is started: another thread would be ended by them.
    package static func hold(_ signals: [Int32]) {
        unsafe withSet(signals) { _ = unsafe pthread_sigmask(SIG_BLOCK, $0, nil) }
    }

    /// Hears `signals`, which are held, those too that came before.
    /// - Throws: `SystemError` when there are not enough descriptors.
    package init(_ signals: [Int32], on loop: Loop, heard: @escaping (Int32) -> Void) throws(SystemError) {
        self.loop = loop
        self.heard = heard
        let flags = Int32(SFD_NONBLOCK | SFD_CLOEXEC)
        let number = unsafe Self.withSet(signals) { unsafe signalfd(-1, $0, flags) }
        guard number >= 0 else { throw SystemError(sluice_errno()) }
        self.descriptor = Descriptor(number)
        switch loop.watch(self.descriptor, for: .readable, self) {
        case .success(let token): self.token = token
        case .failure(let error):
            loop.system.close(self.descriptor)
            throw error
        }
    }

    private static func withSet<R>(_ signals: [Int32], _ body: (UnsafePointer<sigset_t>) -> R) -> R {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for signal in signals { unsafe sigaddset(&set, signal) }
        return unsafe body(&set)
    }
}

extension SignalWatch: Watchable {
    package func ready(_ events: Interest) {
        var information = signalfd_siginfo()
        let size = MemoryLayout<signalfd_siginfo>.size
        while unsafe read(self.descriptor.number, &information, size) == size {
            self.heard(Int32(bitPattern: information.ssi_signo))
        }
    }
}
