import ByteKernels
import GatewayConfiguration
import StreamTransport
import Synchronization
import WireText

/// Takes lines from any thread and writes them from a thread of its own, so that a slow reader or a full disk delays
/// neither connections nor the start and end of the process.
///
/// Bounded: lines beyond `limit` waiting bytes are dropped and counted, and the count is logged as soon as the reader
/// takes lines again.
package final class LogWriter: Sendable {
    /// Bytes of queued lines; the writing thread may hold as many again.
    package static let limit = 4 << 20
    /// How long `flush` waits for a reader that takes no lines.
    package static let flushTimeout = Duration.seconds(2)
    /// Interval at which `flush` checks for completion at the end of the process.
    private static let pause = Duration.milliseconds(2)

    private struct Queue {
        var waiting: [UInt8] = []
        var dropped = 0
        var writing = false
    }

    private let queue = Mutex(Queue())
    private let write: @Sendable ([UInt8]) -> Void
    private let notice: @Sendable (Int) -> String
    private let hasThread: Bool
    private let startThread: @Sendable (@escaping @Sendable () -> Void) -> Bool
    /// Number of lines dropped because too many were queued.
    package let lost = Atomic<Int>(0)

    /// - Parameters:
    ///   - onOwnThread: `false` if `write` never waits: then the logging thread writes.
    ///   - write: writes lines; by default to standard error.
    ///   - notice: returns the line that reports dropped lines.
    ///   - startThread: starts the writing thread, and returns whether the system gave one.
    package init(
        onOwnThread: Bool = true, write: (@Sendable ([UInt8]) -> Void)? = nil,
        notice: @escaping @Sendable (Int) -> String = { "\($0) log lines were dropped: the log's reader is too slow" },
        startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = {
            SystemThread.start(named: "log", $0)
        }
    ) {
        self.startThread = startThread
        self.hasThread = onOwnThread
        self.notice = notice
        self.write = write ?? { _ = StandardError.write($0) }
    }

    /// Queues `line`, to which a line feed is added. Never waits for the reader.
    package func log(_ line: String) {
        let start = self.queue.withLock { queue -> Bool in
            guard queue.waiting.count < Self.limit else {
                queue.dropped += 1
                self.lost.add(1, ordering: .relaxed)
                return false
            }
            Self.add(line, to: &queue)
            defer { queue.writing = true }
            return !queue.writing
        }
        guard start else { return }
        guard self.hasThread else { return self.drain() }
        // Without a thread the lines wait for the next one that is logged, or for the end of the process.
        if !self.startThread({ self.drain() }) { self.queue.withLock { $0.writing = false } }
    }

    private static func add(_ line: String, to queue: inout Queue) {
        queue.waiting.append(contentsOf: line.utf8)
        queue.waiting.append(0x0A)
    }

    /// Runs until the queue is empty: an idle process keeps no log thread.
    private func drain() {
        while let bytes = self.take() { self.write(bytes) }
    }

    private func take() -> [UInt8]? {
        self.queue.withLock { queue in
            if queue.dropped > 0 {
                Self.add(self.notice(queue.dropped), to: &queue)
                queue.dropped = 0
            }
            guard !queue.waiting.isEmpty else {
                queue.writing = false
                return nil
            }
            defer { queue.waiting = [] }
            return queue.waiting
        }
    }

    /// Waits until all lines are written, or the timeout has passed; for the end of the process. Lines for which there was
    /// no thread are written by the calling one.
    /// - Returns: whether all are written.
    @discardableResult
    package func flush(within timeout: Duration = LogWriter.flushTimeout) -> Bool {
        let isLeft = self.queue.withLock { queue -> Bool in
            defer { queue.writing = true }
            return !queue.writing
        }
        if isLeft { self.drain() }
        let deadline = ContinuousClock.now.advanced(by: timeout)
        while self.queue.withLock({ $0.writing }) {
            guard ContinuousClock.now < deadline else { return false }
            SystemThread.sleep(for: Self.pause)
        }
        return true
    }
}

/// One line of the log: a constant message with named values. Values from peers cannot forge a line or end a string.
package struct LogLine: Sendable {
    package enum Value: Sendable {
        case text(String)
        case number(UInt64)
    }

    /// A longer value is cut and marked with `…`; in characters.
    package static let valueLimit = 1024

    let level: LogSettings.Level
    private let message: String
    private let fields: [(String, Value)]

    package init(_ message: String, _ fields: [(String, Value)], level: LogSettings.Level = .info) {
        self.level = level
        self.message = message
        self.fields = fields
    }

    /// - Parameter time: RFC 3339.
    package func rendered(_ format: LogSettings.Format, at time: String) -> String {
        switch format {
        case .text: self.text(time)
        case .json: self.json(time)
        }
    }

    private func text(_ time: String) -> String {
        self.fields.reduce("\(time) \(self.level.rawValue) \(self.message)") { line, field in
            switch field.1 {
            case .number(let number): line + " \(field.0)=\(number)"
            case .text(let text): line + " \(field.0)=\(Self.quotedIfNeeded(text))"
            }
        }
    }

    private func json(_ time: String) -> String {
        let start =
            "{\"time\":\"\(time)\",\"level\":\"\(self.level.rawValue)\",\"message\":\(Self.quoted(self.message))"
        return self.fields.reduce(start) { line, field in
            switch field.1 {
            case .number(let number): line + ",\(Self.quoted(field.0)):\(number)"
            case .text(let text): line + ",\(Self.quoted(field.0)):\(Self.quoted(text))"
            }
        } + "}"
    }

    /// Unchanged if it is one plain word that cannot be taken for `key=value`, else quoted.
    private static func quotedIfNeeded(_ text: String) -> String {
        let isPlain =
            (1...Self.valueLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"\\=".utf8.contains($0) }
        return isPlain ? text : self.quoted(text)
    }

    /// A JSON string (RFC 8259 §7); everything outside of ASCII's visible part is escaped or kept as UTF-8.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < Self.valueLimit else {
                quoted += "…"
                break
            }
            if Self.isPlain(scalar) {
                quoted.unicodeScalars.append(scalar)
            } else {
                for byte in JSONEscape(UInt16(truncatingIfNeeded: scalar.value)) {
                    quoted.unicodeScalars.append(Unicode.Scalar(byte))
                }
            }
        }
        return quoted + "\""
    }

    /// No quotation mark or backslash, no control character (C0, DEL, C1), no line separator of Unicode, no mark that
    /// changes the direction of text. What is not plain is one UTF-16 code unit.
    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x22, 0x5C, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
            false
        default: true
        }
    }
}

/// The time of day, for logs.
package enum WallClock {
    /// RFC 3339 in UTC with milliseconds, as `2026-01-31T23:59:59.123Z`.
    package static func now() -> String {
        Self.text(milliseconds: Machine.wallClockMilliseconds())
    }

    /// Length of every timestamp in bytes.
    package static let byteCount = 24

    /// - Parameter milliseconds: since 1970-01-01T00:00:00Z, leap seconds not counted; from 0 to the end of the year 9999.
    package static func text(milliseconds: Int64) -> String {
        let bytes = [UInt8](capacity: Self.byteCount) { Self.write(milliseconds: milliseconds, to: &$0) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes the same to `output`, which has `byteCount` bytes free. Allocates nothing: long lists contain many times.
    package static func write(milliseconds: Int64, to output: inout OutputSpan<UInt8>) {
        let milliseconds = min(max(0, milliseconds), Self.latest)
        let date = CivilDate(daysSinceEpoch: milliseconds / 86_400_000)
        let (year, month, day) = (UInt64(date.year), UInt64(date.month), UInt64(date.day))
        let second = UInt64(milliseconds / 1000 % 86_400)
        output.append(twoDigits: year / 100)
        Self.write(year % 100, "-", to: &output)
        Self.write(month, "-", to: &output)
        Self.write(day, "T", to: &output)
        Self.write(second / 3600, ":", to: &output)
        Self.write(second / 60 % 60, ":", to: &output)
        Self.write(second % 60, ".", to: &output)
        let rest = UInt64(milliseconds % 1000)
        output.append(decimal: rest / 100)
        Self.write(rest % 100, "Z", to: &output)
    }

    /// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
    private static let latest: Int64 = 253_402_300_799_999

    private static func write(_ number: UInt64, _ mark: Unicode.Scalar, to output: inout OutputSpan<UInt8>) {
        output.append(twoDigits: number)
        output.append(UInt8(ascii: mark))
    }
}
