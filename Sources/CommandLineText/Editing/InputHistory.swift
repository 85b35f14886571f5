/// Lines entered so far, to be gone through backwards and forwards. Kept in memory only: what is typed to a peer may be
/// secret.
package struct InputHistory: Sendable, Equatable {
    /// When more are added, the oldest go.
    package let limit: Int
    private var lines: [String] = []
    /// Index into `lines`; their count stands for the line that is being written.
    private var place = 0
    private var draft = ""

    package init(limit: Int = 500) {
        self.limit = max(1, limit)
    }

    /// Empty lines and repetitions of the last one are not kept.
    package mutating func add(_ line: String) {
        if !line.isEmpty, self.lines.last != line { self.lines.append(line) }
        if self.lines.count > self.limit { self.lines.removeFirst(self.lines.count - self.limit) }
        self.place = self.lines.count
        self.draft = ""
    }

    /// - Parameter current: what stands in the editor; kept if it is the line that is being written.
    /// - Returns: `nil` at the oldest line.
    package mutating func older(than current: String) -> String? {
        guard self.place > 0 else { return nil }
        if self.place == self.lines.count { self.draft = current }
        self.place -= 1
        return self.lines[self.place]
    }

    /// - Returns: the line that was being written behind the newest one, and `nil` behind that.
    package mutating func newer() -> String? {
        guard self.place < self.lines.count else { return nil }
        self.place += 1
        return self.place == self.lines.count ? self.draft : self.lines[self.place]
    }
}
