import Foundation
import HTTPTransport
import SessionTasks
import StreamTransport
import TLSEngine
import WireText

/// Maps the failures of the transport, TLS and HTTP layers to `URLError`.
enum LoadFailure {
    /// The value of Foundation's `NSURLErrorFailingURLStringErrorKey`.
    private static let failingURLStringKey = "NSErrorFailingURLStringKey"

    /// The error of a task.
    /// - Parameters:
    ///   - url: the URL that failed.
    ///   - cause: the value of `NSUnderlyingErrorKey`.
    ///   - text: the `localizedDescription`.
    ///   - more: further entries of `userInfo`.
    static func error(
        _ code: URLError.Code, url: URL?, cause: (any Error)? = nil, text: String? = nil, more: [String: Any] = [:]
    ) -> URLError {
        var details = more
        details[NSURLErrorFailingURLErrorKey] = url
        details[Self.failingURLStringKey] = url?.absoluteString
        details[NSUnderlyingErrorKey] = cause
        details[NSLocalizedDescriptionKey] = text ?? self.text(code)
        return URLError(code, userInfo: details)
    }

    /// The error of a program's `URLProtocol`, with the failing URL if it belongs to `NSURLErrorDomain`. Others are left as
    /// they are: the program compares them with its own.
    static func naming(_ url: URL?, in error: any Error) -> any Error {
        let plain = error as NSError
        guard plain.domain == NSURLErrorDomain, let url else { return error }
        let names: [String: Any] = [NSURLErrorFailingURLErrorKey: url, Self.failingURLStringKey: url.absoluteString]
        let details = plain.userInfo.merging(names) { given, _ in given }
        if let error = error as? URLError { return URLError(error.code, userInfo: details) }
        guard type(of: error) == NSError.self else { return error }
        return NSError(domain: plain.domain, code: plain.code, userInfo: details)
    }

    /// The default text of a code. Without one Foundation would show the domain and the number.
    private static func text(_ code: URLError.Code) -> String {
        switch code {
        case .cancelled: "cancelled"
        case .timedOut: "The request timed out."
        case .badURL: "The URL is not valid."
        case .unsupportedURL: "The URL cannot be loaded: its scheme or a part of it is not supported."
        case .cannotFindHost: "A server with the specified hostname could not be found."
        case .dnsLookupFailed: "The server's name could not be resolved."
        case .cannotConnectToHost: "Could not connect to the server."
        case .networkConnectionLost: "The connection to the server was lost."
        case .notConnectedToInternet: "There is no network connection."
        case .resourceUnavailable: "The resource is not available."
        case .badServerResponse, .cannotParseResponse: "The server's response is not valid."
        case .cannotDecodeContentData, .cannotDecodeRawData: "The content could not be decoded."
        case .dataLengthExceedsMaximum: "The response exceeds the maximum size."
        case .httpTooManyRedirects: "The server redirected too often."
        case .redirectToNonExistentLocation: "The server redirected to a URL that cannot be loaded."
        case .requestBodyStreamExhausted: "The request body ended too early."
        case .userAuthenticationRequired: "The server requires a user name and a password."
        case .userCancelledAuthentication: "Authentication was cancelled."
        case .secureConnectionFailed: "A secure connection to the server could not be established."
        case .serverCertificateHasBadDate: "The server's certificate has expired."
        case .serverCertificateNotYetValid: "The server's certificate is not valid yet."
        case .serverCertificateUntrusted: "The server's certificate is not trusted."
        case .serverCertificateHasUnknownRoot: "The server's certificate comes from an unknown authority."
        case .clientCertificateRequired: "The server requires a client certificate."
        case .clientCertificateRejected: "The server rejected the client certificate."
        case .fileDoesNotExist: "The file does not exist."
        case .fileIsDirectory: "The file is a directory."
        case .noPermissionsToReadFile: "There is no permission to read the file."
        case .cannotCreateFile: "The file could not be created."
        case .cannotOpenFile: "The file could not be opened."
        case .cannotCloseFile: "The file could not be closed."
        case .cannotWriteToFile: "The file could not be written."
        case .cannotRemoveFile: "The file could not be removed."
        case .cannotMoveFile: "The file could not be moved."
        default: "The request failed."
        }
    }

    static func error(_ failure: ExchangeFailure, url: URL?) -> URLError {
        switch failure {
        case .cancelled, .poolClosed: self.error(URLError.Code.cancelled, url: url)
        case .request(let error): self.error(self.code(error), url: url, cause: failure, text: self.text(error))
        case .connecting(let cause): self.error(cause, url: url)
        case .notAdmitted:
            self.error(
                .cannotConnectToHost, url: url, cause: failure,
                text: "None of the server's addresses is permitted.")
        case .securing(let cause): self.error(self.code(cause), url: url, cause: cause, text: cause.description)
        case .idle: self.error(.timedOut, url: url, text: "The request timed out.")
        case .leaseLost:
            self.error(
                .networkConnectionLost, url: url, cause: failure,
                text: "The server closes the connection within the authentication of the connection.")
        case .connectionLost(let loss):
            self.error(
                .networkConnectionLost, url: url, cause: loss.cause.map(self.cause) ?? failure,
                text: "The server closed the connection before it sent a response.")
        case .truncated(let received, let expected, let cause):
            self.error(
                .networkConnectionLost, url: url, cause: cause.map(self.cause) ?? failure,
                text: "The content was truncated after \(received) bytes" + (expected.map { " of \($0)." } ?? "."))
        case .violation(let violation):
            self.error(
                self.code(violation), url: url, cause: failure,
                text: "The server violated HTTP. \(violation.explanation)")
        case .body: self.error(.requestBodyStreamExhausted, url: url, cause: failure)
        case .http2(let error): self.error(self.code(error), url: url, cause: failure, text: self.text(error))
        }
    }

    static func error(_ failure: TransportFailure, url: URL?) -> URLError {
        var more: [String: Any] = [:]
        if let reason = URLError.NetworkUnavailableReason(failure.forbiddenClasses) {
            more[NSURLErrorNetworkUnavailableReasonKey] = reason.rawValue
        }
        return self.error(
            self.code(failure), url: url, cause: self.cause(failure), text: self.text(failure), more: more)
    }

    static func error(_ failure: FileBodyFailure, url: URL?) -> URLError {
        self.error(failure.code, url: url, cause: failure.underlying ?? failure, text: failure.description)
    }

    static func error(_ failure: DownloadFileFailure, url: URL?) -> URLError {
        self.error(failure.code, url: url, cause: failure.underlying ?? failure, text: failure.description)
    }

    static func error(_ failure: ContentDecodingFailure, url: URL?) -> URLError {
        self.error(failure.code, url: url, cause: failure, text: failure.description)
    }

    /// The TLS settings of the session cannot be used.
    static func error(ofContext failure: TLSFailure, url: URL?) -> URLError {
        self.error(.secureConnectionFailed, url: url, cause: failure, text: failure.description)
    }

    /// No loop can be started.
    static func outOfDescriptors(_ url: URL?) -> URLError {
        self.error(
            .cannotConnectToHost, url: url, cause: POSIXError(.EMFILE),
            text: "The process has too few file descriptors or threads left.")
    }

    // MARK: Codes

    static func code(_ failure: TransportFailure) -> URLError.Code {
        switch failure {
        case .reset, .truncated: .networkConnectionLost
        case .peerUnresponsive, .deadlinePassed: .timedOut
        case .nameResolution(.nameNotFound): .cannotFindHost
        case .offline, .nameResolution(.noRoute): .notConnectedToInternet
        case .nameResolution: .dnsLookupFailed
        case .refused, .noSuchFile, .notPermitted, .unusableEndpoint, .ownResources: .cannotConnectToHost
        case .unreachable: .cannotConnectToHost
        case .tls: .secureConnectionFailed
        case .proxy: failure.proxyFailure.map { self.code($0) } ?? .cannotConnectToHost
        case .system(let error): self.isOffline(error) ? .notConnectedToInternet : .cannotConnectToHost
        }
    }

    /// Of a failure to get through a proxy.
    private static func code(_ failure: ProxyFailure) -> URLError.Code {
        switch failure {
        case .connection(let failure): self.code(failure)
        case .securing(let failure): self.code(failure)
        case .timedOut: .timedOut
        // 401 is what tinyproxy says to a wrong password.
        case .refused(let head, _) where head.status == 407 || head.status == 401: .userAuthenticationRequired
        case .noAcceptableMethod, .credentialRefused: .userAuthenticationRequired
        case .refused, .refusedBySOCKS, .violation, .closed, .inexpressible: .cannotConnectToHost
        }
    }

    private static func isOffline(_ error: SystemError) -> Bool {
        error.number == ENETDOWN
    }

    static func code(_ failure: TLSFailure) -> URLError.Code {
        switch failure.kind {
        case .verification(let result): ServerTrust.failure(result.code)
        case .pinMismatch, .rejected: .serverCertificateUntrusted
        case .peerAlert:
            self.requiresCertificate(failure.alert)
                ? .clientCertificateRequired : self.certificateAlertCode(failure.alert)
        case .unreadableCredentials, .wrongPassword, .keyMismatch: .clientCertificateRejected
        case .handshake, .notTLS, .record, .closedDuringHandshake, .excessiveInput, .configuration, .outputClosed,
            .engine:
            .secureConnectionFailed
        }
    }

    /// RFC 8446 §6.2: certificate_required.
    private static func requiresCertificate(_ alert: TLSAlert?) -> Bool { alert?.code == 116 }

    /// Alerts about the client certificate: 42 to 46, and 48 (unknown_ca).
    private static func certificateAlertCode(_ alert: TLSAlert?) -> URLError.Code {
        switch alert?.code {
        case 42?, 43?, 44?, 45?, 46?, 48?: .clientCertificateRejected
        default: .secureConnectionFailed
        }
    }

    private static func code(_ violation: ResponseViolation) -> URLError.Code {
        switch violation {
        case .head(.tooLong), .head(.tooManyFields), .tooManyInformationalHeads, .framingWithoutContent:
            .dataLengthExceedsMaximum
        case .statusLine, .unsolicited: .badServerResponse
        case .head, .bareLineBreak, .contentLength, .twoFramings, .transferCoding, .chunk, .upgrade, .message:
            .cannotParseResponse
        }
    }

    private static func code(_ error: HTTP2Error) -> URLError.Code {
        switch error {
        case .reset, .refused, .http11Required, .outOfMemory: .networkConnectionLost
        case .overload: .badServerResponse
        case .violation: .cannotParseResponse
        case .settingsTimeout: .timedOut
        }
    }

    private static func code(_ error: RequestError) -> URLError.Code {
        switch error {
        case .origin, .target: .badURL
        case .method, .fieldName, .fieldValue, .bodyLength, .headTooLarge: .unsupportedURL
        }
    }

    // MARK: Texts and causes

    private static func text(_ error: RequestError) -> String {
        switch error {
        case .method: "The request's method is not a token."
        case .target: "The URL's path or query cannot be sent."
        case .fieldName: "A header field of the request has a name that is not a token."
        case .fieldValue: "A header field of the request contains a control character."
        case .headTooLarge: "The request's header fields are larger than HTTP/2 can send."
        case .bodyLength: "Content-Length or Transfer-Encoding of the request contradicts its body."
        case .origin: "The URL has no host, or a port that does not exist."
        }
    }

    private static func text(_ error: HTTP2Error) -> String {
        switch error {
        case .reset(let code): "The server reset the HTTP/2 stream: \(code)."
        case .refused: "The server did not process the request: REFUSED_STREAM."
        case .overload: "The server demands fewer requests (ENHANCE_YOUR_CALM)."
        case .http11Required: "The server requires HTTP/1.1 for this request (HTTP_1_1_REQUIRED)."
        case .violation(let text): "The server violated HTTP/2: \(text)."
        case .settingsTimeout: "The server did not send its HTTP/2 settings in time."
        case .outOfMemory: "There is too little memory for an HTTP/2 connection."
        }
    }

    private static func text(_ failure: TransportFailure) -> String? {
        switch failure {
        case .noSuchFile, .notPermitted, .unusableEndpoint, .ownResources:
            "Could not connect to the server: \(failure)."
        case .tls(let layer): layer.description
        case .proxy(let layer): self.sentence("Could not connect through the proxy: \(layer)")
        case .nameResolution(.failed(let reason)): "The server's name could not be resolved: \(reason)."
        case .nameResolution(.temporarilyUnavailable):
            "The server's name could not be resolved: the name server does not respond."
        case .nameResolution(.noRoute), .offline(.noRoute): "There is no network connection to the server."
        case .nameResolution(.notAuthenticated(let reason)):
            "The server's name could not be resolved with DNSSEC: \(reason)."
        case .offline(.forbidden): "The networks that lead to the server may not be used by this task."
        case .nameResolution(.tooManyLookups): "The server's name could not be resolved: too many pending lookups."
        case .reset: "The server reset the connection."
        case .peerUnresponsive: "The server stopped responding."
        case .truncated: "The server closed the TLS connection without close_notify: data may be missing."
        case .unreachable(let error): "The server cannot be reached: \(error)."
        case .system(let error): "The connection failed: \(error)."
        case .nameResolution(.nameNotFound), .deadlinePassed, .refused: nil
        }
    }

    /// `text` with a full stop, unless it ends with one, as the words of a proxy or a server may.
    static func sentence(_ text: String) -> String { text.hasSuffix(".") ? text : text + "." }

    /// The system's error as a `POSIXError`, if there is one.
    private static func cause(_ failure: TransportFailure) -> any Error {
        guard let code = failure.systemError.flatMap({ POSIXErrorCode(rawValue: $0.number) }) else { return failure }
        return POSIXError(code)
    }

    // MARK: Stream and WebSocket tasks

    static func error(of failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .cancelled: self.error(.cancelled, url: url)
        case .timedOut: self.error(.timedOut, url: url, cause: POSIXError(.ETIMEDOUT), text: "The request timed out.")
        case .peerUnresponsive:
            self.error(.timedOut, url: url, cause: POSIXError(.ETIMEDOUT), text: "The server stopped responding.")
        case .directionClosed:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.ESHUTDOWN),
                text: "This direction of the connection is closed.")
        case .usageError(let text): self.error(.unknown, url: url, cause: POSIXError(.EINVAL), text: text)
        case .ended, .closed:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.ENOTCONN), text: "The connection is closed.")
        case .connectionLost(let error):
            self.error(
                .networkConnectionLost, url: url,
                cause: error.transportFailure.map(self.cause) ?? POSIXError(.ECONNRESET), text: error.description)
        case .cannotConnect(let error):
            error.transportFailure.map { self.error($0, url: url) }
                ?? self.error(.cannotConnectToHost, url: url, cause: failure, text: error.description)
        case .secureConnectionFailed(let failure):
            self.error(self.code(failure), url: url, cause: failure, text: failure.description)
        case .handshakeRefused, .protocolViolation, .messageTooLong: self.webSocketError(failure, url: url)
        }
    }

    private static func webSocketError(_ failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .handshakeRefused(let status):
            self.error(
                .badServerResponse, url: url, cause: failure,
                text: "The server answered the opening handshake with status \(status).",
                more: [URLErrorHandshakeStatusCodeKey: status])
        case .messageTooLong(let limit):
            self.error(
                .dataLengthExceedsMaximum, url: url, cause: POSIXError(.EMSGSIZE),
                text: "A message is longer than maximumMessageSize, which is \(limit) bytes.")
        default:
            self.error(
                .networkConnectionLost, url: url, cause: POSIXError(.EPROTO),
                text: "The server violated the WebSocket protocol: \(failure).")
        }
    }

    /// The error of a failed WebSocket opening handshake.
    static func handshakeError(_ failure: TaskFailure, url: URL?) -> URLError {
        switch failure {
        case .connectionLost(let error):
            self.error(.badServerResponse, url: url, cause: failure, text: error.description)
        case .protocolViolation(_, let text):
            self.error(.badServerResponse, url: url, cause: failure, text: text)
        default: self.error(of: failure, url: url)
        }
    }
}

/// Key in the `userInfo` of an error: the status with which a server rejected a WebSocket opening handshake, an `Int`.
public let URLErrorHandshakeStatusCodeKey = "URLErrorHandshakeStatusCode"

/// Key in the `userInfo` of an error: why the network is unavailable.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"
/// The code for a file outside the sandbox. `URLError.Code` does not have it on Linux.
public let NSURLErrorFileOutsideSafeArea = -1104

extension URLError.NetworkUnavailableReason {
    /// - Parameter classes: of the interfaces that may not be used; without any there is no reason.
    fileprivate init?(_ classes: InterfaceClasses) {
        if classes.contains(.cellular) {
            self = .cellular
        } else if classes.contains(.expensive) {
            self = .expensive
        } else if classes.contains(.constrained) {
            self = .constrained
        } else {
            return nil
        }
    }
}

extension URLError {
    /// The status with which a server rejected a WebSocket opening handshake. An extension that Foundation does not
    /// have.
    public var handshakeStatusCode: Int? { self.userInfo[URLErrorHandshakeStatusCodeKey] as? Int }

    /// Why the system cancelled a task of a background session.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication = 0
        case backgroundUpdatesDisabled = 1
        case insufficientSystemResources = 2
    }

    /// Why the network is unavailable.
    public enum NetworkUnavailableReason: Int, Sendable {
        case cellular = 0
        case expensive = 1
        case constrained = 2
    }

    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
        (self.userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
    }

    public var networkUnavailableReason: NetworkUnavailableReason? {
        (self.userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
    }

    /// The resume data of a failed download.
    public var downloadTaskResumeData: Data? { self.userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// The resume data of a failed upload.
    public var uploadTaskResumeData: Data? { self.userInfo[NSURLSessionUploadTaskResumeData] as? Data }

    /// The server trust that was rejected.
    public var failureURLPeerTrust: SecTrust? { self.userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? ServerTrust }
}
