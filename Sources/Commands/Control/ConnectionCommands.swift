import ArgumentParser
import CommandLineText
import ControlAPI
import ControlClient
import GatewayConfiguration
import GatewayCore
import StreamTransport
import WebSocketProtocol

/// `sluice close`: ends connections, or one direction of a stream.
struct CloseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "close",
        abstract: "End a connection in order, at once, or in one direction.",
        discussion: """
            A WebSocket is closed with 1000, or the code that --code says; a stream sends what waits, and its end. What has not ended \
            after 5s is told as closing. Of several connections each is tried; the exit code is that of the first that failed.

            EXAMPLES
              sluice close 17 --code 4001 --reason 'maintenance'
              sluice close 18 19 20 --abort
              sluice close 21 --write

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connections.", valueName: "ID"))
    var ids: [String]

    @Option(
        help: ArgumentHelp("Close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999. (default: 1000)", valueName: "code")
    )
    var code: String?

    @Option(help: ArgumentHelp("Close reason, at most 123 bytes.", valueName: "text"))
    var reason: String?

    @Flag(help: "At once, with a reset; what waits is lost.")
    var abort = false

    @Flag(help: "Of a stream: nothing more is read.")
    var read = false

    @Flag(help: "Of a stream: our end is sent behind what waits, and nothing more.")
    var write = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.parameters) { desk, parameters in
            var first: ControlFailure?
            for id in self.ids {
                do {
                    try await self.close(id, parameters, desk)
                } catch let failure as ControlFailure where self.ids.count > 1 && failure.kind != .noConnection {
                    try await desk.tell(failure)
                    first = first ?? failure
                }
            }
            if let first { throw first.exitCode }
        }
    }

    private func parameters(_ reader: inout OptionReader) -> [ControlRequest.Parameter]? {
        let isWhole = !self.read && !self.write
        let code = reader.value("--code", self.code, ValueSyntax<CloseCode>.closeCode)
        let reason = reader.value("--reason", self.reason, ValueSyntax<String>.closeReason)
        let says = self.code != nil || self.reason != nil
        if says && (self.abort || !isWhole) {
            reader.note(
                self.code == nil ? "--reason" : "--code", expected: "the end of a whole connection, in order",
                found: self.abort ? "--abort" : "--read or --write")
        }
        if self.abort, !isWhole { reader.note("--abort", expected: "no --read and no --write", found: "one") }
        return [
            code.map { ControlRequest.Parameter("code", "\($0.rawValue)") },
            reason.map { ControlRequest.Parameter("reason", $0) },
            self.abort ? ControlRequest.Parameter("abort", "true") : nil,
        ].compactMap(\.self)
    }

    private func close(_ id: String, _ parameters: [ControlRequest.Parameter], _ desk: CommandContext) async throws {
        guard self.read || self.write else {
            let answer = try await desk.session.send(ControlRequest(.delete, ConnectionPath.one(id), parameters))
            return try await desk.show(answer, as: Connection.self) { one in
                [TerminalText.line("\(one.id ?? id) \(one.ending)", limit: 400)]
            }
        }
        for (verb, isWanted, word) in [("closeRead", self.read, "reading"), ("closeWrite", self.write, "writing")]
        where isWanted {
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb(verb, id)))
            try await desk.show(answer, as: Connection.self) { one in
                [TerminalText.line("\(one.id ?? id) closed for \(word)")]
            }
        }
    }
}

/// `sluice ping`: the round trip of a WebSocket.
struct PingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Send a Ping on a WebSocket, and tell how long its Pong took.",
        discussion: """
            The Ping goes between two messages of what else flows on the connection.

            EXAMPLES
              sluice ping 17
              sluice ping 17 --count 10 --interval 500ms

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(name: .shortAndLong, help: ArgumentHelp("How many, 1 to 1000000. (default: 1)", valueName: "number"))
    var count: String?

    @Option(help: ArgumentHelp("Between two of them, 0s to 1h. (default: 1s)", valueName: "duration"))
    var interval: String?

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    private struct Plan {
        var count: Int
        var interval: Duration
    }

    func run() async throws {
        try await self.control.run(reading: self.plan) { desk, plan in
            let request = ControlRequest(.post, ConnectionPath.verb("ping", self.id))
            for turn in 0..<plan.count {
                if turn > 0 { try await Task.sleep(for: plan.interval) }
                let answer = try await desk.session.send(request)
                try await desk.show(answer, as: PingAnswer.self) { answer in
                    let time = QuantityText.span(milliseconds: answer.rttMs)
                    return ["\(TerminalText.line(self.id)): pong after \(time)"]
                }
            }
        }
    }

    private func plan(_ reader: inout OptionReader) -> Plan? {
        let count = reader.value("--count", self.count, .integer(1...1_000_000))
        let interval = reader.value("--interval", self.interval, .duration(.zero ... .seconds(3600)))
        return Plan(count: count ?? 1, interval: interval ?? .seconds(1))
    }
}

/// `sluice set`: changes what people keep with a connection.
struct SetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change description, priority and labels of a connection.",
        discussion: """
            What is not named stays. Labels are set all anew: those that are not named go.

            EXAMPLES
              sluice set 17 --description 'a customer' --label team=blue --label tier=1
              sluice set 17 --no-labels

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "What")
    var notes: NoteOptions

    @Flag(help: "Take all labels away.")
    var noLabels = false

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: Connection.self) { ConnectionSheet($0).lines }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        var patch = self.notes.patch(&reader)
        if self.noLabels {
            if patch.labels != nil { reader.note("--no-labels", expected: "no --label", found: "one") }
            patch.labels = [:]
        }
        if patch == ConnectionPatch(), reader.problems.isEmpty {
            reader.note("sluice set", expected: "--description, --priority, --label or --no-labels", found: "none")
        }
        return try ControlRequest(.patch, ConnectionPath.one(self.id), json: patch)
    }
}

/// `sluice secure`: goes over to TLS in the middle of a stream.
struct SecureCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secure",
        abstract: "Go over to TLS on a stream, as STARTTLS wants it.",
        discussion: """
            What was sent before goes out in the clear first. The peer must know that TLS begins: its protocol says how.

            EXAMPLES
              sluice send 18 --crlf STARTTLS && sluice receive 18 && sluice secure 18

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @Option(help: ArgumentHelp("For the handshake, 1ms to 10m. (default: 10s)", valueName: "duration"))
    var timeout: String?

    @OptionGroup(title: "TLS")
    var security: SecurityOptions

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run(reading: self.request) { desk, request in
            let answer = try await desk.session.send(request)
            try await desk.show(answer, as: Connection.self) { one in
                let facts = [one.tls?.version, one.tls?.cipher].compactMap(\.self).joined(separator: ", ")
                return [TerminalText.line("\(one.id ?? self.id) secured with \(facts)")]
            }
        }
    }

    private func request(_ reader: inout OptionReader) throws -> ControlRequest? {
        let timeout = reader.value("--timeout", self.timeout, .duration(.milliseconds(1) ... .seconds(600)))
        var body = try self.security.request() ?? TLSRequest()
        body.timeoutMs = timeout.map { $0 / .milliseconds(1) }
        var request = try ControlRequest(.post, ConnectionPath.verb("startSecureConnection", self.id), json: body)
        request.patience = (timeout ?? .seconds(10)) + .seconds(30)
        return request
    }
}

/// Options about the TLS of a connection that the gateway opens.
struct SecurityOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Name to ask for and verify. (default: the host of URL)", valueName: "name"))
    var serverName: String?

    @Flag(name: [.customShort("k"), .long], help: "Take any certificate of the peer. Only for tests.")
    var insecure = false

    @Option(
        help: ArgumentHelp("Trust these authorities, PEM, instead of the gateway's system's.", valueName: "file"),
        completion: .file())
    var ca: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Protocol to offer by ALPN. Repeat for several, best first.", valueName: "name"))
    var alpn: [String] = []

    @Option(help: ArgumentHelp("Oldest version to take, 1.2 or 1.3. (default: 1.2)", valueName: "version"))
    var minTLS: String?

    /// `nil` where nothing was said.
    func request() throws -> TLSRequest? {
        var request = TLSRequest()
        request.serverName = self.serverName
        request.insecure = self.insecure ? true : nil
        request.applicationProtocols = self.alpn.isEmpty ? nil : self.alpn
        request.minimumVersion = self.minTLS
        if let ca {
            do throws(SystemError) {
                request.authorities = String(decoding: try SystemFile.read(ca, limit: 512 << 10), as: UTF8.self)
            } catch {
                throw UnreadableFiles("sluice: --ca: \(ca): \(error)")
            }
        }
        return request == TLSRequest() ? nil : request
    }
}

/// `sluice suspend`: stops reading from a connection, and holds messages sent on it through the control plane.
struct SuspendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Read no more from a connection, and hold what is sent on it.",
        discussion: """
            Until 'sluice resume' nothing more is read from it: its peer has to wait, once the buffers on the way are full. \
            What 'sluice send' gives it waits in a queue of at most 4 MiB, and no Ping is sent. What a tunnel, an echo or a \
            chat room passes on to it is still sent, and its idle timeout and maximum age go on.

            EXAMPLES
              sluice suspend 17
              sluice resume 17

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb("suspend", self.id)))
            try await desk.show(answer, as: Connection.self) { [TerminalText.line("\($0.id ?? self.id) suspended")] }
        }
    }
}

/// `sluice resume`: resumes a suspended connection.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Go on with a connection that is suspended.",
        discussion: """
            What the peer sent meanwhile is read, and what waited is sent.

            EXAMPLES
              sluice resume 17

            \(ControlHelp.exitCodes)
            """)

    @Argument(help: ArgumentHelp("The connection.", valueName: "ID"))
    var id: String

    @OptionGroup(title: "Gateway and output")
    var control: ControlOptions

    func run() async throws {
        try await self.control.run { desk in
            let answer = try await desk.session.send(ControlRequest(.post, ConnectionPath.verb("resume", self.id)))
            try await desk.show(answer, as: Connection.self) { [TerminalText.line("\($0.id ?? self.id) resumed")] }
        }
    }
}

/// Labels and description of a connection.
struct NoteOptions: ParsableArguments {
    @Option(help: ArgumentHelp("What it is for, at most 1024 bytes.", valueName: "text"))
    var description: String?

    @Option(help: ArgumentHelp("A hint, 0 to 1. (default: 0.5)", valueName: "number"))
    var priority: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("A label. Repeat for several.", valueName: "name=value"))
    var label: [String] = []

    func patch(_ reader: inout OptionReader) -> ConnectionPatch {
        var patch = ConnectionPatch(description: self.description)
        if let text = self.priority {
            patch.priority = Double(text)
            if patch.priority == nil {
                reader.note("--priority", expected: "a number from 0 to 1", found: QuotedText.quoted(text))
            }
        }
        switch LabelText.labels(self.label) {
        case .success(let labels): patch.labels = labels.isEmpty ? nil : labels
        case .failure(let fault):
            reader.note(
                "--label", expected: "a name and a value", found: QuotedText.quoted(fault.text),
                remedy: "write it like --label team=blue")
        }
        return patch
    }
}
