import ArgumentParser
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// `sluice check`: validates a configuration file.
struct CheckCommand: AsyncParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "the configuration is valid",
        .usage: nil, .inputOrOutput: nil, .configuration: nil,
    ])
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a configuration file without starting anything.",
        discussion: """
            Prints one line for a valid configuration:

              sluice.yaml: ok: 2 listeners, 3 routes, 1 upstream

            Otherwise prints one line per problem on standard error, in the order of the file:

              sluice.yaml:4:13: listeners[0].listen: expected a port from 0 to 65535, found "ws://127.0.0.1:99999"

            Certificates, keys and other files named by the configuration must be readable and valid. With --without-files they are \
            not read, to check a configuration on another machine. Certificates that have expired, are not valid yet, or expire within \
            30 days (sooner if they are valid for less than 90) are warnings on standard error; the configuration is valid with them.

            With --json, prints the result as one line on standard output: "ok", "file", the numbers of "listeners", "routes" and \
            "upstreams", "problems" and "warnings". A problem or warning has a "message" and, if known, "file", "line", "column", \
            "key", "expected", "found" and "remedy".

            EXAMPLES
              sluice check --config /etc/sluice/sluice.yaml
              sluice check --config draft.yaml --without-files
              sluice check --config draft.yaml --json | jq -r '.problems[].message'

            \(Self.exitCodes)
            """)

    @Option(help: .value("file", "YAML file to check."), completion: .file())
    var config: String

    @Flag(help: "Do not read the certificates and other files named by the configuration.")
    var withoutFiles = false

    @Flag(help: "Write the result as one line of JSON.")
    var json = false

    func run() async throws {
        try await ErrorReporter.reporting {
            let located = try self.checked()
            let audit = MaterialAudit(located)
            let certificates = self.withoutFiles ? [] : audit.certificates() + [audit.clusterCertificate()]
            let warnings = certificates.compactMap { $0?.warning() }
            for warning in warnings { ErrorReporter.print("warning: \(warning)") }
            let text = "\(self.config): ok: \(located.configuration.summary)"
            let report = CheckReport(self.config, located.configuration, warnings)
            try ProcessOutput.print((self.json ? report.line : text) + "\n")
        }
    }

    private func checked() throws -> LocatedConfiguration {
        do {
            return try self.withoutFiles ? ConfigurationFile.read(self.config) : ConfigurationFile.load(self.config)
        } catch {
            // The problems are on standard error too: they matter more than an error on standard output.
            if self.json { try? ProcessOutput.print(CheckReport(self.config, error).line + "\n") }
            throw error
        }
    }
}

/// Output of `check --json`.
private struct CheckReport: Encodable {
    struct Problem: Encodable {
        var message: String
        var file: String?
        var line: Int?
        var column: Int?
        var key: String?
        var expected: String?
        var found: String?
        var remedy: String?
    }

    let file: String
    let ok: Bool
    var listeners: Int?
    var routes: Int?
    var upstreams: Int?
    var problems: [Problem] = []
    var warnings: [Problem] = []

    init(_ file: String, _ configuration: Configuration, _ warnings: [ConfigurationProblem]) {
        self.file = file
        self.ok = true
        self.listeners = configuration.listeners.count
        self.routes = configuration.routes.count
        self.upstreams = configuration.upstreams.count
        self.warnings = warnings.map(Self.problem)
    }

    init(_ file: String, _ error: any Error) {
        self.file = file
        self.ok = false
        switch error {
        case let error as ConfigurationProblems: self.problems = error.all.map(Self.problem)
        case let error as UnusableFiles where !error.problems.isEmpty:
            self.problems = error.problems.map(Self.problem)
        default: self.problems = [Problem(message: "\(error)", file: file)]
        }
    }

    private static func problem(_ problem: ConfigurationProblem) -> Problem {
        var shown = Problem(
            message: problem.description, key: problem.keyPath.steps.isEmpty ? nil : "\(problem.keyPath)",
            expected: problem.expected, found: problem.found, remedy: problem.remedy.isEmpty ? nil : problem.remedy)
        switch problem.origin {
        case .file(let name, let line, let column):
            shown.file = name
            shown.line = line
            shown.column = column
        case .wholeFile(let name): shown.file = name
        case .option: break
        }
        return shown
    }

    var line: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding cannot fail: all members are strings and integers.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
