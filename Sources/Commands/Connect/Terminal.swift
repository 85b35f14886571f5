import CommandLineText
import Foundation
import StreamTransport
import Synchronization

/// The controlling terminal on standard input and output, if any.
enum Terminal {
    /// Terminal settings before raw mode; restored at exit.
    private static let savedSettings = Mutex<termios?>(nil)
    /// Registers once, on first use.
    private static let isRestoredAtExit = atexit { Terminal.restore() } == 0

    static var isInteractive: Bool {
        self.isTerminal(STDIN_FILENO) && self.isTerminal(STDOUT_FILENO) && HostProcess.variable("TERM") != "dumb"
    }

    static var isOutputTerminal: Bool { self.isTerminal(STDOUT_FILENO) }
    static var isErrorTerminal: Bool { self.isTerminal(STDERR_FILENO) && HostProcess.variable("TERM") != "dumb" }

    /// NO_COLOR with any non-empty value disables colours (no-color.org).
    static var wantsColors: Bool {
        self.isOutputTerminal && (HostProcess.variable("NO_COLOR") ?? "").isEmpty
            && HostProcess.variable("TERM") != "dumb"
    }

    /// Width in cells.
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

    /// Enters raw mode: keys are read one by one without echo, Ctrl-C and Ctrl-Z included.
    static func enterRawMode() {
        self.savedSettings.withLock { former in
            var settings = termios()
            guard former == nil, tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
            former = settings
            SignalSource.keepTerminal(true)
            cfmakeraw(&settings)
            // Output still gets a carriage return with each line end.
            settings.c_oflag |= tcflag_t(OPOST | ONLCR)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        }
        _ = self.isRestoredAtExit
    }

    static func restore() {
        self.savedSettings.withLock { former in
            guard var settings = former else { return }
            // Not TCSADRAIN: a terminal stopped by Ctrl-S never drains, and would block the exit.
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
            SignalSource.keepTerminal(false)
            former = nil
        }
    }

    /// Ctrl-Z: restores the terminal and stops until continued.
    static func suspend() {
        self.restore()
        // Sent to this thread, which may block the signal: sent to the process, another thread could take it while this
        // one continues for a while.
        var stop = sigset_t()
        var former = sigset_t()
        sigemptyset(&stop)
        sigaddset(&stop, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stop, &former)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &former, nil)
        self.enterRawMode()
    }

    private static func isTerminal(_ descriptor: Int32) -> Bool {
        HostProcess.current == nil && isatty(descriptor) == 1
    }
}

/// A terminal with an input line at its bottom and output above it.
actor Screen {
    private static let prompt = "> "
    private let streams: StandardStreams
    private let colors: Bool
    private var editor = LineEditor()
    private var decoder = KeyDecoder()
    private var streamed = UTF8StreamDecoder()
    /// Whether the input line is shown.
    private var isShown = false

    init(streams: StandardStreams, colors: Bool) {
        self.streams = streams
        self.colors = colors
    }

    /// Shows the input line.
    func show() async {
        self.isShown = true
        await self.write(self.row)
    }

    /// Erases the input line.
    func hide() async {
        guard self.isShown else { return }
        self.isShown = false
        await self.write("\r\u{1B}[K")
    }

    /// Prints text above the input line; `mark` precedes its first row.
    /// - Parameter text: must be sanitized.
    func print(_ text: String, mark: String, _ style: TextStyle) async {
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
        let lines = rows.enumerated().map { index, row in
            self.colored(index == 0 ? mark : String(repeating: " ", count: mark.count), style) + row + "\n"
        }
        await self.write((self.isShown ? "\r\u{1B}[K" : "") + lines.joined() + (self.isShown ? self.row : ""))
    }

    /// Prints bytes of a stream; an incomplete character at the end waits for its remaining bytes.
    func print(stream bytes: [UInt8], mark: String, _ style: TextStyle) async {
        let text = self.streamed.decode(bytes)
        guard !text.isEmpty else { return }
        // CR is dropped: it is part of CRLF, or would overwrite the line. Other control characters are escaped.
        let lines = TerminalText.sanitized(String(text.unicodeScalars.filter { $0 != "\r" }))
        await self.print(lines.hasSuffix("\n") ? String(lines.dropLast()) : lines, mark: mark, style)
    }

    /// Edits the input line and redraws it.
    /// - Returns: the events that the caller has to handle.
    func handleInput(_ bytes: [UInt8]) async -> [LineEditor.Event] {
        var events: [LineEditor.Event] = []
        var output = ""
        var needsRedraw = false
        for key in self.decoder.decode(bytes) {
            let event = self.editor.handle(key)
            switch event {
            case .submitted(let line):
                output += "\r\u{1B}[K" + self.colored(Self.prompt, .cyan) + TerminalText.sanitized(line) + "\n"
                needsRedraw = true
            case .refused: output += "\u{07}"
            case .cleared:
                output += "\u{1B}[H\u{1B}[2J"
                needsRedraw = true
            case .changed: needsRedraw = true
            case .interrupted, .endOfInput, .suspended: break
            }
            if event != .refused, event != .changed { events.append(event) }
        }
        // One write for all keys of a paste.
        await self.write(output + (needsRedraw ? self.row : ""))
        return events
    }

    private var row: String {
        let row = EditorRow(
            self.editor.characters, cursor: self.editor.cursor, cells: Terminal.columns - Self.prompt.count)
        return row.rendered(prompt: self.colored(Self.prompt, .cyan), promptCells: Self.prompt.count)
    }

    private func colored(_ text: String, _ style: TextStyle) -> String {
        self.colors ? style.applied(to: text) : text
    }

    /// Errors are ignored: a closed terminal is detected on input.
    private func write(_ text: String) async {
        try? await self.streams.write(Array(text.utf8))
    }
}
