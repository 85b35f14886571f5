import ControlAPI
import Foundation
import URLLoading

/// Why a request to a control plane failed, and what to do about it.
package struct ControlFailure: Error, Sendable, Equatable {
    package enum Kind: Sendable, CaseIterable {
        /// The gateway rejected a value: 400, 422 and other statuses below 500. Counts as invalid usage.
        case invalidRequest
        /// A configuration, or a part of one, is invalid.
        case invalidConfiguration
        /// The gateway rejects the input's length or type: 413, 415.
        case unsendableInput
        /// Not found, or already closed: 404, 410.
        case notFound
        /// Not possible in the current state, or on this node of a cluster: 409, 412, 428, and 421 for another node's
        /// connection.
        case conflict
        /// Not authorized: 401, 403, 421.
        case notAllowed
        /// Temporarily unavailable: 429, 503, 504, or no response in time.
        case unavailable
        /// The remote server refused or failed: 502.
        case peer
        /// Internal error of the gateway (500) or of this client.
        case internalError
        /// The control plane cannot be reached.
        case noConnection
        /// TLS with the control plane failed.
        case tls
        /// The server is not a control plane, or has an incompatible version.
        case invalidResponse
        /// Cancelled by this client.
        case cancelled
        /// No data was received in time.
        case receiveTimedOut
    }

    package let kind: Kind
    /// One line, without a full stop.
    package let text: String
    /// What to do; empty if there is no advice.
    package let remedy: String
    /// The problem document as received.
    package var document: Data?
    package var problem: Problem?

    package init(_ kind: Kind, _ text: String, remedy: String = "") {
        self.kind = kind
        self.text = text
        self.remedy = remedy
    }

    /// For what only the node of a cluster that has the connection can do.
    package static let remedyForOtherNode =
        "give that node's control plane with --control; 'sluice nodes' lists the nodes"

    package var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }
}

extension ControlFailure {
    /// A response with a status outside 200 to 299.
    init(refused status: Int, _ headers: ControlHeaders, _ body: Data, at address: ControlAddress) {
        guard headers.mediaType == "application/problem+json",
            let problem = try? JSONDecoder().decode(Problem.self, from: body)
        else {
            if status == 503, let health = try? JSONDecoder().decode(ServiceHealth.self, from: body) {
                self.init(.unavailable, "the gateway is not ready: \(health.status)", remedy: "see the gateway's log")
                self.document = body
            } else {
                self.init(foreign: status, at: address)
            }
            return
        }
        self.init(problem, retryAfter: headers["Retry-After"])
        self.document = body
    }

    /// - Parameter retryAfter: value of `Retry-After` in seconds.
    package init(_ problem: Problem, retryAfter: String? = nil) {
        self.init(Self.kind(problem), Self.text(problem), remedy: Self.remedy(problem, retryAfter: retryAfter))
        self.problem = problem
    }

    private static func kind(_ problem: Problem) -> Kind {
        switch problem.code {
        case "invalid-configuration": return .invalidConfiguration
        case "other-node", "not-forwarded": return .conflict
        default: break
        }
        return switch problem.status {
        case 401, 403, 421: .notAllowed
        case 404, 410: .notFound
        case 409, 412, 428: .conflict
        case 429, 503, 504: .unavailable
        case 502: .peer
        case 413, 415: .unsendableInput
        case 400..<500: .invalidRequest
        default: .internalError
        }
    }

    /// Title, detail and position in the request.
    private static func text(_ problem: Problem) -> String {
        let detail = self.trimmed(problem.detail)
        let places = (problem.errors ?? []).map { field in
            let place = field.pointer ?? field.parameter ?? "the request"
            let own = self.trimmed(field.detail)
            return own == detail || own.isEmpty ? "at \(place)" : "at \(place): \(own)"
        }
        let place = places.isEmpty ? "" : " (\(places.joined(separator: ", ")))"
        return "\(problem.title): \(detail)\(place)"
    }

    /// Removes a full stop at the end.
    static func trimmed(_ text: String) -> String {
        text.hasSuffix(".") && !text.hasSuffix("..") ? String(text.dropLast()) : text
    }

    private static func remedy(_ problem: Problem, retryAfter: String?) -> String {
        switch (problem.status, problem.code) {
        case (401, _): return "pass a token with --token-file or SLUICE_TOKEN"
        case (403, "path-not-allowed"):
            return "use a file on the gateway's machine below a directory of control.transfers.directories"
        // The detail of these problems includes the remedy.
        case (403, "target-not-allowed"), (403, "credential-not-allowed"), (403, "cross-origin"): return ""
        case (403, _): return "use a token with the required scope"
        case (421, "other-node"), (421, "not-forwarded"):
            return self.remedyForOtherNode
        case (404, "unknown-connection"): return "'sluice ls --state any' lists open and closed connections"
        case (404, "unknown-listener"), (404, "unknown-route"), (404, "unknown-upstream"):
            return "'sluice \(problem.code.dropFirst("unknown-".count))s' lists the known names"
        case (404, "unknown-room"): return "'sluice rooms' lists the rooms"
        case (404, "unknown-user"): return "'sluice users' lists the users who are connected"
        case (404, "unknown-transfer"): return "start a new transfer without --resume"
        case (404, "unknown-drain"): return "'sluice events --type drainEnded --after 0' lists finished drains"
        case (409, "not-a-stream"), (409, "not-a-websocket"): return "'sluice ls' shows the kind of each connection"
        case (409, "file-exists"): return "use --overwrite to replace it"
        case (409, "body-gone"): return "upload the file with 'sluice put FILE URL'"
        case (410, _) where problem.connection?.id != nil:
            return "'sluice show \(problem.connection?.id ?? "")' shows the reason"
        case (412, _), (428, _): return "it was changed concurrently: check it and repeat the change"
        case (500, _): return "see the gateway's log"
        default: break
        }
        guard problem.retryable else { return "" }
        return retryAfter.map { "try again in \($0) s" } ?? "try again"
    }

    /// The server is not a control plane.
    /// - Parameter status: HTTP status; 0 for a response that is not HTTP.
    init(foreign status: Int, at address: ControlAddress) {
        self.init(
            .invalidResponse,
            "the server at \(address) is not a control plane\(status > 0 ? " (status \(status))" : "")",
            remedy: "pass the address that 'sluice serve' prints after 'control on' with --control")
    }

    /// Description of a JSON error.
    package static func describe(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        switch error {
        case .keyNotFound(let key, let context): return "\(self.place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "\(self.place(context.codingPath)) has the wrong type"
        case .dataCorrupted(let context):
            return context.codingPath.isEmpty
                ? "invalid JSON" : "\(self.place(context.codingPath)) has an invalid value"
        @unknown default: return "invalid JSON"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "the document" : path.map { "/" + ($0.intValue.map(String.init) ?? $0.stringValue) }.joined()
    }
}

extension ControlFailure {
    /// A request that failed without a complete response.
    init(_ error: any Error, at address: ControlAddress) {
        guard let error = error as? URLError else {
            self.init(.internalError, "\(address): \(error)")
            return
        }
        let words = Self.trimmed(error.localizedDescription)
        switch error.code {
        case .cancelled: self.init(.cancelled, "interrupted")
        case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet:
            self.init(
                .noConnection, "no control plane at \(address): \(words)",
                remedy: "start one with 'sluice serve', or pass its address with --control")
        case .timedOut:
            self.init(.unavailable, "\(address) did not respond in time", remedy: "try again, or see the gateway's log")
        case .networkConnectionLost:
            self.init(
                .noConnection, "\(address) closed the connection before the response was complete",
                remedy: "check that the gateway is running, and see its log")
        case .badServerResponse, .cannotParseResponse: self.init(foreign: 0, at: address)
        default: self.init(securing: error.code, words, at: address)
        }
    }

    private init(securing code: URLError.Code, _ words: String, at address: ControlAddress) {
        switch code {
        case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate,
            .serverCertificateNotYetValid:
            self.init(
                .tls, "the certificate of \(address) is not trusted: \(words)",
                remedy: "trust its CA with --control-ca FILE")
        case .clientCertificateRequired, .clientCertificateRejected:
            self.init(
                .tls, "\(address) rejected the client certificate: \(words)",
                remedy: "pass one with --control-certificate and --control-key")
        case .secureConnectionFailed:
            self.init(
                .tls, "TLS with \(address) failed: \(words)",
                remedy: address.isSecure ? "the control plane may not use TLS: try http://" : "")
        default: self.init(.noConnection, "\(address): \(words)")
        }
    }
}
