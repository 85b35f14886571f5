import Foundation
import StreamTransport
import Synchronization

/// The terminal that standard input and output are, if they are one.
enum Terminal {
    /// The settings that were there before ours; given back at the end, whatever ends the process in order.
    private static let former = Mutex<termios?>(nil)
    /// Registers once, when first asked for.
    private static let isGivenBackAtExit = atexit { Terminal.giveBack() } == 0

    static var isInteractive: Bool {
        isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && self.environment("TERM") != "dumb"
    }

    static var showsOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    static var showsErrors: Bool { isatty(STDERR_FILENO) == 1 && self.environment("TERM") != "dumb" }

    /// See no-color.org: any text but the empty one says no.
    static var wantsColors: Bool {
        self.showsOutput && (self.environment("NO_COLOR") ?? "").isEmpty && self.environment("TERM") != "dumb"
    }

    /// Cells in a row.
    static var columns: Int {
        for descriptor in [STDOUT_FILENO, STDERR_FILENO] {
            var size = winsize()
            if ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return Int(size.ws_col) }
        }
        return 80
    }

    static var rows: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0 else { return 24 }
        return Int(size.ws_row)
    }

    /// From here on keys come one by one, unprinted, Ctrl-C and the like among them.
    static func takeKeys() {
        self.former.withLock { former in
            var settings = termios()
            guard former == nil, tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
            former = settings
            SignalWatch.keepTerminal(true)
            cfmakeraw(&settings)
            // What is written still gets a carriage return with each end of line.
            settings.c_oflag |= tcflag_t(OPOST | ONLCR)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        }
        _ = self.isGivenBackAtExit
    }

    static func giveBack() {
        self.former.withLock { former in
            guard var settings = former else { return }
            // Not once all is shown: a terminal that is stopped shows nothing, and would hold up the end.
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
            SignalWatch.keepTerminal(false)
            former = nil
        }
    }

    /// Ctrl-Z: gives the terminal back and stops until somebody continues us.
    static func suspend() {
        self.giveBack()
        // To this thread, which may have it blocked: given to the process, another thread could take it, and this one would
        // go on for a while before all are stopped.
        var stop = sigset_t()
        var former = sigset_t()
        sigemptyset(&stop)
        sigaddset(&stop, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stop, &former)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &former, nil)
        self.takeKeys()
    }

    private static func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name]
    }
}
