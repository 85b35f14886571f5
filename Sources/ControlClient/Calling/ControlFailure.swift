import ControlAPI
import Foundation
import URLLoading

/// Why something was not done, with the next thing to try.
package struct ControlFailure: Error, Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        /// A value that was given is not valid: 400, 422 and the like. Wrong usage, as what the command line refuses itself.
        case wrongRequest = "wrong-request"
        /// A configuration, or a part of one, that is not right.
        case wrongConfiguration = "wrong-configuration"
        /// The gateway rejects the input's length or type: 413, 415.
        case unsendableInput = "unsendable-input"
        /// There is no such thing, or it is over: 404, 410.
        case unknown
        /// Not in the state in which it is: 409, 412, 428.
        case conflict
        /// 401, 403, 421.
        case notAllowed = "not-allowed"
        /// It may be done later: 429, 503, 504.
        case later
        /// The gateway's peer refused or failed: 502.
        case peer
        /// The gateway's fault, or ours: 500.
        case fault
        /// No control plane answers.
        case noConnection = "no-connection"
        /// TLS with the control plane.
        case secure
        /// The server is no control plane, or of another version.
        case nonsense
        /// Cancelled by us.
        case cancelled
        /// A timeout without data: not a failure.
        case nothingCame = "nothing-came"
    }

    package let kind: Kind
    /// One line, without a full stop.
    package let text: String
    /// What to do; empty if there is no advice.
    package let remedy: String
    /// The problem document as it came.
    package var document: Data?
    package var problem: Problem?

    package init(_ kind: Kind, _ text: String, remedy: String = "") {
        self.kind = kind
        self.text = text
        self.remedy = remedy
    }

    package var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }
}

extension ControlFailure {
    /// An answer that is no success.
    init(refused status: Int, _ headers: ControlHeaders, _ body: Data, at address: ControlAddress) {
        guard headers.mediaType == "application/problem+json",
            let problem = try? JSONDecoder().decode(Problem.self, from: body)
        else {
            if status == 503, let health = try? JSONDecoder().decode(ServiceHealth.self, from: body) {
                self.init(.later, "the gateway is not well: \(health.status)", remedy: "its log says more")
                self.document = body
            } else {
                self.init(foreign: status, at: address)
            }
            return
        }
        self.init(problem, retryAfter: headers["Retry-After"])
        self.document = body
    }

    /// - Parameter retryAfter: seconds, as the server says them.
    package init(_ problem: Problem, retryAfter: String? = nil) {
        self.init(
            problem.code == "invalid-configuration" ? .wrongConfiguration : Self.kind(problem.status),
            Self.text(problem), remedy: Self.remedy(problem, retryAfter: retryAfter))
        self.problem = problem
    }

    private static func kind(_ status: Int) -> Kind {
        switch status {
        case 401, 403, 421: .notAllowed
        case 404, 410: .unknown
        case 409, 412, 428: .conflict
        case 429, 503, 504: .later
        case 502: .peer
        case 413, 415: .unsendableInput
        case 400..<500: .wrongRequest
        default: .fault
        }
    }

    /// Title, detail and where in the request.
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

    /// A sentence that something follows has no full stop.
    static func trimmed(_ text: String) -> String {
        text.hasSuffix(".") && !text.hasSuffix("..") ? String(text.dropLast()) : text
    }

    private static func remedy(_ problem: Problem, retryAfter: String?) -> String {
        switch (problem.status, problem.code) {
        case (401, _): return "give a token with --token-file or SLUICE_TOKEN"
        case (403, "path-not-allowed"):
            return "name a file of the gateway's machine below a directory of control.transfers.directories"
        // Their details already say what to do.
        case (403, "target-not-allowed"), (403, "credential-not-allowed"), (403, "cross-origin"): return ""
        case (403, _): return "use a token with the scope that this needs"
        case (404, "unknown-connection"): return "'sluice ls --state any' lists those that there are and were"
        case (404, "unknown-listener"), (404, "unknown-route"), (404, "unknown-upstream"):
            return "'sluice \(problem.code.dropFirst("unknown-".count))s' lists those that there are"
        case (404, "unknown-transfer"): return "begin it anew, without --resume"
        case (404, "unknown-drain"): return "look at 'sluice events --type drainEnded --after 0'"
        case (409, "not-a-stream"), (409, "not-a-websocket"): return "'sluice ls' shows of which kind each is"
        case (409, "file-exists"): return "--overwrite replaces it"
        case (409, "body-gone"): return "send the file with 'sluice put FILE URL'"
        case (410, _) where problem.connection?.id != nil:
            return "'sluice show \(problem.connection?.id ?? "")' tells how it ended"
        case (412, _), (428, _): return "somebody else changed it: look at it again, and repeat the change"
        case (500, _): return "the gateway's log says more"
        default: break
        }
        guard problem.retryable else { return "" }
        return retryAfter.map { "try again in \($0) s" } ?? "it may succeed when it is tried again"
    }

    /// Something answered that is no control plane.
    init(foreign status: Int, at address: ControlAddress) {
        self.init(
            .nonsense, "what answers at \(address) is no control plane\(status > 0 ? " (status \(status))" : "")",
            remedy: "name the address that 'sluice serve' prints behind 'control on' with --control")
    }

    /// Description of a JSON error.
    package static func words(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(error)" }
        switch error {
        case .keyNotFound(let key, let context): return "\(self.place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "\(self.place(context.codingPath)) has another type"
        case .dataCorrupted(let context):
            return context.codingPath.isEmpty ? "no JSON text" : "\(self.place(context.codingPath)) cannot be meant"
        @unknown default: return "no JSON text"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "its whole" : path.map { "/" + ($0.intValue.map(String.init) ?? $0.stringValue) }.joined()
    }
}

extension ControlFailure {
    /// A request that had no answer, or lost it.
    init(_ error: any Error, at address: ControlAddress) {
        guard let error = error as? URLError else {
            self.init(.fault, "\(address): \(error)")
            return
        }
        let said = error.localizedDescription
        let words = said.hasSuffix(".") ? String(said.dropLast()) : said
        switch error.code {
        case .cancelled: self.init(.cancelled, "interrupted")
        case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet:
            self.init(
                .noConnection, "no control plane at \(address): \(words)",
                remedy: "start one with 'sluice serve', or name another with --control")
        case .timedOut:
            self.init(.later, "\(address) did not answer in time", remedy: "try again, or look at the gateway's log")
        case .networkConnectionLost:
            self.init(
                .noConnection, "\(address) ended the connection before its answer was whole",
                remedy: "the gateway may have ended; its log says more")
        case .badServerResponse, .cannotParseResponse: self.init(foreign: 0, at: address)
        default: self.init(securing: error.code, words, at: address)
        }
    }

    private init(securing code: URLError.Code, _ words: String, at address: ControlAddress) {
        switch code {
        case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate,
            .serverCertificateNotYetValid:
            self.init(
                .secure, "the certificate of \(address) is not trusted: \(words)",
                remedy: "trust its authority with --control-ca FILE")
        case .clientCertificateRequired, .clientCertificateRejected:
            self.init(
                .secure, "\(address) wants another certificate of us: \(words)",
                remedy: "give one with --control-certificate and --control-key")
        case .secureConnectionFailed:
            self.init(
                .secure, "TLS with \(address) failed: \(words)",
                remedy: address.isSecure ? "maybe there is no TLS: try http://" : "")
        default: self.init(.noConnection, "\(address): \(words)")
        }
    }
}
