import CommandLineText
import Foundation
import StreamTransport
import Synchronization

/// The terminal that standard input and output are, if they are one.
enum Terminal {
    /// The settings that were there before ours; given back at the end, whatever ends the process in order.
    private static let former = Mutex<termios?>(nil)
    /// Registers once, on first use.
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
            // Output still gets a carriage return with each line end.
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

    /// Ctrl-Z: restores the terminal and stops until continued.
    static func suspend() {
        self.giveBack()
        // Sent to this thread, which may block it: sent to the process, another thread could take it, and this one
        // would continue for a while.
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

/// A terminal with an input line at its bottom and output above it.
actor Screen {
    enum Ink: String {
        case plain = ""
        case sent = "36"
        case received = "32"
        case note = "2"
        case fault = "31"
    }

    private static let prompt = "> "
    private let streams: StandardStreams
    private let colors: Bool
    private var editor = LineEditor()
    private var decoder = KeyDecoder()
    private var streamed = StreamedText()
    /// Whether the row of the editor is shown.
    private var isShown = false

    init(streams: StandardStreams, colors: Bool) {
        self.streams = streams
        self.colors = colors
    }

    /// Shows the line being written.
    func begin() async {
        self.isShown = true
        await self.write(self.row)
    }

    /// Takes the line being written away.
    func end() async {
        guard self.isShown else { return }
        self.isShown = false
        await self.write("\r\u{1B}[K")
    }

    /// Prints text above the input line; `mark` precedes its first row.
    /// - Parameter text: safe to print.
    func print(_ text: String, mark: String, _ ink: Ink) async {
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
        let lines = rows.enumerated().map { index, row in
            self.colored(index == 0 ? mark : String(repeating: " ", count: mark.count), ink) + row + "\n"
        }
        await self.write((self.isShown ? "\r\u{1B}[K" : "") + lines.joined() + (self.isShown ? self.row : ""))
    }

    /// Prints what a stream gave, as far as its characters are whole.
    func print(stream bytes: [UInt8], mark: String, _ ink: Ink) async {
        let text = self.streamed.text(bytes)
        guard !text.isEmpty else { return }
        // A CR is half of a line end, or overwrites a line: neither is shown. Other control characters are escaped.
        let lines = TerminalText.safe(String(text.unicodeScalars.filter { $0 != "\r" }))
        await self.print(lines.hasSuffix("\n") ? String(lines.dropLast()) : lines, mark: mark, ink)
    }

    /// - Returns: what the keys among these bytes came to, drawn already.
    func typed(_ bytes: [UInt8]) async -> [LineEditor.Event] {
        var events: [LineEditor.Event] = []
        var drawn = ""
        var isStale = false
        for key in self.decoder.keys(bytes) {
            let event = self.editor.pressed(key)
            switch event {
            case .submitted(let line):
                drawn += "\r\u{1B}[K" + self.colored(Self.prompt, .sent) + TerminalText.safe(line) + "\n"
                isStale = true
            case .refused: drawn += "\u{07}"
            case .cleared:
                drawn += "\u{1B}[H\u{1B}[2J"
                isStale = true
            case .changed: isStale = true
            case .interrupted, .endOfInput, .suspended: break
            }
            if event != .refused, event != .changed { events.append(event) }
        }
        // Once for all keys of a paste.
        await self.write(drawn + (isStale ? self.row : ""))
        return events
    }

    private var row: String {
        let row = EditorRow(
            self.editor.characters, cursor: self.editor.cursor, cells: Terminal.columns - Self.prompt.count)
        return row.drawn(prompt: self.colored(Self.prompt, .sent), promptCells: Self.prompt.count)
    }

    private func colored(_ text: String, _ ink: Ink) -> String {
        self.colors && ink != .plain ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// A closed terminal is noticed by its input.
    private func write(_ text: String) async {
        try? await self.streams.write(Array(text.utf8))
    }
}

/// Standard input and output of the process, without blocking a thread of Swift's pool.
///
/// Nothing is read before it is requested, and a write returns when it is done: a caller that awaits both limits what
/// is in memory.
final class StandardStreams: Sendable {
    enum Piece: Sendable {
        case bytes([UInt8])
        case end
        case failed(String)
    }

    static let pieceSize = 64 << 10

    // A queue each, since each may wait for long.
    private let reading = DispatchQueue(label: "standard input")
    private let writing = DispatchQueue(label: "standard output")

    /// Returns the available bytes, at most `pieceSize`; waits for the first.
    func read() async -> Piece {
        await withCheckedContinuation { continuation in
            self.reading.async { continuation.resume(returning: Self.readNow()) }
        }
    }

    /// - Throws: `ConnectFailure` when not all could be written.
    func write(_ bytes: [UInt8]) async throws(ConnectFailure) {
        let failure: ConnectFailure? = await withCheckedContinuation { continuation in
            self.writing.async { continuation.resume(returning: Self.writeNow(bytes)) }
        }
        if let failure { throw failure }
    }

    private static func readNow() -> Piece {
        var buffer = [UInt8](repeating: 0, count: self.pieceSize)
        while true {
            let count = Foundation.read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 { return .bytes(Array(buffer[..<count])) }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: self.wait(for: STDIN_FILENO, POLLIN)
            // A terminal whose other side is gone.
            case EIO: return .end
            default: return .failed(String(cString: strerror(errno)))
            }
        }
    }

    private static func writeNow(_ bytes: [UInt8]) -> ConnectFailure? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count =
                rest.withContiguousStorageIfAvailable { Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count) } ?? 0
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: self.wait(for: STDOUT_FILENO, POLLOUT)
            case EPIPE: return ConnectFailure(.inputOrOutput, "nobody reads standard output any more")
            default:
                return ConnectFailure(.inputOrOutput, "standard output: \(String(cString: strerror(errno)))")
            }
        }
        return nil
    }

    /// The descriptor was inherited in non-blocking mode.
    private static func wait(for descriptor: Int32, _ event: Int32) {
        var poll = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        _ = Foundation.poll(&poll, 1, -1)
    }
}
