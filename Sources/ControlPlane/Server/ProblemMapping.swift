import ControlAPI
import FoundationEssentials
import GatewayConfiguration
import GatewayCore
import SessionTasks
import TLSEngine
import WebSocketProtocol

/// Maps the typed errors of other modules to problems. Everything else throws the errors of its own module.
extension ControlProblem {
    /// 422 with a pointer to the member that makes the opening handshake invalid.
    init(_ error: HandshakeUsageError) {
        switch error {
        case .malformedField(let field):
            self = .invalid(
                JSONPointer.member(field.name, of: "/headers"),
                "A header's name must be a token, and its value one line without surrounding spaces.")
        case .reservedField(let name):
            self = .invalid(
                JSONPointer.member(name, of: "/headers"), "\(name) is set by the handshake; leave it out.")
        case .malformedSubprotocol:
            self = .invalid("/subprotocols", "A subprotocol must be a token (RFC 6455 §4.1).")
        case .repeatedSubprotocol(let name):
            self = .invalid("/subprotocols", "\(name) is offered twice; offer each subprotocol once (RFC 6455 §4.1).")
        case .subprotocolsGivenTwice:
            self = .invalid("/subprotocols", "Offer subprotocols here or in a header, not in both.")
        case .malformedAuthority: self = .invalid("/url", "The host or the port of url is invalid.")
        case .malformedTarget: self = .invalid("/url", "The path of url must start with / and be percent-encoded.")
        case .malformedOffer: self = .invalid("/compress", "These compression parameters cannot be offered.")
        }
    }

    // MARK: Values

    /// 422 for a URL.
    /// - Parameter pointer: to the member with the URL.
    init(_ error: ValueSyntaxError, at pointer: String) {
        let remedy = error.remedy.isEmpty ? "" : ": \(error.remedy)"
        self = .invalid(pointer, "\(pointer.dropFirst()) must be \(error.expected)\(remedy).")
    }

    /// 422 for TLS settings.
    /// - Parameter pointer: to the member with the settings.
    init(_ failure: TLSFailure, at pointer: String) {
        self = .invalid(pointer, "These TLS settings cannot be used: \(failure.description)")
    }

    /// 400 for a body that is not YAML.
    init(malformedYAML problem: ConfigurationProblem) {
        self.init(400, "malformed-yaml", problem.description)
    }

    // MARK: Files

    /// - Parameter pointer: to the member with the path.
    init(_ error: FileError, of path: String, at pointer: String) {
        let (status, code) =
            switch error.kind {
            case .missing: (422, "no-such-file")
            case .exists: (409, "file-exists")
            case .notAllowed: (403, "path-not-allowed")
            case .unusable: (409, "file-unusable")
            }
        self = ControlProblem(status, code, "\(path.prefix(256)): \(error.description).").at(pointer: pointer)
    }

    /// The file with the content of a transfer cannot be read any more.
    init(_ error: FileError, ofContent path: String) {
        self.init(410, "file-gone", "\(path): \(error.description).")
    }

    /// The secret of a credential cannot be read.
    init(_ error: GatewayPlanError, ofCredential name: String) {
        self.init(409, "credential-unusable", "The credential \(name) cannot be read; check its file.")
    }

    // MARK: Tasks

    /// The problem for a failed operation on a task.
    init(_ failure: TaskFailure) {
        switch failure {
        case .cancelled: self.init(409, "cancelled", "The connection was closed before the operation ended.")
        case .timedOut: self = Self(504, "timed-out", "The operation timed out; try a longer timeout.").retryable()
        case .directionClosed:
            self.init(409, "direction-closed", "This direction of the connection is already closed.")
        case .usageError(let text): self.init(409, "state-conflict", text)
        case .ended, .closed: self.init(410, "closed", "The connection is closed.")
        case .connectionLost(let error): self.init(410, "connection-lost", error.description)
        case .cannotConnect(let failure):
            self = Self(failure.isLocalResourceFailure ? 503 : 502, "cannot-connect", failure.description).retryable()
        case .secureConnectionFailed(let failure): self.init(502, "tls-failed", "TLS failed: \(failure)")
        case .handshakeRefused(let status):
            self.init(502, "handshake-refused", "The server answered the opening handshake with status \(status).")
        case .protocolViolation(_, let text):
            self.init(502, "protocol-violation", "The peer broke the protocol: \(text)")
        case .messageTooLong(let limit):
            self.init(502, "message-too-long", "A message is longer than the limit of \(limit) bytes.")
        case .peerUnresponsive: self.init(504, "peer-unresponsive", "The peer stopped answering.")
        }
    }

    // MARK: Refused configurations

    /// Most configuration errors in one problem.
    private static let errorLimit = 100

    init(_ refusal: ConfigurationRefusal) {
        switch refusal {
        case .problems(let problems, let entry): self = Self.invalidConfiguration(problems, entry: entry)
        case .unknown(let section, let name):
            self.init(404, "unknown-\(section.singularName)", "There is no \(section.singularName) \(name.prefix(64)).")
        case .taken(let section, let name):
            self = Self(
                409, "name-taken", "The \(section.singularName) \(name.prefix(64)) already exists; choose another name."
            )
            .at(pointer: "/name")
        case .cannotRun(let error):
            self.init(409, "cannot-run", "The change was not applied, as it cannot run: \(error.description)")
        case .preconditionFailed:
            self.init(
                412, "changed-meanwhile",
                "If-Match or If-None-Match does not hold for the current state; get it again and change that.")
        case .noFile: self.init(409, "no-file", "The gateway was started without a configuration file to reload.")
        case .unreadable(let text): self.init(409, "unreadable-file", text)
        }
    }

    private static func invalidConfiguration(_ problems: ConfigurationProblems, entry: ConfigurationKeyPath?)
        -> ControlProblem
    {
        let prefix = entry?.steps ?? []
        // Without an error in the changed entry, the conflict is with the rest of the configuration.
        let isOwn = problems.all.contains { entry != nil && $0.keyPath.steps.starts(with: prefix) }
        var problem =
            isOwn
            ? ControlProblem(422, "invalid-configuration", problems.all.first?.explanation ?? "")
            : ControlProblem(
                409, "conflicts-with-configuration",
                "The change conflicts with the rest of the configuration: \(problems.all[0].located)")
        if problems.all.count > 1 { problem.detail += " (and \(problems.all.count - 1) more)" }
        problem.errors = problems.all.prefix(self.errorLimit).map { error in
            guard entry != nil, error.keyPath.steps.starts(with: prefix) else {
                return ProblemField { $0.detail = error.located }
            }
            return ProblemField {
                $0.pointer = error.keyPath.pointer(droppingFirst: prefix.count)
                $0.detail = error.explanation
            }
        }
        return problem
    }
}

extension ConfigurationProblem {
    /// Without the key path.
    fileprivate var explanation: String {
        let text = "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : "\(text); \(self.remedy)"
    }

    /// With the key path in the whole configuration.
    fileprivate var located: String {
        self.keyPath.steps.isEmpty ? self.explanation : "\(self.keyPath): \(self.explanation)"
    }
}

extension ConfigurationKeyPath {
    /// A JSON pointer (RFC 6901).
    func pointer(droppingFirst count: Int = 0) -> String {
        self.steps.dropFirst(count).map { step in
            switch step {
            case .key(let name): JSONPointer.step(name)
            case .index(let index): "/\(index)"
            }
        }.joined()
    }
}
