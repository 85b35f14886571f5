import CommandLineText
import GatewayCore
import SessionTasks
import TLSEngine
import WebSocketProtocol

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

    private static func remedy(_ kind: TransportFault.Kind, reaching url: EndpointURL) -> String {
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
        case .peerAlert, .handshake, .record, .closedDuringHandshake, .excessiveInput, .unreadableMaterial,
            .wrongPassword, .keyMismatch, .configuration, .outputClosed, .engine:
            return "look at the server with: openssl s_client -connect HOST:PORT"
        }
    }
}
