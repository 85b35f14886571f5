import Foundation
import HTTPTransport
import StreamTransport
import TLSEngine

/// From what went wrong below to the codes of the URL loading system: the one place where this is decided.
enum LoadFailure {
    /// What Foundation calls `NSURLErrorFailingURLStringErrorKey`.
    private static let failingURLText = "NSErrorFailingURLStringKey"

    /// An error as tasks tell it.
    /// - Parameters:
    ///   - url: that failed.
    ///   - cause: goes into `NSUnderlyingErrorKey`.
    ///   - text: for `localizedDescription`.
    static func error(
        _ code: URLError.Code, url: URL?, cause: (any Error)? = nil, text: String? = nil, more: [String: Any] = [:]
    ) -> URLError {
        var details = more
        details[NSURLErrorFailingURLErrorKey] = url
        details[Self.failingURLText] = url?.absoluteString
        details[NSUnderlyingErrorKey] = cause
        details[NSLocalizedDescriptionKey] = text ?? self.text(code)
        return URLError(code, userInfo: details)
    }

    /// What a code means where nothing more exact is known. Without it Foundation would show the domain and the number.
    private static func text(_ code: URLError.Code) -> String {
        switch code {
        case .cancelled: "cancelled"
        case .timedOut: "The request timed out."
        case .badURL: "The URL is not valid."
        case .unsupportedURL: "The URL cannot be loaded: its scheme or a part of it is not supported."
        case .cannotFindHost: "A server with the specified hostname could not be found."
        case .dnsLookupFailed: "The server's name could not be looked up."
        case .cannotConnectToHost: "Could not connect to the server."
        case .networkConnectionLost: "The connection to the server was lost."
        case .notConnectedToInternet: "There is no network connection."
        case .resourceUnavailable: "The resource is not available."
        case .badServerResponse, .cannotParseResponse: "The server's answer is not valid."
        case .cannotDecodeContentData, .cannotDecodeRawData: "The content could not be decoded."
        case .dataLengthExceedsMaximum: "The answer is longer than allowed."
        case .httpTooManyRedirects: "The server redirected too often."
        case .redirectToNonExistentLocation: "The server redirected to a place that cannot be loaded."
        case .requestBodyStreamExhausted: "The body of the request ended too early."
        case .userAuthenticationRequired: "The server asks for a name and a password."
        case .userCancelledAuthentication: "The server's question for a name and a password was refused."
        case .secureConnectionFailed: "A secure connection to the server could not be made."
        case .serverCertificateHasBadDate: "The server's certificate has expired."
        case .serverCertificateNotYetValid: "The server's certificate is not valid yet."
        case .serverCertificateUntrusted: "The server's certificate is not trusted."
        case .serverCertificateHasUnknownRoot: "The server's certificate comes from an unknown authority."
        case .clientCertificateRequired: "The server asks for a client certificate."
        case .clientCertificateRejected: "The server does not accept the client certificate."
        case .fileDoesNotExist: "The file does not exist."
        case .fileIsDirectory: "The file is a directory."
        case .noPermissionsToReadFile: "The file may not be read."
        case .cannotCreateFile: "The file could not be made."
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
        case .request(let fault): self.error(self.code(fault), url: url, cause: failure, text: self.text(fault))
        case .connecting(let cause): self.error(cause, url: url)
        case .notAdmitted:
            self.error(
                .cannotConnectToHost, url: url, cause: failure,
                text: "None of the server's addresses may be connected to.")
        case .securing(let cause): self.error(self.code(cause), url: url, cause: cause, text: cause.description)
        case .idle: self.error(.timedOut, url: url, text: "The request timed out.")
        case .connectionLost(let loss):
            self.error(
                .networkConnectionLost, url: url, cause: loss.cause.map(self.cause) ?? failure,
                text: "The server ended the connection before it answered.")
        case .truncated(let received, let expected, let cause):
            self.error(
                .networkConnectionLost, url: url, cause: cause.map(self.cause) ?? failure,
                text: "The content broke off after \(received) bytes"
                    + (expected.map { " of \($0)." } ?? ", before its end was told."))
        case .violation(let violation):
            self.error(
                self.code(violation), url: url, cause: failure,
                text: "The server broke a rule of HTTP: \(violation).")
        case .body: self.error(.requestBodyStreamExhausted, url: url, cause: failure)
        case .proxyUnsupported:
            self.error(
                .unsupportedURL, url: url, cause: failure,
                text: "Proxies are not supported yet: take them out of connectionProxyDictionary.")
        }
    }

    static func error(_ failure: TransportFailure, url: URL?) -> URLError {
        self.error(self.code(failure), url: url, cause: self.cause(failure), text: self.text(failure))
    }

    // MARK: Codes

    static func code(_ failure: TransportFailure) -> URLError.Code {
        switch failure {
        case .reset, .truncated: .networkConnectionLost
        case .peerUnresponsive, .deadlinePassed: .timedOut
        case .nameResolution(.nameNotFound): .cannotFindHost
        case .nameResolution: .dnsLookupFailed
        case .refused, .noSuchFile, .notPermitted, .unusableEndpoint, .ownResources: .cannotConnectToHost
        case .tls: .secureConnectionFailed
        case .unreachable(let error), .system(let error):
            self.isOffline(error) ? .notConnectedToInternet : .cannotConnectToHost
        }
    }

    private static func isOffline(_ error: SystemError) -> Bool {
        error.number == ENETDOWN
    }

    static func code(_ failure: TLSFailure) -> URLError.Code {
        switch failure.kind {
        case .verification(let verdict): ServerTrust.failure(verdict.code)
        case .pinMismatch, .rejected: .serverCertificateUntrusted
        case .peerAlert:
            self.asksForCertificate(failure.alert) ? .clientCertificateRequired : self.alerted(failure.alert)
        case .unreadableMaterial, .wrongPassword, .keyMismatch: .clientCertificateRejected
        case .handshake, .notTLS, .record, .closedDuringHandshake, .excessiveInput, .configuration, .outputClosed,
            .engine:
            .secureConnectionFailed
        }
    }

    /// RFC 8446 §6.2: certificate_required.
    private static func asksForCertificate(_ alert: TLSAlert?) -> Bool { alert?.code == 116 }

    /// Alerts about the certificate that we showed: 42 to 46, and 48 for an unknown authority.
    private static func alerted(_ alert: TLSAlert?) -> URLError.Code {
        switch alert?.code {
        case 42?, 43?, 44?, 45?, 46?, 48?: .clientCertificateRejected
        default: .secureConnectionFailed
        }
    }

    private static func code(_ violation: ResponseViolation) -> URLError.Code {
        switch violation {
        case .headTooLarge, .tooManyInformationalHeads, .framingWithoutContent: .dataLengthExceedsMaximum
        case .statusLine, .unsolicited: .badServerResponse
        case .bareLineBreak, .foldedField, .fieldName, .fieldValue, .contentLength, .twoFramings, .transferCoding,
            .chunk, .upgrade:
            .cannotParseResponse
        }
    }

    private static func code(_ fault: RequestFault) -> URLError.Code {
        switch fault {
        case .origin, .target: .badURL
        case .method, .fieldName, .fieldValue, .bodyLength: .unsupportedURL
        }
    }

    // MARK: Words and causes

    private static func text(_ fault: RequestFault) -> String {
        switch fault {
        case .method: "The request's method is no token."
        case .target: "The URL's path or query cannot be sent."
        case .fieldName: "A header field of the request has a name that is no token."
        case .fieldValue: "A header field of the request holds a control character."
        case .bodyLength: "Content-Length or Transfer-Encoding of the request contradict its body."
        case .origin: "The URL has no host, or a port that does not exist."
        }
    }

    private static func text(_ failure: TransportFailure) -> String? {
        switch failure {
        case .noSuchFile, .notPermitted, .unusableEndpoint, .ownResources:
            "Could not connect to the server: \(failure)."
        case .tls(let layer): layer.description
        case .nameResolution(.failed(let words)): "The server's name could not be looked up: \(words)."
        case .nameResolution(.temporarilyUnavailable):
            "The server's name could not be looked up: the name service does not answer."
        case .nameResolution(.tooManyLookups): "The server's name could not be looked up: too many lookups wait."
        case .reset: "The server reset the connection."
        case .peerUnresponsive: "The server stopped answering."
        case .truncated: "The server ended the TLS connection without close_notify: bytes may be missing."
        case .unreachable(let error): "The server cannot be reached: \(error)."
        case .system(let error): "The connection failed: \(error)."
        case .nameResolution(.nameNotFound), .deadlinePassed, .refused: nil
        }
    }

    /// What the system said, as an error that programs know.
    static func cause(_ failure: TransportFailure) -> any Error {
        guard let code = failure.systemError.flatMap({ POSIXErrorCode(rawValue: $0.number) }) else { return failure }
        return POSIXError(code)
    }
}
