import ArgumentParser
import CommandLineText
import GatewayConfiguration
import GatewayCore
import SessionTasks
import TLSEngine
import WebSocketProtocol

/// Why `connect` did not end in order: in words, with the next thing to try.
struct ConnectFailure: Error, Sendable, Equatable {
    enum Kind: String, Sendable {
        case unsendableInput = "unsendable-input"
        case noConnection = "no-connection"
        case inputOrOutput = "input-or-output"
        case noAnswer = "no-answer"
        case outOfOrder = "out-of-order"
        case refused
        case tls
        case closedWithCode = "closed-with-code"
        case interrupted
        /// Of a connection that a gateway keeps: not in the state for it.
        case conflict
    }

    let kind: Kind
    /// One line, without a full stop.
    let text: String
    /// What to do; empty if there is no advice.
    let remedy: String
    /// Of the answer to the opening handshake.
    var status: Int?

    init(_ kind: Kind, _ text: String, remedy: String = "", status: Int? = nil) {
        self.kind = kind
        self.text = TerminalText.line(text, limit: 600)
        self.remedy = TerminalText.line(remedy, limit: 300)
        self.status = status
    }

    var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }

    var exitCode: ExitCode {
        switch self.kind {
        case .unsendableInput: ExitCode(65)
        case .noConnection: ExitStatus.unavailable
        case .inputOrOutput: ExitCode(74)
        case .noAnswer: ExitCode(75)
        case .outOfOrder: ExitCode(76)
        case .refused: ExitCode(77)
        case .tls: ExitCode(79)
        case .closedWithCode: ExitCode(80)
        case .interrupted: ExitCode(130)
        case .conflict: ExitCode(81)
        }
    }
}

extension ConnectFailure {
    /// A task that failed before its connection was open.
    init(opening failure: TaskFailure, of url: EndpointURL) {
        switch failure {
        case .cannotConnect(let fault):
            self.init(.noConnection, "\(url): \(fault)", remedy: Self.remedy(fault.kind, reaching: url))
        case .timedOut:
            self.init(.noConnection, "\(url): not open in time", remedy: "try a longer --timeout, like --timeout 30s")
        case .secureConnectionFailed(let failure):
            self.init(.tls, "\(url): TLS failed: \(failure)", remedy: Self.remedy(failure, url))
        case .protocolViolation(_, let text):
            self.init(
                .refused, "\(url): the answer to the opening handshake is not one: \(text)",
                remedy: "check that a WebSocket server is behind this URL; tcp:// shows what it says")
        case .connectionLost(let fault):
            self.init(.outOfOrder, "\(url): \(fault)", remedy: "the server ended it before the connection was open")
        case .cancelled: self.init(.interrupted, "interrupted")
        default: self.init(.outOfOrder, "\(url): \(failure)")
        }
    }

    /// A connection that was open and failed.
    init(_ failure: TaskFailure) {
        switch failure {
        case .cancelled: self.init(.interrupted, "interrupted")
        case .messageTooLong:
            self.init(.outOfOrder, "\(failure)", remedy: "allow longer ones with --max-message-size")
        case .peerUnresponsive:
            self.init(.outOfOrder, "the peer stopped answering", remedy: "what was sent last may not have arrived")
        case .connectionLost(let fault):
            self.init(.outOfOrder, fault.description, remedy: "the end is not in order: something may be missing")
        default: self.init(.outOfOrder, "\(failure)")
        }
    }

    /// The server's no to the opening handshake.
    init(refusal: ResponseHead, body: [UInt8], of url: EndpointURL) {
        let reason = refusal.reason.isEmpty ? "" : " \(refusal.reason)"
        let said = TerminalText.line(String(decoding: body.prefix(400), as: UTF8.self))
        self.init(
            .refused,
            "\(url): the server refused the opening handshake: \(refusal.status)\(reason)"
                + (said.isEmpty ? "" : ": \"\(said)\""),
            remedy: Self.remedy(refusal), status: refusal.status)
    }

    private static func remedy(_ refusal: ResponseHead) -> String {
        switch refusal.status {
        case 300...399: "try \(refusal.fields["Location"] ?? "another URL") in its place"
        case 401, 407: "give credentials, like -H 'Authorization: Bearer …'"
        case 403: "try an --origin that the server allows, or credentials with -H"
        case 404: "check the path"
        case 200...299, 405, 426: "this path answers plain HTTP: check the path"
        case 429, 503: "try again \(refusal.fields["Retry-After"].map { "in \($0) s" } ?? "later")"
        default: "-v with another path or header may tell more"
        }
    }

    private static func remedy(_ kind: TransportError.Kind, reaching url: EndpointURL) -> String {
        switch kind {
        case .ownResources: return "close other connections, or raise this machine's limits"
        case .unusableEndpoint: return "check what listens there, its queue, and who may connect to it"
        case .reset, .truncated, .nameResolution, .refused, .noSuchFile, .notPermitted, .unreachable, .system: break
        }
        switch url.location {
        case .unix(let path): return "check that a program listens at \(path)"
        case .name(let name, let port): return "check the name \(name), and that something listens on its port \(port)"
        case .address(_, let port): return "check that something listens on port \(port)"
        }
    }

    private static func remedy(_ failure: TLSFailure, _ url: EndpointURL) -> String {
        let trust = "trust its authority with --ca FILE, or look at it with -k"
        let identity = "maybe the server wants a certificate: give one with --certificate and --key"
        switch failure.kind {
        case .verification(let verdict) where verdict.isNameMismatch:
            return "name the server as its certificate does, with --server-name"
        case .verification, .pinMismatch, .rejected: return trust
        case .notTLS: return "maybe there is no TLS: try \(url.scheme == .wss ? "ws" : "tcp")://"
        // RFC 8446 §6.2: handshake_failure is also the answer of TLS 1.2 to a missing certificate.
        case .peerAlert where failure.concernsCertificates || failure.alert?.code == 40: return identity
        case .peerAlert, .handshake, .record, .closedDuringHandshake, .excessiveInput, .unreadableCredentials,
            .wrongPassword, .keyMismatch, .configuration, .outputClosed, .engine:
            return "look at the server with: openssl s_client -connect HOST:PORT"
        }
    }
}

/// Maps an invalid opening handshake to the option that caused it.
enum HandshakeProblem {
    static func note(_ error: HandshakeUsageError, in reader: inout OptionReader) {
        switch error {
        case .malformedField(let field):
            reader.note(
                "--header", expected: "a header field without control characters",
                found: QuotedText.quoted("\(field.name): \(field.value)"))
        case .reservedField(let name):
            reader.note(
                "--header", expected: "no field of the opening handshake itself", found: QuotedText.quoted(name),
                remedy: "leave it out; --subprotocol and --compress ask for what these fields say")
        case .malformedSubprotocol(let name):
            reader.note("--subprotocol", expected: "a token", found: QuotedText.quoted(name))
        case .repeatedSubprotocol(let name):
            reader.note("--subprotocol", expected: "each name once", found: "\(QuotedText.quoted(name)) twice")
        case .subprotocolsGivenTwice:
            reader.note(
                "--subprotocol", expected: "nothing beside --header 'Sec-WebSocket-Protocol: …'", found: "both",
                remedy: "leave the header out")
        case .malformedAuthority(let text):
            reader.note("--header", expected: "a host, and maybe a port, in Host", found: QuotedText.quoted(text))
        case .malformedTarget(let text):
            reader.note("URL", expected: "a path of visible ASCII characters", found: QuotedText.quoted(text))
        case .malformedOffer:
            reader.note("--compress", expected: "windows of 8 to 15 bits", found: "others")
        }
    }
}
