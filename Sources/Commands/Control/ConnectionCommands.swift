import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import WebSocketProtocol

/// `sluice close`: closes connections, or one direction of a stream.
struct CloseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "close",
        abstract: "Close connections, cleanly or with a reset, or one direction of a stream.",
        discussion: """
            A WebSocket is closed with 1000 or --code; a stream is closed after its queued data is sent. A connection that is not \
            closed after 5s is reported as closing. With several IDs, all are tried; the exit code is that of the first failure.

            EXAMPLES
              sluice close 17 --code 4001 --reason 'maintenance'
              sluice close 18 19 20 --abort
              sluice close 21 --write

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: .value("ID", "IDs of the connections, from 'sluice ls'."))
    var ids: [String]

    @Option(help: .value("code", "Close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999. (default: 1000)"))
    var code: String?

    @Option(help: .value("text", "Close reason, at most 123 bytes."))
    var reason: String?

    @Flag(help: "Close at once with a reset; queued data is lost.")
    var abort = false

    @Flag(help: "Close only the receiving side of a stream.")
    var read = false

    @Flag(help: "Close only the sending side of a stream, after its queued data.")
    var write = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.parameters) { context, parameters in
            var first: ExitCode?
            for id in self.ids {
                do {
                    try await context.printingDocument { try await self.close(id, parameters, context) }
                } catch let failure as ControlFailure where self.ids.count > 1 && failure.kind != .noConnection {
                    ErrorReporter.print(ErrorReporter.text(of: failure))
                    first = first ?? ErrorReporter.exitCode(of: failure)
                }
            }
            if let first { throw first }
        }
    }

    private func parameters(_ reader: inout OptionReader) -> [ControlRequest.Parameter]? {
        reader.requireText("ID", self.ids)
        let isWhole = !self.read && !self.write
        let code = reader.value("--code", self.code, ValueSyntax<CloseCode>.closeCode)
        let reason = reader.value("--reason", self.reason, ValueSyntax<String>.closeReason)
        let says = self.code != nil || self.reason != nil
        if says && (self.abort || !isWhole) {
            reader.reject(
                self.code == nil ? "--reason" : "--code",
                "cannot be combined with \(self.abort ? "--abort" : "--read or --write")")
        }
        if self.abort, !isWhole { reader.reject("--abort", "cannot be combined with --read or --write") }
        return [
            code.map { ControlRequest.Parameter("code", "\($0.rawValue)") },
            reason.map { ControlRequest.Parameter("reason", $0) },
            self.abort ? ControlRequest.Parameter("abort", "true") : nil,
        ].compactMap(\.self)
    }

    private func close(_ id: String, _ parameters: [ControlRequest.Parameter], _ context: CommandContext) async throws {
        guard self.read || self.write else {
            let request = ControlRequest(.delete, ConnectionPath.connection(id), parameters)
            return try await context.perform(request, as: Connection.self) { one in
                [TerminalText.singleLine("\(one.id ?? id) \(one.closeDescription)", limit: 400)]
            }
        }
        for (verb, isWanted, word) in [("closeRead", self.read, "reading"), ("closeWrite", self.write, "writing")]
        where isWanted {
            let request = ControlRequest(.post, ConnectionPath.action(verb, id))
            try await context.perform(request, as: Connection.self) { one in
                [TerminalText.singleLine("\(one.id ?? id) closed for \(word)")]
            }
        }
    }
}

/// `sluice ping`: measures the round-trip time of a WebSocket.
struct PingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Send a Ping on a WebSocket and print its round-trip time.",
        discussion: """
            The Ping is sent between messages, even if the connection is relayed.

            EXAMPLES
              sluice ping 17
              sluice ping 17 --count 10 --interval 500ms

            \(ControlHelp.exitCodes)
            """)

    @Option(name: .shortAndLong, help: .value("number", "Number of pings, 1 to 1000000. (default: 1)"))
    var count: String?

    @Option(help: .value("duration", "Interval between pings, 0s to 1h. (default: 1s)"))
    var interval: String?

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.plan) { context, plan in
            let request = ControlRequest(.post, ConnectionPath.action("ping", self.target.id))
            for turn in 0..<plan.count {
                if turn > 0 { try await Task.sleep(for: plan.interval) }
                try await context.perform(request, as: PingAnswer.self) { answer in
                    let time = QuantityText.duration(milliseconds: answer.rttMs)
                    return ["\(TerminalText.singleLine(self.target.id)): pong after \(time)"]
                }
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> (count: Int, interval: Duration)? {
        let count = reader.value("--count", self.count, .integer(1...1_000_000))
        let interval = reader.value("--interval", self.interval, .duration(.zero ... .seconds(3600)))
        return (count ?? 1, interval ?? .seconds(1))
    }
}

/// `sluice set`: changes description, priority and labels of a connection.
struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change the description, priority and labels of a connection.",
        discussion: """
            Only the given properties change. --label replaces all labels of the connection.

            EXAMPLES
              sluice set 17 --description 'a customer' --label team=blue --label tier=1
              sluice set 17 --no-labels

            \(ControlHelp.exitCodes)
            """)

    @OptionGroup(title: "Properties")
    var annotations: AnnotationOptions

    @Flag(help: "Remove all labels.")
    var noLabels = false

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.request) { context, request in
            try await context.perform(request, as: Connection.self) { ConnectionDetails($0).lines }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        var patch = ConnectionPatch()
        self.annotations.apply(to: &patch, &reader)
        if self.noLabels {
            if patch.labels != nil { reader.reject("--no-labels", "cannot be combined with --label") }
            patch.labels = [:]
        }
        if patch == ConnectionPatch(), reader.problems.isEmpty {
            reader.reject("sluice set", "expected --description, --priority, --label or --no-labels")
        }
        return try ControlRequest(.patch, ConnectionPath.connection(self.target.id), json: patch)
    }
}

/// `sluice secure`: upgrades a stream to TLS.
struct SecureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secure",
        abstract: "Upgrade a stream to TLS, as after STARTTLS.",
        discussion: """
            Queued data is sent in plaintext first. The peer must expect the TLS handshake, as its protocol defines.

            EXAMPLES
              sluice send 18 --crlf STARTTLS && sluice receive 18 && sluice secure 18

            \(ControlHelp.exitCodes)
            """)

    @Option(help: .value("duration", "Timeout for the TLS handshake, 1ms to 10m. (default: 10s)"))
    var timeout: String?

    @OptionGroup(title: "TLS")
    var security: SecurityOptions

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run(reading: self.request) { context, request in
            try await context.perform(request, as: Connection.self) { one in
                let session = [one.tls?.version, one.tls?.cipher].compactMap(\.self).joined(separator: ", ")
                return [TerminalText.singleLine("\(one.id ?? self.target.id) secured with \(session)")]
            }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.milliseconds(1) ... .seconds(600)))
        var body = try self.security.request() ?? TLSRequest()
        body.timeoutMs = timeout.map { $0 / .milliseconds(1) }
        var request = try ControlRequest(
            .post, ConnectionPath.action("startSecureConnection", self.target.id), json: body)
        request.idleTimeout = (timeout ?? .seconds(10)) + .seconds(30)
        return request
    }
}

/// TLS options of a connection that the gateway opens.
struct SecurityOptions: ParsableArguments {
    @Option(help: .value("name", "Server name for SNI and verification. (default: the host of URL)"))
    var serverName: String?

    @Flag(name: [.customShort("k"), .long], help: "Do not verify the peer's certificate. For tests only: insecure.")
    var insecure = false

    @Option(
        help: .value("file", "CA certificates to trust instead of those of the gateway's system, PEM."),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue, help: .value("name", "Protocol to offer with ALPN. Repeatable, in order of preference."))
    var alpn: [String] = []

    @Option(help: .value("version", "Minimum TLS version, 1.2 or 1.3. (default: 1.2)"))
    var minTLS: String?

    /// `nil` if no option was given.
    func request() throws -> TLSRequest? {
        var request = TLSRequest()
        request.serverName = self.serverName
        request.insecure = self.insecure ? true : nil
        request.applicationProtocols = self.alpn.isEmpty ? nil : self.alpn
        request.minimumVersion = self.minTLS
        if let ca { request.authorities = try OptionReader.authorities(ca) }
        return request == TLSRequest() ? nil : request
    }
}

/// `sluice suspend` and `sluice resume`.
struct SuspensionCommand<Verb: SuspensionVerb>: AsyncParsableCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: Verb.name, abstract: Verb.abstract,
            discussion: "\(Verb.discussion)\n\n\(ControlHelp.exitCodes)")
    }

    @OptionGroup
    var target: ConnectionArgument

    func run() async throws {
        try await self.target.control.run { context in
            let request = ControlRequest(.post, ConnectionPath.action(Verb.name, self.target.id))
            try await context.perform(request, as: Connection.self) {
                [TerminalText.singleLine("\($0.id ?? self.target.id) \(Verb.result)")]
            }
        }
    }
}

protocol SuspensionVerb {
    /// Name of the command, and of the custom method.
    static var name: String { get }
    static var abstract: String { get }
    static var discussion: String { get }
    /// Follows the connection's ID.
    static var result: String { get }
}

/// Pauses reading from a connection, and holds data sent on it through the control plane.
enum Suspend: SuspensionVerb {
    static let name = "suspend"
    static let abstract = "Pause reading from a connection, and hold data sent on it."
    static let discussion = """
        Until 'sluice resume' the gateway does not read from the connection, so its peer blocks once all buffers are full. \
        Data from 'sluice send' is queued, at most 4 MiB, and no Ping is sent. Data relayed by a tunnel, an echo or a \
        chat room is still sent, and idle timeout and maximum age still apply.

        EXAMPLES
          sluice suspend 17
          sluice resume 17
        """
    static let result = "suspended"
}

enum Resume: SuspensionVerb {
    static let name = "resume"
    static let abstract = "Resume a suspended connection."
    static let discussion = """
        Data that the peer sent meanwhile is read, and queued data is sent.

        EXAMPLES
          sluice resume 17
        """
    static let result = "resumed"
}

/// Description, priority and labels of a connection or transfer.
struct AnnotationOptions: ParsableArguments {
    @Option(help: .value("text", "Description, at most 1024 bytes."))
    var description: String?

    @Option(help: .value("number", "Priority hint, 0 to 1. (default: 0.5)"))
    var priority: String?

    @Option(parsing: .singleValue, help: .value("name=value", "Label. Repeatable."))
    var label: [String] = []

    func apply(to request: inout some AnnotatedRequest, _ reader: inout OptionReader) {
        request.description = self.description
        if let text = self.priority {
            // Not NaN, which no range contains.
            request.priority = Double(text).flatMap { (0...1).contains($0) ? $0 : nil }
            if request.priority == nil {
                reader.reject("--priority", "expected a number from 0 to 1, found \(QuotedText.quoted(text))")
            }
        }
        switch LabelText.labels(self.label) {
        case .success(let labels): request.labels = labels.isEmpty ? nil : labels
        case .failure(let invalid):
            reader.reject(
                "--label", "expected NAME=VALUE, found \(QuotedText.quoted(invalid.text))",
                remedy: "for example --label team=blue")
        }
    }
}
