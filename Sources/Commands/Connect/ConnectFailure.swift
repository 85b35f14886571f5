import CommandLineText
import GatewayConfiguration
import SessionTasks
import TLSEngine
import WebSocketProtocol

/// Why `connect` failed, and what to do about it.
struct ConnectFailure: Error, Sendable, Equatable {
    enum Kind: String, Sendable {
        case unsendableInput = "unsendable-input"
        case noConnection = "no-connection"
        case inputOrOutput = "input-or-output"
        case noAnswer = "no-answer"
        case connectionLost = "out-of-order"
        case refused
        case tls
        case closedWithCode = "closed-with-code"
        case interrupted
        /// The gateway's connection is not in a state to attach to.
        case conflict
    }

    let kind: Kind
    /// One line, without a full stop.
    let text: String
    /// What to do; empty if there is no advice.
    let remedy: String
    /// HTTP status of the response to the opening handshake.
    var status: Int?

    init(_ kind: Kind, _ text: String, remedy: String = "", status: Int? = nil) {
        self.kind = kind
        self.text = TerminalText.singleLine(text, limit: 600)
        self.remedy = TerminalText.singleLine(remedy, limit: 300)
        self.status = status
    }

    var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }
}

extension ConnectFailure {
    /// A task that failed before its connection was open.
    init(opening failure: TaskFailure, of url: EndpointURL) {
        switch failure {
        case .cannotConnect(let failure):
            self.init(.noConnection, "\(url): \(failure)", remedy: Self.remedy(failure.kind, reaching: url))
        case .timedOut:
            self.init(
                .noConnection, "\(url): connecting timed out", remedy: "try a longer --timeout, like --timeout 30s")
        case .secureConnectionFailed(let failure):
            self.init(.tls, "\(url): TLS failed: \(failure)", remedy: Self.remedy(failure, url))
        case .protocolViolation(_, let text):
            self.init(
                .refused, "\(url): invalid response to the opening handshake: \(text)",
                remedy: "check that this URL is served by a WebSocket server; tcp:// shows its raw response")
        case .connectionLost(let error):
            self.init(
                .connectionLost, "\(url): \(error)", remedy: "the server closed the connection before it was open")
        case .cancelled: self.init(.interrupted, "interrupted")
        default: self.init(.connectionLost, "\(url): \(failure)")
        }
    }

    /// A connection that was open and failed.
    init(_ failure: TaskFailure) {
        switch failure {
        case .cancelled: self.init(.interrupted, "interrupted")
        case .messageTooLong:
            self.init(.connectionLost, "\(failure)", remedy: "raise --max-message-size")
        case .peerUnresponsive:
            self.init(.connectionLost, "the peer stopped answering", remedy: "the last data sent may not have arrived")
        case .connectionLost(let error):
            self.init(.connectionLost, error.description, remedy: "received data may be incomplete")
        default: self.init(.connectionLost, "\(failure)")
        }
    }

    /// A server that refused the opening handshake.
    init(refusal: ResponseHead, body: [UInt8], of url: EndpointURL) {
        let reason = refusal.reason.isEmpty ? "" : " \(refusal.reason)"
        let said = TerminalText.singleLine(String(decoding: body.prefix(400), as: UTF8.self))
        self.init(
            .refused,
            "\(url): the server refused the opening handshake: \(refusal.status)\(reason)"
                + (said.isEmpty ? "" : ": \"\(said)\""),
            remedy: Self.remedy(refusal), status: refusal.status)
    }

    private static func remedy(_ refusal: ResponseHead) -> String {
        switch refusal.status {
        case 300...399 where refusal.fields["Location"] != nil:
            "try \(Self.target(refusal.fields["Location"] ?? "")) instead"
        case 401, 407: "pass credentials, like -H 'Authorization: Bearer …'"
        case 403: "try an --origin that the server allows, or credentials with -H"
        case 404: "check the path"
        case 426 where refusal.fields["Sec-WebSocket-Version"] != nil: "the server wants another version of WebSocket"
        case 200...299, 405, 426: "this path answers plain HTTP: check the path"
        case 429, 503: "try again \(refusal.fields["Retry-After"].map { "in \($0) s" } ?? "later")"
        default: "run with -v to see the response header"
        }
    }

    /// The target of a redirect, as `connect` takes it.
    private static func target(_ location: String) -> String {
        let isHTTP = ["http://", "https://"].contains { location.lowercased().hasPrefix($0) }
        return isHTTP ? "ws\(location.dropFirst("http".count))" : location
    }

    private static func remedy(_ kind: TransportError.Kind, reaching url: EndpointURL) -> String {
        switch kind {
        case .ownResources: return "close other connections, or raise this machine's limits on descriptors and ports"
        case .unusableEndpoint: return "check the socket's permissions, its type, and the server's listen backlog"
        case .proxy: return "check the proxy, or connect directly with --proxy none"
        case .reset, .truncated, .nameResolution, .refused, .noSuchFile, .notPermitted, .unreachable, .system: break
        }
        switch url.location {
        case .unix(let path): return "check that a program listens at \(path)"
        case .name(let name, let port):
            return "check that \(name) is the right name, and that a server listens on port \(port)"
        case .address(_, let port): return "check that a server listens on port \(port)"
        }
    }

    private static func remedy(_ failure: TLSFailure, _ url: EndpointURL) -> String {
        let trust = "trust its CA with --ca FILE, or skip verification with -k"
        let identity = "the server may require a client certificate: pass one with --certificate and --key"
        switch failure.kind {
        case .verification(let result) where result.isNameMismatch:
            return "pass the name in the certificate with --server-name"
        case .verification, .pinMismatch, .rejected: return trust
        case .notTLS: return "the server may not use TLS: try \(url.scheme == .wss ? "ws" : "tcp")://"
        // RFC 8446 §6.2: handshake_failure is also the answer of TLS 1.2 to a missing certificate.
        case .peerAlert where failure.concernsCertificates || failure.alert?.code == 40: return identity
        case .peerAlert, .handshake, .record, .closedDuringHandshake, .excessiveInput, .unreadableCredentials,
            .wrongPassword, .keyMismatch, .configuration, .outputClosed, .engine:
            return "inspect the server with: openssl s_client -connect HOST:PORT"
        }
    }
}
