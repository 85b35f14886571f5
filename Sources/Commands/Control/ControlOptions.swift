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
        help: ArgumentHelp(
            """
            Where the gateway's control plane is: \(ControlAddress.forms). (default: $SLUICE_CONTROL, else \
            \(ControlAddress.standard))
            """,
            valueName: "address"))
    var control: String?

    @Option(
        help: ArgumentHelp(
            "Bearer token; others on this machine can read it in the list of processes. (default: $SLUICE_TOKEN)",
            valueName: "token"))
    var token: String?

    @Option(
        help: ArgumentHelp("File with the bearer token. (default: $SLUICE_TOKEN_FILE)", valueName: "file"),
        completion: .file())
    private var tokenFile: String?

    @Option(
        help: ArgumentHelp("Authorities of the control plane's certificate, PEM, not the system's.", valueName: "file"),
        completion: .file())
    private var controlCA: String?

    @Option(
        help: ArgumentHelp("Certificate to show to the control plane, PEM with its chain.", valueName: "file"),
        completion: .file())
    private var controlCertificate: String?

    @Option(help: ArgumentHelp("That certificate's private key, PEM.", valueName: "file"), completion: .file())
    var controlKey: String?

    @Flag(help: "Take any certificate of the control plane. Only for tests: anybody may read the token then.")
    var controlInsecure = false

    @Flag(help: "Write what the gateway answers: its JSON as it is.")
    var json = false

    @Flag(help: "No colours. They are left out in a pipe, and where NO_COLOR is set, anyway.")
    var noColor = false
}

extension ControlOptions {
    /// Runs a command: reads its options, reports all problems at once, then performs it; failures become a line and an
    /// exit code.
    func run<Plan>(
        reading read: (inout OptionReader) throws -> Plan?, _ body: (CommandContext, Plan) async throws -> Void
    ) async throws {
        try await Ending.reporting(problemsAs: ExitStatus.usage) {
            var reader = OptionReader()
            let address = self.address(&reader)
            let access = try self.access(&reader)
            let plan = try read(&reader)
            guard let address, let access, let plan, reader.problems.isEmpty else {
                throw ConfigurationProblems(reader.problems)
            }
            let desk = CommandContext(
                session: ControlSession(address, access, agent: "sluice/\(Version.text)"), printsJSON: self.json,
                colors: Terminal.wantsColors && !self.noColor)
            try await desk.reporting { try await body(desk, plan) }
        }
    }

    /// For a command without options of its own that need reading.
    func run(_ body: (CommandContext) async throws -> Void) async throws {
        try await self.run(reading: { _ in () }, { desk, _ in try await body(desk) })
    }

    // MARK: Reading

    private static func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    private func address(_ reader: inout OptionReader) -> ControlAddress? {
        let (option, text) =
            self.control.map { ("--control", $0) } ?? Self.environment("SLUICE_CONTROL").map { ("SLUICE_CONTROL", $0) }
            ?? ("--control", ControlAddress.standard)
        let address = ControlAddress(text)
        if address == nil {
            reader.note(
                option, expected: ControlAddress.forms, found: QuotedText.quoted(text),
                remedy: "take what 'sluice serve' prints behind 'control on'")
        }
        return address
    }

    private func access(_ reader: inout OptionReader) throws -> ControlAccess? {
        var access = ControlAccess()
        access.isInsecure = self.controlInsecure
        access.authorities = try self.controlCA.map { try Self.content($0, "--control-ca") }
        guard let token = try self.readToken(&reader) else { return nil }
        access.token = token
        guard (self.controlCertificate == nil) == (self.controlKey == nil) else {
            reader.note(
                self.controlKey == nil ? "--control-certificate" : "--control-key",
                expected: "--control-certificate and --control-key together", found: "one of them")
            return nil
        }
        if let certificate = self.controlCertificate, let key = self.controlKey {
            let chain = try Self.content(certificate, "--control-certificate")
            let secret = try Self.content(key, "--control-key")
            do {
                access.identity = try ClientIdentity(certificates: Data(chain), key: Data(secret))
            } catch {
                throw UnreadableFiles("sluice: --control-certificate: \(certificate): \(error)")
            }
        }
        return access
    }

    /// `nil` if the token is invalid; the inner value is `nil` if there is none.
    private func readToken(_ reader: inout OptionReader) throws -> String?? {
        if self.token != nil, self.tokenFile != nil {
            reader.note("--token", expected: "one of --token and --token-file", found: "both")
            return .none
        }
        let file = self.tokenFile ?? (self.token == nil ? Self.environment("SLUICE_TOKEN_FILE") : nil)
        var (origin, text) = ("--token", self.token)
        if self.token == nil, self.tokenFile == nil, let given = Self.environment("SLUICE_TOKEN") {
            (origin, text) = ("SLUICE_TOKEN", given)
        } else if let file {
            let bytes = try Self.content(file, "--token-file")
            (origin, text) = (file, String(decoding: bytes, as: UTF8.self))
        }
        guard let text else { return .some(nil) }
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard ControlAccess.isToken(token) else {
            // Not shown: it may be another secret.
            reader.note(
                origin, expected: "a token of letters, digits and -._~+/=", found: "something else",
                remedy: "'sluice token' makes one")
            return .none
        }
        return .some(token)
    }

    private static func content(_ path: String, _ option: String) throws -> [UInt8] {
        do throws(SystemError) {
            return try SystemFile.read(path, limit: 1 << 20)
        } catch {
            throw UnreadableFiles("sluice: \(option): \(path): \(error)")
        }
    }
}

/// Gateway and standard output of a command.
struct CommandContext: Sendable {
    let session: ControlSession
    let printsJSON: Bool
    let colors: Bool
    let streams = StandardStreams()

    /// Columns of the terminal; `nil` if output is not a terminal.
    var cells: Int? { Terminal.showsOutput ? Terminal.columns : nil }

    // MARK: Writing

    func write(_ bytes: [UInt8]) async throws {
        try await self.streams.write(bytes)
    }

    /// Each with an end of line. Safe to print already.
    func print(_ lines: [String]) async throws {
        guard !lines.isEmpty else { return }
        try await self.write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    func print(_ line: String) async throws {
        try await self.print([line])
    }

    /// Prints the gateway's response unchanged, with a line end that separates it from the next.
    func print(json body: Data) async throws {
        guard !body.isEmpty else { return }
        try await self.write(Array(body) + (body.last == 0x0A ? [] : [0x0A]))
    }

    /// The answer as JSON if that is wanted, else in lines for people.
    func show<Model: Decodable>(
        _ answer: ControlResponse, as type: Model.Type, _ lines: (Model) -> [String]
    ) async throws {
        if self.printsJSON { return try await self.print(json: answer.body) }
        try await self.print(lines(try answer.decoded(type)))
    }

    /// Beside the output: for people alone.
    func note(_ text: String) {
        Ending.say("sluice: \(TerminalText.line(text, limit: 600))")
    }

    // MARK: Failing

    func reporting(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let failure as ControlFailure {
            try await self.tell(failure)
            throw failure.exitCode
        } catch let failure as ConnectFailure {
            Ending.say("sluice: \(failure.line)")
            throw failure.exitCode
        }
    }

    /// One line on standard error; the problem document as it came on standard output, where JSON is wanted.
    func tell(_ failure: ControlFailure) async throws {
        if self.printsJSON, let document = failure.document { try? await self.print(json: document) }
        Ending.say("sluice: \(TerminalText.line(failure.line, limit: 1000))")
    }
}

extension ControlFailure {
    var exitCode: ExitCode {
        switch self.kind {
        case .wrongRequest: ExitStatus.usage
        case .wrongConfiguration: ExitStatus.configuration
        case .unsendableInput: ExitCode(65)
        case .unknown: ExitCode(66)
        case .noConnection: ExitStatus.unavailable
        case .fault: ExitStatus.internalFault
        case .later, .nothingCame: ExitCode(75)
        case .nonsense: ExitCode(76)
        case .notAllowed: ExitCode(77)
        case .secure: ExitCode(79)
        case .peer: ExitCode(80)
        case .conflict: ExitCode(81)
        case .cancelled: ExitCode(130)
        }
    }
}

/// Parts common to the help texts of these commands.
enum ControlHelp {
    static let exitCodes = """
        EXIT CODES
          0    done
          64   wrong usage, found here or by the gateway
          65   what was to be sent is too long, or of a type that is not taken
          66   there is no such thing, or it is over
          69   no control plane answers there
          70   a fault of sluice or of the gateway
          74   standard input or output failed
          75   not now: try again; or nothing came in time
          76   what answers is no control plane of this version
          77   not allowed: no token, or one without the scope
          78   a configuration is not right, or a file cannot be used
          79   TLS with the control plane failed
          80   what the gateway was to reach refused or failed
          81   not in this state, or changed by somebody else
          130  interrupted
        """
}
