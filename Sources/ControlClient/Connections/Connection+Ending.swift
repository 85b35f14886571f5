import ControlAPI

extension Connection {
    /// How it ended, in a few words.
    package var ending: String {
        guard self.state == "closed" else { return "closing" }
        let code = self.closeCode.map { " with \($0)" } ?? ""
        let reason = self.closeReason.map { $0.isEmpty ? "" : " \"\($0)\"" } ?? ""
        return "closed\(code)\(reason)\(self.terminationReason.map { ": \($0)" } ?? "")"
    }

    /// Whether a reader of it may take its end for the end of what there was to read.
    package var endedInOrder: Bool {
        guard let code = self.closeCode else { return self.terminationReason?.hasSuffix("/clean") ?? false }
        return [1000, 1001, 1005].contains(code)
    }
}
