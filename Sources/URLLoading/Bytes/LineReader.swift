import ByteKernels
import Foundation

/// Lines out of the runs of a channel. Used by one iterator at a time.
@usableFromInline
final class LineReader {
    /// A longer line fails with `URLError.dataLengthExceedsMaximum`, in bytes: it has to be in memory whole.
    static let limit = 256 << 20

    private let reader: ByteReader
    /// From `start` on nothing was given away; up to `scanned` no line ends.
    private var bytes: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isAtEnd = false

    /// - Returns: `nil` for bytes that do not come from a channel.
    @usableFromInline
    init?(_ sequence: Any) {
        guard let sequence = sequence as? any ByteRunSequence else { return nil }
        self.reader = sequence.makeByteReader()
    }

    /// The next line that is here whole.
    @usableFromInline
    func lineAtHand() -> String? {
        while true {
            let bytes = self.bytes
            let mark = bytes.span.bytes.firstLineMark(from: self.scanned)
            guard mark < self.bytes.count, let length = self.lineEnd(at: mark) else {
                self.scanned = mark
                return nil
            }
            self.scanned = mark + max(length, 1)
            guard length > 0 else { continue }
            let line = self.start..<mark
            self.start = self.scanned
            if !line.isEmpty { return self.text(line) }
        }
    }

    /// How many bytes of line end there are at `mark`, or 0; `nil` where that depends on what is still to come.
    private func lineEnd(at mark: Int) -> Int? {
        let rest = self.bytes.count - mark
        switch self.bytes[mark] {
        // The LF of a CRLF ends an empty line, and those are left out.
        case 0x0A...0x0D: return 1
        case 0xC2:
            guard rest > 1 else { return nil }
            return self.bytes[mark + 1] == 0x85 ? 2 : 0
        default:
            guard rest > 1 else { return nil }
            guard self.bytes[mark + 1] == 0x80 else { return 0 }
            guard rest > 2 else { return nil }
            return self.bytes[mark + 2] & 0xFE == 0xA8 ? 3 : 0
        }
    }

    /// The next line; `nil` at the end.
    @usableFromInline
    func nextLine(isolation actor: isolated (any Actor)?) async throws -> String? {
        while !self.isAtEnd {
            if let line = self.lineAtHand() { return line }
            guard self.bytes.count - self.start <= Self.limit else { throw URLError(.dataLengthExceedsMaximum) }
            guard let run = try await self.reader.nextRun(isolation: actor) else { return self.lastLine() }
            self.add(run)
        }
        return nil
    }

    private func add(_ run: [UInt8]) {
        if self.start == self.bytes.count {
            self.bytes = run
        } else {
            self.bytes.removeSubrange(..<self.start)
            self.bytes += run
        }
        self.scanned -= self.start
        self.start = 0
    }

    private func lastLine() -> String? {
        self.isAtEnd = true
        guard self.start < self.bytes.count else { return nil }
        return self.text(self.start..<self.bytes.count)
    }

    private func text(_ range: Range<Int>) -> String {
        self.bytes.withRawSpan { String(repairing: $0.extracting(range)) }
    }
}
