import ArgumentParser
import CommandLineText
import ControlClient
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import URLLoading

/// Options of every command that talks to a running gateway.
struct ControlOptions: ParsableArguments {
    @Option(
        help: .value(
            "address",
            """
            Address of the gateway's control plane: \(ControlAddress.forms). (default: $SLUICE_CONTROL, else \
            \(ControlAddress.defaultAddress))
            """))
    var control: String?

    @Option(help: .value("token", "Bearer token. Visible to other users in the process list. (default: $SLUICE_TOKEN)"))
    var token: String?

    @Option(help: .value("file", "File with the bearer token. (default: $SLUICE_TOKEN_FILE)"), completion: .file())
    private var tokenFile: String?

    @Option(
        help: .value("file", "CA certificates for the control plane instead of the system's, PEM."),
        completion: .file())
    private var controlCA: String?

    @Option(help: .value("file", "Client certificate for the control plane, PEM with its chain."), completion: .file())
    private var controlCertificate: String?

    @Option(help: .value("file", "Private key of the client certificate, PEM."), completion: .file())
    var controlKey: String?

    @Flag(help: "Do not verify the control plane's certificate. For tests only: insecure.")
    var controlInsecure = false

    @Flag(help: "Write the gateway's JSON responses unchanged.")
    var json = false

    @Flag(help: "Disable colours, as in a pipe or with NO_COLOR.")
    var noColor = false
}

/// The connection that a command is for, and the gateway that has it.
struct ConnectionArgument: ParsableArguments {
    @Argument(help: .value("ID", "ID of the connection, from 'sluice ls'."))
    var id: String

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func validate() throws {
        guard !self.id.isEmpty else { throw ValidationError("the ID is empty; 'sluice ls' lists the connections") }
    }
}

/// Selects nodes of a cluster.
struct NodeOptions: ParsableArguments {
    @Option(parsing: .singleValue, help: .value("name", "Only this node of a cluster. Repeatable. (default: all)"))
    var node: [String] = []

    var parameters: [ControlRequest.Parameter] { self.node.map { ControlRequest.Parameter("node", $0) } }
}

extension ControlOptions {
    /// Runs a command: parses its options, reports all problems at once, then performs it. A failure becomes one line on
    /// standard error and an exit code.
    func run<Plan>(
        reading read: (inout OptionReader) throws -> Plan?, _ body: (CommandContext, Plan) async throws -> Void
    ) async throws {
        try await ErrorReporter.reporting {
            var reader = OptionReader()
            let address = self.address(&reader)
            let access = try self.access(&reader)
            let plan = try read(&reader)
            guard let address, let access, let plan, reader.problems.isEmpty else {
                throw UsageProblems(problems: reader.problems)
            }
            let context = CommandContext(
                session: ControlSession(address, access, agent: "sluice/\(Version.text)"), printsJSON: self.json,
                colors: Terminal.wantsColors && !self.noColor)
            try await context.printingDocument { try await body(context, plan) }
        }
    }

    /// Runs a command without options that need parsing.
    func run(_ body: (CommandContext) async throws -> Void) async throws {
        try await self.run(reading: { _ in () }, { context, _ in try await body(context) })
    }

    // MARK: Reading

    private static func environment(_ name: String) -> String? {
        HostProcess.variable(name).flatMap { $0.isEmpty ? nil : $0 }
    }

    private func address(_ reader: inout OptionReader) -> ControlAddress? {
        let (option, text) =
            self.control.map { ("--control", $0) } ?? Self.environment("SLUICE_CONTROL").map { ("SLUICE_CONTROL", $0) }
            ?? ("--control", ControlAddress.defaultAddress)
        let address = ControlAddress(text)
        if address == nil {
            reader.reject(
                option, "expected \(ControlAddress.forms), found \(QuotedText.quoted(text))",
                remedy: "use the address that 'sluice serve' prints after 'control on'")
        }
        return address
    }

    private func access(_ reader: inout OptionReader) throws -> ControlAccess? {
        var access = ControlAccess()
        access.isInsecure = self.controlInsecure
        access.authorities = try self.controlCA.map { try OptionReader.file($0, "--control-ca") }
        guard let token = try self.readToken(&reader) else { return nil }
        access.token = token
        guard (self.controlCertificate == nil) == (self.controlKey == nil) else {
            reader.reject(
                self.controlKey == nil ? "--control-certificate" : "--control-key",
                "requires \(self.controlKey == nil ? "--control-key" : "--control-certificate")")
            return nil
        }
        if let certificate = self.controlCertificate, let key = self.controlKey {
            let chain = try OptionReader.file(certificate, "--control-certificate")
            let secret = try OptionReader.file(key, "--control-key")
            do {
                access.identity = try ClientIdentity(certificates: Data(chain), key: Data(secret))
            } catch {
                throw UnusableFiles("sluice: --control-certificate: \(certificate): \(error)")
            }
        }
        return access
    }

    /// - Returns: `nil` if the token is invalid, `.some(nil)` if none is given.
    private func readToken(_ reader: inout OptionReader) throws -> String?? {
        if self.token != nil, self.tokenFile != nil {
            reader.reject("--token", "cannot be combined with --token-file")
            return .none
        }
        let file =
            self.tokenFile.map { ("--token-file", $0) }
            ?? (self.token == nil ? Self.environment("SLUICE_TOKEN_FILE").map { ("SLUICE_TOKEN_FILE", $0) } : nil)
        var (origin, text) = ("--token", self.token)
        if self.token == nil, self.tokenFile == nil, let given = Self.environment("SLUICE_TOKEN") {
            (origin, text) = ("SLUICE_TOKEN", given)
        } else if let (option, file) = file {
            let bytes = try OptionReader.file(file, option)
            (origin, text) = (file, String(decoding: bytes, as: UTF8.self))
        }
        guard let text else { return .some(nil) }
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard ControlAccess.isToken(token) else {
            // Not printed: it may be another secret.
            reader.reject(
                origin, "expected a token of letters, digits and -._~+/=", remedy: "'sluice token' creates one")
            return .none
        }
        return .some(token)
    }
}

/// The gateway and the output settings of a command.
struct CommandContext: Sendable {
    let session: ControlSession
    let printsJSON: Bool
    let colors: Bool
    let streams = StandardStreams()

    /// Width of the terminal; `nil` if standard output is not a terminal.
    var columns: Int? { Terminal.isOutputTerminal ? Terminal.columns : nil }

    // MARK: Reading

    /// All of standard input.
    /// - Parameters:
    ///   - limit: most bytes.
    ///   - remedy: for a longer input.
    func readInput(limit: Int, remedy: String) async throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            switch await self.streams.read() {
            case .bytes(let bytes): all += bytes
            case .end: return all
            case .failed(let reason): throw ConnectFailure(.inputOrOutput, "standard input: \(reason)")
            }
            guard all.count <= limit else {
                throw ConnectFailure(
                    .unsendableInput, "standard input is longer than \(limit) bytes", remedy: remedy)
            }
        }
    }

    /// Follows a stream of events, also over lost connections, until `count` of them were shown.
    /// - Parameter show: returns whether the event counts.
    func follow(
        _ request: ControlRequest, count: Int,
        _ show: (_ event: ServerSentEvent, _ hasReconnected: Bool) async throws -> Bool
    ) async throws {
        var follower = EventFollower(self.session, request)
        var (rest, hasReconnected) = (count, false)
        while rest > 0 {
            switch try await follower.next() {
            case .event(let event): if try await show(event, hasReconnected) { rest -= 1 }
            case .disconnected(let failure, let delay):
                hasReconnected = true
                self.note("\(failure.text); reconnecting")
                try await Task.sleep(for: delay)
            }
        }
    }

    // MARK: Writing

    func write(_ bytes: [UInt8]) async throws {
        try await self.streams.write(bytes)
    }

    /// Prints sanitized lines.
    func print(_ lines: [String]) async throws {
        guard !lines.isEmpty else { return }
        try await self.write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    func print(_ line: String) async throws {
        try await self.print([line])
    }

    /// Prints the gateway's response unchanged, followed by a newline if it has none.
    func print(json body: Data) async throws {
        guard !body.isEmpty else { return }
        try await self.write(Array(body) + (body.last == 0x0A ? [] : [0x0A]))
    }

    /// Prints the response as JSON with `--json`, else as text.
    func show<Model: Decodable>(
        _ answer: ControlResponse, as type: Model.Type, _ lines: (Model) -> [String]
    ) async throws {
        if self.printsJSON { return try await self.print(json: answer.body) }
        try await self.print(lines(try answer.decoded(type)))
    }

    /// Prints page after page as one table, or as JSON.
    func printPages<Page: Decodable>(
        _ first: ControlRequest, as type: Page.Type, _ read: (Page) -> (table: TextTable?, next: String?)
    ) async throws {
        var request: ControlRequest? = first
        var layout: TextTable.Layout?
        while let current = request {
            let answer = try await self.session.send(current)
            let (table, next) = read(try answer.decoded(type))
            request = next.map { ControlRequest(.get, $0) }
            if self.printsJSON {
                try await self.print(json: answer.body)
            } else if let table {
                let shown = layout ?? table.layout(cells: self.columns)
                let titles = layout == nil ? [table.title(shown, colors: self.colors)] : []
                layout = shown
                try await self.print(titles + table.lines(shown, colors: self.colors))
            }
        }
    }

    /// Sends a request and prints its response.
    func perform<Model: Decodable>(
        _ request: ControlRequest, as type: Model.Type, _ lines: (Model) -> [String]
    ) async throws {
        try await self.show(try await self.session.send(request), as: type, lines)
    }

    /// Prints a note on standard error.
    func note(_ text: String) {
        ErrorReporter.print("sluice: \(TerminalText.singleLine(text, limit: 600))")
    }

    /// Prints a note that nodes of the cluster did not answer.
    func note(unreachable nodes: [String]?) {
        if let text = Self.missing(from: nodes) { self.note(text) }
    }

    /// Says that nodes did not answer; `nil` if all did.
    static func missing(from nodes: [String]?) -> String? {
        guard let nodes, !nodes.isEmpty else { return nil }
        return "nodes that did not answer, whose entries are missing: \(nodes.joined(separator: ", "))"
    }

    // MARK: Failing

    /// Runs `body`; with `--json`, prints the problem document of a failure on standard output.
    func printingDocument(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as ControlFailure {
            if self.printsJSON, let document = failure.document { try? await self.print(json: document) }
            throw failure
        }
    }
}

/// Help text shared by these commands.
enum ControlHelp {
    static let exitCodes = ExitStatus.help([
        .success: nil,
        .usage: "invalid command line, or a value that the gateway rejected",
        .unsendableInput: nil, .notFound: nil, .unavailable: nil,
        .internalError: "internal error of sluice or the gateway",
        .inputOrOutput: "error on standard input or output",
        .temporaryFailure: nil, .protocolError: nil, .notAllowed: nil,
        .configuration: "invalid configuration, or a file is missing or invalid",
        .tls: nil, .peer: nil, .conflict: nil, .interrupted: nil,
    ])
}
