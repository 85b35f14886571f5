/// Splits a byte stream into lines. Buffers at most one incomplete line.
package struct LineSplitter: Sendable {
    /// A line is longer than the limit.
    package struct Overflow: Error, Equatable {}

    /// Maximum length of a line in bytes, without its terminator.
    package let limit: Int
    private var rest: [UInt8] = []

    package init(limit: Int) {
        self.limit = limit
    }

    /// - Returns: the lines completed by `bytes`, without LF or CRLF.
    package mutating func lines(_ bytes: [UInt8]) throws(Overflow) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var start = 0
        while let end = bytes[start...].firstIndex(of: 0x0A) {
            self.rest += bytes[start..<end]
            lines.append(try self.takeLine())
            start = end + 1
        }
        self.rest += bytes[start...]
        // One more byte than the limit: a CR before LF does not count.
        guard self.rest.count <= self.limit + 1 else { throw Overflow() }
        return lines
    }

    /// - Returns: the bytes after the last line terminator; `nil` if there are none.
    package mutating func finish() throws(Overflow) -> [UInt8]? {
        guard !self.rest.isEmpty else { return nil }
        let line = self.rest
        self.rest = []
        guard line.count <= self.limit else { throw Overflow() }
        return line
    }

    private mutating func takeLine() throws(Overflow) -> [UInt8] {
        var line: [UInt8] = []
        swap(&line, &self.rest)
        if line.last == 0x0D { line.removeLast() }
        guard line.count <= self.limit else { throw Overflow() }
        return line
    }
}
