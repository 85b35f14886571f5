import Testing

/// An invalid command line, with its exit code and its lines on standard error.
struct RefusedCommandLine: CustomTestStringConvertible {
    private let line: String
    private let code: Int32
    private let errors: String

    var testDescription: String { self.line }

    private var words: [String] {
        self.line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index.isMultiple(of: 2) ? part.split(separator: " ").map(String.init) : [String(part)]
        }
    }

    /// - Parameter table: command lines after `$`, whose words are separated by spaces, or quoted with `'`; after each its
    ///   exit code and its lines on standard error.
    static func all(in table: String) -> [RefusedCommandLine] {
        table.split(separator: "$ ").map { block in
            let lines = block.split(separator: "\n")
            return RefusedCommandLine(
                line: String(lines[0]), code: Int32(lines[1]) ?? 0,
                errors: lines.dropFirst(2).joined(separator: "\n") + "\n")
        }
    }

    /// Runs the command.
    func expectRefused() async {
        let run = await CommandHost().run(self.words)
        #expect(run.code == self.code)
        #expect(run.errors == self.errors)
        #expect(run.output == "" && run.gateways.isEmpty)
    }
}
